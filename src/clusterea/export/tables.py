"""Links as tables: TSV and Parquet, with the columns source, target and confidence."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.export.rows import COLUMNS, link_batches, write_lines
from clusterea.types import Alignment, Names, Pair


def write_tsv(alignment: Alignment, names: Pair[Names], path: Path) -> None:
    """Links as TSV: a header, nothing quoted.

    A name with a tab or a line end in it can't stand in TSV. It is written as an IRI, as in RDF.
    """
    texts = names.zip(NAMESPACES).map(lambda side: to_cells(side[0].arrow, side[1]))
    with path.open("wb") as file:
        file.write("\t".join(COLUMNS).encode() + b"\n")
        for batch in link_batches(alignment, texts):
            source, target, confidence = batch.columns
            write_lines(file, source, "\t", target, "\t", confidence)


def write_parquet(alignment: Alignment, names: Pair[Names], path: Path) -> None:
    """Links as Parquet, which holds any name as it is.

    The file's metadata says what the confidence is: `confidence_examples`, how many links it was
    fitted on, and `confidence_note`, a sentence, where there are none.
    """
    import pyarrow.parquet as pq

    kinds = (pa.large_string(), pa.large_string(), pa.float64())
    metadata = {"confidence_examples": str(alignment.examples)}
    if alignment.confidence_note:
        metadata["confidence_note"] = alignment.confidence_note
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)), metadata)
    with pq.ParquetWriter(path, schema) as writer:
        for batch in link_batches(alignment, names.map(lambda side: side.arrow)):
            writer.write_table(batch.cast(schema))

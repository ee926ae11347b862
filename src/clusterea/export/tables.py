"""Links as tables: TSV and Parquet, with the columns source, target, and confidence or score."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.export.rows import columns, link_batches, link_labels, write_lines
from clusterea.types import Alignment, Names, Pair, Texts


def write_tsv(
    alignment: Alignment, names: Pair[Names], path: Path, _labels: Pair[Texts] | None = None
) -> None:
    """Writes links as TSV with a header, without quotes and without labels.

    A name that contains a tab or a line end is written as an IRI, as in RDF.
    """
    with path.open("wb") as file:
        file.write("\t".join(columns(alignment)).encode() + b"\n")
        for batch in link_batches(alignment, names.map(lambda side: side.arrow)):
            *ends, confidence = (column.combine_chunks() for column in batch.columns)
            source, target = Pair(*ends).zip(NAMESPACES).map(lambda side: to_cells(*side))
            write_lines(file, source, "\t", target, "\t", confidence)


def write_parquet(
    alignment: Alignment, names: Pair[Names], path: Path, labels: Pair[Texts] | None = None
) -> None:
    """Writes links as Parquet, with all names and labels unchanged.

    If there are labels, the last columns are `source_label` and `target_label`.
    The file's metadata describes the confidence or score: `confidence_examples` is the number of
    links it was calibrated on, 0 for a score; `confidence_note` says what it means.
    """
    import pyarrow.parquet as pq

    kinds = (pa.large_string(), pa.large_string(), pa.float64())
    metadata = {
        "confidence_examples": str(alignment.examples),
        "confidence_note": alignment.confidence_note,
    }
    more = link_labels(alignment, labels)
    fields = [*zip(columns(alignment), kinds, strict=True)]
    fields += [(name, column.type) for name, column in more.items()]
    schema = pa.schema(fields, metadata)
    with pq.ParquetWriter(path, schema) as writer:
        for batch in link_batches(alignment, names.map(lambda side: side.arrow), more):
            writer.write_table(batch.cast(schema))

"""Tables of entity and name, as files or as Python values."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import read_delimited
from clusterea.data.formats import detect_format
from clusterea.data.headers import name_header
from clusterea.data.in_memory import LinkSource, is_path, names_in_memory
from clusterea.data.inputs import note
from clusterea.data.tables import TABLES, read_columns
from clusterea.errors import DataError, cut
from clusterea.types import Names, Texts

NAME_COLUMNS = ("entity", "name")


class NameTable(NamedTuple):
    """The rows of a table: an entity and one of its names."""

    origin: Path | str  # the file, or the argument's name
    entities: pa.Array
    names: pa.Array

    def labels_of(self, entities: Names) -> Texts:
        """The names of these entities. Rows of others are skipped, with a note; empty ones too."""
        ids = entities.ids_of(self.entities)
        known = ids >= 0
        if not known.any():
            first = cut(repr(self.entities[0].as_py()))
            raise DataError(
                self.origin,
                f"expected names of entities of the graph, got none; the first is of {first}.",
            )
        if not known.all() and isinstance(self.origin, Path):
            note(self.origin, f"{int((~known).sum()):,} rows are of entities in no triple.")
        texts = pc.utf8_trim_whitespace(self.names)
        kept = known & pc.not_equal(texts, "").to_numpy(zero_copy_only=False)
        return Texts.of_rows(ids[kept], texts.filter(pa.array(kept)), len(entities))


def name_table(given: LinkSource, argument: str) -> NameTable:
    """The table in a file (TSV, CSV, Parquet) or in memory."""
    if not is_path(given):
        return NameTable(argument, *names_in_memory(given, argument))
    path = Path(given)
    try:
        format_name = detect_format(path)
    except DataError as error:
        if error.line is None:
            raise
        format_name = "tsv"
    if format_name not in TABLES:
        raise DataError(path, f"expected a table of entity and name, got {format_name}.")
    hint = "A table of names has two columns, entity and name."
    table = read_columns(
        path, format_name, name_header, wanted=NAME_COLUMNS, may_be_empty=True, hint=hint
    )
    return NameTable(path, *(column.combine_chunks() for column in table.columns))


def bare_name_table(path: Path) -> NameTable:
    """The table in TSV without a header, as in a dataset's folder."""
    table = read_delimited(path, NAME_COLUMNS, delimiter="\t", may_be_empty=("name",))
    return NameTable(path, *(column.combine_chunks() for column in table.columns))

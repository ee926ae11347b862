"""Replaces ids by names, for layouts whose triples hold ids."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import read_delimited
from clusterea.errors import DataError, cut
from clusterea.types import Names


def rename_ids(names_path: Path, triples_path: Path, keys: Names) -> Names:
    """The names of the ids in the triples. A name that two ids share gets the id appended."""
    table = read_delimited(names_path, ("id", "name"), delimiter="\t")
    ids, names = table["id"].combine_chunks(), table["name"].combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        raise DataError(names_path, "expected each id once, got some id twice.")
    rows = pc.index_in(keys.arrow, value_set=ids)
    if rows.null_count:
        missing = keys[pc.index(pc.is_null(rows), True).as_py()]
        raise DataError(
            names_path, f"expected a name for id {cut(missing)} of {triples_path}, got none."
        )
    own = names.take(rows)
    counts = pc.value_counts(own)
    shared = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if len(shared):
        apart = pc.binary_join_element_wise(own, keys.arrow, pa.scalar(" #", own.type))
        own = pc.if_else(pc.is_in(own, value_set=shared), apart, own)
    try:
        return Names(own)
    except ValueError as error:
        raise DataError(
            names_path, f"expected names that can be told apart: {cut(error)}"
        ) from error

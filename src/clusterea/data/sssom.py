"""Reads SSSOM mappings: TSV with a YAML head in comment lines, identifiers often as CURIEs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.delimited import read_delimited, split_line
from clusterea.data.equivalences import CLOSE_MATCH, EQUIVALENCES, LISTED
from clusterea.data.name_iris import beyond_ascii, to_names
from clusterea.data.streams import (
    COMPRESSIONS,
    first_statement,
    is_parquet,
    suffix_of,
    text_lines,
)
from clusterea.errors import DataError, cut
from clusterea.types import Pair

_NAMES = tuple(EQUIVALENCES.values())
_SPELLED = (*EQUIVALENCES, *_NAMES)  # as IRIs and as CURIEs, in the same order
NO_TERM = ("sssom:NoTermFound", "https://w3id.org/sssom/NoTermFound")
_NAME_ENDINGS = (".sssom.tsv", *(f".sssom.tsv{packed}" for packed in COMPRESSIONS))
REQUIRED = ("subject_id", "predicate_id", "object_id")


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the mappings of a file."""

    metadata: dict[str, Any]  # without types, since a prefix may be called NO
    curie_map: dict[str, str]  # prefix → address
    columns: list[str]
    num_lines: int  # with the line of column names


def is_sssom(path: Path) -> bool:
    """Whether the file is SSSOM, by its name, its comment head or its columns."""
    if path.name.lower().endswith(_NAME_ENDINGS):
        return True
    if suffix_of(path) not in (".tsv", ".tab", ".txt", "") or is_parquet(path):
        return False
    header = first_statement(path)
    return header is not None and set(REQUIRED) <= set(header.split("\t"))


def read_sssom(path: Path) -> tuple[tuple[Pair[pa.ChunkedArray], ...], int, Counter[str]]:
    """The possible readings of its links, the number of other mappings, and the links by predicate.

    Close matches come last. CURIEs are expanded with the file's own `curie_map`. A graph may itself
    be written in CURIEs, so each side is also offered as it stands.
    """
    head = read_head(path, text_lines(path))
    optional = [name for name in ("predicate_modifier",) if name in head.columns]
    table = read_delimited(
        path,
        head.columns,
        delimiter="\t",
        skip_lines=head.num_lines,
        keep=(*REQUIRED, *optional),
        may_be_empty=optional,
    )
    spelled = find_among(_SPELLED, spellings(table["predicate_id"], head.curie_map))
    states = pc.is_valid(spelled)
    nothing = pa.array(NO_TERM, pa.large_string())
    for column in ("subject_id", "object_id"):
        states = pc.and_not(states, pc.is_in(table[column], value_set=nothing))
    for column in optional:
        states = pc.and_not(states, pc.equal(table[column], "Not"))
    stated = table.filter(states)
    if not stated.num_rows:
        raise DataError(path, f"expected mappings by {LISTED}; got none of {table.num_rows:,}.")
    predicates = spelled.filter(states).to_numpy() % len(_NAMES)
    order = np.argsort(predicates == _NAMES.index(EQUIVALENCES[CLOSE_MATCH]), kind="stable")
    stated = stated.take(order)
    subjects = spellings(stated["subject_id"], head.curie_map)
    objects = spellings(stated["object_id"], head.curie_map)
    readings = tuple(Pair(subject, value) for subject, value in product(subjects, objects))
    links = Counter(_NAMES[predicate] for predicate in predicates[order].tolist())
    return readings, table.num_rows - stated.num_rows, links


def read_head(path: Path, lines: Iterable[tuple[int, str]]) -> Head:
    """The YAML head in comment lines, and the column names. Reads no line after those."""
    comments: list[str] = []
    wanted = ", ".join(REQUIRED)
    for number, line in lines:
        if line.startswith("#") and number == len(comments) + 1:
            comments.append(line[1:])
        elif line.strip():
            cells = split_line(line, "\t")
            if not set(REQUIRED) <= set(cells):
                got = cut(", ".join(cells))
                raise DataError(path, f"expected the columns {wanted}; got {got}.", line=number)
            return Head(*_metadata(path, comments), cells, number)
    raise DataError(path, f"expected the columns {wanted}, got an empty file.")


def _metadata(path: Path, comments: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The metadata in a YAML head, and its `curie_map`."""
    import yaml

    try:
        text = "\n".join(comments)
        metadata = dict(yaml.load(text, Loader=yaml.BaseLoader) or {})  # noqa: S506
        curie_map = dict(metadata.get("curie_map") or {})
    except (yaml.YAMLError, AttributeError, TypeError, ValueError, RecursionError) as error:
        raise DataError(path, "expected a YAML head in its comment lines, got none.") from error
    # YAML aliases of nested lists could be too large to print.
    if not all(isinstance(part, str) for item in curie_map.items() for part in item):
        raise DataError(path, "expected an address for each prefix in curie_map, got a list.")
    return metadata, curie_map


def unquoted(cell: str) -> str:
    """The text of a cell, which is quoted as in CSV if it has quotes."""
    if len(cell) > 1 and cell[0] == cell[-1] == '"':
        return cell[1:-1].replace('""', '"')
    return cell


def find_among(known: Sequence[str], spelled: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The index in `known` of the first spelling that is in it; null if none is."""
    values = pa.array(known, pa.large_string())
    return pc.coalesce(*(pc.index_in(each, value_set=values) for each in spelled))


def spellings(column: pa.ChunkedArray, curie_map: dict[str, str]) -> list[pa.ChunkedArray]:
    """The identifiers as names: expanded, as written, and as decoded IRIs."""
    known = {f"{prefix}:": address for prefix, address in curie_map.items()}
    for scheme in ("http:", "https:"):
        known.pop(scheme, None)
    # Each once: an expanded prefix may begin with another prefix.
    prefix = pc.replace_substring_regex(column, pattern="^([^:]*:).*$", replacement=r"\1")
    local = pc.replace_substring_regex(column, pattern="^[^:]*:", replacement="")
    prefixes = pa.array(known, pa.large_string())
    addresses = pa.array(known.values(), pa.large_string())
    address = addresses.take(pc.index_in(prefix, value_set=prefixes).combine_chunks())
    joined = pc.binary_join_element_wise(address, local, pa.scalar("", pa.large_string()))
    expanded = to_names(pc.coalesce(joined, column))
    found = [expanded]
    for other in (column, beyond_ascii(expanded)):
        if not any(other.equals(spelling) for spelling in found):
            found.append(other)
    return found

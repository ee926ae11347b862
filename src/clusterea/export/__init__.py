"""Writes an alignment in formats of other tools. A new format is a line in `EXPORTERS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from clusterea.errors import look_up
from clusterea.export.rdf import write_ntriples, write_oaei
from clusterea.export.run_files import write_alignment, write_candidates, write_unmatched
from clusterea.export.sssom import write_sssom
from clusterea.export.tables import write_parquet, write_tsv
from clusterea.files import replacing
from clusterea.types import Alignment, Names, Pair, Texts

__all__ = [
    "EXPORTERS",
    "Exporter",
    "export",
    "find_exporter",
    "write_alignment",
    "write_candidates",
    "write_unmatched",
]

# Writes the file. Labels are None if there are none; most formats leave them out.
Exporter = Callable[[Alignment, Pair[Names], Path, Pair[Texts] | None], None]
EXPORTERS: dict[str, Exporter] = {
    "tsv": write_tsv,
    "parquet": write_parquet,
    "ntriples": write_ntriples,
    "sssom": write_sssom,
    "oaei": write_oaei,
}


def find_exporter(name: str) -> Exporter:
    """The exporter called `name`; for an unknown name, an error that lists the known ones."""
    return look_up("format", name, EXPORTERS)


def export(
    alignment: Alignment,
    names: Pair[Names],
    format: str,  # noqa: A002
    path: Path,
    *,
    labels: Pair[Texts] | None = None,
    with_unmatched: bool = False,
) -> None:
    """Writes the alignment as one file, atomically.

    Args:
        alignment: The links.
        names: The names of the entities.
        format: A name in `EXPORTERS`.
        path: The file. An existing file is replaced.
        labels: The labels of the entities, for SSSOM and Parquet.
        with_unmatched: Whether SSSOM also has a row for each entity without a link. Some tools
            take such a row for a mapping.
    """
    exporter = find_exporter(format)
    if not with_unmatched:
        nobody = alignment.unmatched.map(lambda ids: ids[:0])
        alignment = replace(alignment, unmatched=nobody)
    with replacing(path) as beside:
        exporter(alignment, names, beside, labels)

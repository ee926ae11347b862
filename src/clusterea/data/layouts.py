"""The folder layouts of public datasets: the role of each file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from clusterea.data.inputs import is_stream
from clusterea.data.links import NamedLinks
from clusterea.errors import DataError, InputError, shown_path, unknown_name
from clusterea.types import Pair


@dataclass(frozen=True, slots=True)
class Layout:
    """The files of one pair of graphs; links may also have been given as Python values."""

    format: str
    triples: Pair[Path]
    links: Path | NamedLinks | None = None
    seeds: Path | NamedLinks | None = None
    test_links: Path | NamedLinks | None = None
    entity_names: Pair[Path] | None = None  # id TAB name, where triples hold ids
    relation_names: Pair[Path] | None = None
    dangling: Pair[Path] | None = None
    labels: Pair[Path] | None = None  # entity TAB label
    folds: Path | None = None  # holds one folder a fold: train_links, valid_links, test_links


def openea(folder: Path) -> Layout:
    """OpenEA's folder, with or without its five folds."""
    folds = folder / "721_5fold"
    return Layout(
        "openea",
        _sides(folder, "rel_triples"),
        links=_needed(folder / "ent_links"),
        dangling=_sides_if_there(folder, "dangling"),
        labels=_sides_if_there(folder, "labels"),
        folds=folds if folds.is_dir() else None,
    )


def ids(folder: Path) -> Layout:
    """The folder of integer ids that DBP15K, SRPRS and JAPE share."""
    seeds, others = folder / "sup_ent_ids", folder / "ref_ent_ids"
    return Layout(
        "ids",
        _sides(folder, "triples"),
        # One of the two files alone is no split, just links.
        links=None if seeds.is_file() and others.is_file() else _either(others, seeds),
        seeds=seeds if seeds.is_file() and others.is_file() else None,
        test_links=others if seeds.is_file() and others.is_file() else None,
        entity_names=_sides(folder, "ent_ids"),
        relation_names=_sides_if_there(folder, "rel_ids"),
    )


def dbp1m(folder: Path) -> Layout:
    """LargeEA's DBP1M: `fr_triples_1` and so on; one pair of several is called FOLDER/fr."""
    if not folder.is_dir():
        return _dbp1m_pair(folder.parent, folder.name)
    prefixes = sorted(path.name.removesuffix("_triples_1") for path in folder.glob("*_triples_1"))
    if not prefixes:
        raise DataError(folder, "expected fr_triples_1 or de_triples_1, got neither.")
    if len(prefixes) > 1:
        choices = " or ".join(str(folder / prefix) for prefix in prefixes)
        raise DataError(
            folder, f"holds {len(prefixes)} pairs, {', '.join(prefixes)}; give {choices}."
        )
    return _dbp1m_pair(folder, prefixes[0])


def _dbp1m_pair(folder: Path, prefix: str) -> Layout:
    return Layout(
        "dbp1m",
        _sides(folder, f"{prefix}_triples"),
        links=_needed(folder / f"{prefix}_ent_links"),
    )


LAYOUTS: dict[str, Callable[[Path], Layout]] = {"openea": openea, "ids": ids, "dbp1m": dbp1m}


def find_layout(folder: Path, format_name: str | None = None) -> Layout:
    """The layout of a folder (or of one pair in it), by its files or by the name given."""
    if format_name is not None:
        if format_name not in LAYOUTS:
            raise unknown_name("folder format", format_name, LAYOUTS)
        return LAYOUTS[format_name](folder)
    if is_stream(folder) or folder.is_file():
        raise InputError(
            f"{shown_path(folder)} is one file. Give a folder, or two files and their links: "
            "SOURCE TARGET --links LINKS."
        )
    if not folder.exists() and not folder.with_name(f"{folder.name}_triples_1").exists():
        raise DataError(folder, "expected a folder of data, but there is none.")
    if any((folder / f"rel_triples_{side}").exists() for side in (1, 2)):
        return openea(folder)
    if any((folder / f"triples_{side}").exists() for side in (1, 2)):
        return ids(folder)
    if not folder.is_dir() or any(folder.glob("*_triples_[12]")):
        return dbp1m(folder)
    raise DataError(
        folder,
        "expected rel_triples_1 (OpenEA), triples_1 (DBP15K, SRPRS) or fr_triples_1 (DBP1M), "
        "got none of them.",
    )


def fold_files(layout: Layout, fold: int) -> tuple[Path, Path]:
    """The train and test links of one fold."""
    if layout.folds is None:
        raise InputError(f"--fold {fold}: this data has no folds (721_5fold).")
    folder = layout.folds / str(fold)
    if not folder.is_dir():
        known = sorted(path.name for path in layout.folds.iterdir() if path.is_dir())
        raise InputError(f"--fold {fold}: no such fold; there are {', '.join(known)}.")
    return _needed(folder / "train_links"), _needed(folder / "test_links")


def _needed(path: Path) -> Path:
    if not path.is_file():
        raise DataError(path, "expected a file, but there is none.")
    return path


def _either(first: Path, second: Path) -> Path:
    return first if first.is_file() else _needed(second)


def _sides(folder: Path, stem: str) -> Pair[Path]:
    return Pair(folder / f"{stem}_1", folder / f"{stem}_2").map(_needed)


def _sides_if_there(folder: Path, stem: str) -> Pair[Path] | None:
    sides = Pair(folder / f"{stem}_1", folder / f"{stem}_2")
    return sides if all(path.is_file() for path in sides) else None

"""What `docs/names.md` and the README show of the records of `names.py`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from alignment_accuracy import share_right
from common import Record, table
from few_seeds import Figure, hits, shown, targets_of
from names import LABELS, bars

FR, ZH = "dbp15k-fr-en", "dbp15k-zh-en"
WORDS = {  # row → what is compared, and which seeds there are
    "names": "names and structure, 30 % seeds",
    "structure": "structure, 30 % seeds",
    "names-alone": "names, 30 % seeds",
    "no-translation": "names and structure, 30 % seeds, no learned translation",
    "no-seeds": "names and structure, no seeds",
    "no-seeds-structure": "structure, seeds from names only",
    "fast-no-seeds": "`fast`: names and structure, no seeds",
}
TRANSLATED = "translated by machine"
# Published H@1 without seeds, in percent: what, names, ZH-EN, JA-EN, FR-EN
PUBLISHED = (
    ("FGWEA", "as they are", "75.6", "78.8", "98.3"),
    ("LightEA", TRANSLATED, "95.2", "98.1", "99.8"),
    ("FGWEA (111 to 608 s)", TRANSLATED, "98.7", "99.1", "99.8"),
)


def of_row(records: Sequence[Record], row: str, pair: str) -> list[Record]:
    """The records of a row on a pair with no changed setting; those of a GPU, if there are any."""
    own = [each for each in records if each["row"] == row and each["pair"] == pair]
    own = [each for each in own if not each["settings"]]
    return [each for each in own if each["on"] == "cuda"] or own


def cells(records: Sequence[Record], figures: Iterable[tuple[Figure, int]]) -> list[str]:
    """The mean of each figure; dashes where there are no records."""
    return [shown(records, figure, digits) for figure, digits in figures]


def error(record: Record) -> float | None:
    """The calibration error of the confidence."""
    value: float | None = record["ece"]
    return value


def rows_table(records: Sequence[Record]) -> list[str]:
    """A line for each row, with figures of DBP15K's FR-EN and ZH-EN."""
    figures = ((hits, 1), (share_right, 1), (error, 3))
    lines = [
        [words, *(cell for pair in (FR, ZH) for cell in cells(of_row(records, row, pair), figures))]
        for row, words in WORDS.items()
    ]
    names = ("H@1", "precision", "error")
    return table(
        ["what is compared", *(f"{p}, {n}" for p in ("FR-EN", "ZH-EN") for n in names)], lines
    )


def published_table(records: Sequence[Record]) -> list[str]:
    """H@1 without seeds, ours beside published figures."""
    found = {pair: cells(of_row(records, "no-seeds", pair), [(hits, 1)]) for pair in (FR, ZH)}
    ours = ["`default`", "as they are", *found[ZH], "", *found[FR]]
    return table(["H@1 without seeds, %", "names", "ZH-EN", "JA-EN", "FR-EN"], [ours, *PUBLISHED])


def labels_table(records: Sequence[Record]) -> list[str]:
    """The generated pair in which half of the entities have no label."""
    figures: list[tuple[Figure, int]] = [(hits, 1), (share_right, 1), (error, 3)]
    figures += [(lambda record: 100 * float(record["metrics"]["f1"]), 1)]
    figures += [(lambda record: float(record["seconds"]), 0)]
    lines = [
        [WORDS[row], *cells(of_row(records, row, LABELS), figures)]
        for row in ("names", "structure", "names-alone")
    ]
    return table(["`fast`", "H@1", "precision", "error", "F1", "seconds"], lines)


def targets(records: Sequence[Record]) -> list[str]:
    """How many of the bars are met, and a table of those that are not."""
    return targets_of(bars(records))

"""What `docs/few-seeds.md` shows of the records: tables, and a plot over the number of seeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean

from alignment_accuracy import Bar, few_seeds_bars, is_met, limit, share_right
from common import Record, table
from plots import Look, Panel, Point, small_multiples

SHARES = (1, 5, 10, 30)  # percent of the links that are seeds
COUNTS = (20, 50, 5000)  # numbers of seeds beyond the shares
LARGER = {"contea-fr-en": (1, 5), "debian-100k": (1, 5)}  # pair → its shares
LOOKS = {  # Okabe and Ito's colors, which color-blind readers can tell apart
    "dbp15k-fr-en": Look("FR-EN", "#0072B2", "o"),
    "dbp15k-zh-en": Look("ZH-EN", "#D55E00", "s"),
    "ids15k-en-de": Look("EN-DE", "#009E73", "^"),
    "ids15k-en-fr": Look("EN-FR", "#CC79A7", "D"),
    "published": Look("NeuSymEA, FR-EN", "#000000", "*", ""),
}
PAIRS = tuple(LOOKS)[:-1]
# Published H@1 from structure alone, by pair and share: NeuSymEA (NeurIPS 2025)
PUBLISHED = {("dbp15k-fr-en", 1): 73.7}
TICKS = (20, 50, 150, 500, 1500, 5000)
NONE = "–"

Figure = Callable[[Record], float | None]


def title(pair: str) -> str:
    """`dbp15k-fr-en` as DBP15K FR-EN."""
    return f"{pair.partition('-')[0].upper()} {LOOKS[pair].label}" if pair in LOOKS else pair


def hits(record: Record) -> float:
    """H@1 in percent."""
    return 100 * float(record["metrics"]["hits@1"])


def recall(record: Record) -> float:
    """The share of test links that were found, in percent."""
    return 100 * float(record["metrics"]["recall"])


def of_row(records: Sequence[Record], row: str, pair: str) -> list[Record]:
    """The records of a row on a pair."""
    return [each for each in records if each["row"] == row and each["pair"] == pair]


def shown(records: Sequence[Record], figure: Figure, digits: int = 1) -> str:
    """The mean of a figure over the records; a dash if there is none."""
    found = [value for value in map(figure, records) if value is not None]
    return f"{mean(found):.{digits}f}" if found else NONE


def num_seeds(records: Sequence[Record]) -> str:
    """The number of seeds behind a share, in parentheses; empty without records."""
    return f" ({records[0]['num_seeds']:,})" if records else ""


def shares_table(records: Sequence[Record], best: Mapping[str, float]) -> list[str]:
    """A line for each pair and share of seeds.

    Args:
        records: Of all rows.
        best: The best published H@1 with 30 % seeds, by pair.
    """
    published = PUBLISHED | {(pair, 30): value for pair, value in best.items()}
    lines = []
    for pair, shares in (dict.fromkeys(PAIRS, SHARES) | LARGER).items():
        for share in shares:
            own, fast = (of_row(records, row, f"{pair}-{share}") for row in ("default", "fast"))
            lines.append(
                [
                    title(pair),
                    f"{share} %{num_seeds(own or fast)}",
                    shown(own, hits),
                    shown(own, share_right),
                    shown(own, lambda record: record["ece"], 3),
                    shown(fast, hits),
                    str(published.get((pair, share), "")),
                ]
            )
    head = ["pair", "seeds", "H@1", "precision", "calibration error", "H@1 of `fast`", "published"]
    return table(head, lines)


def counts_table(records: Sequence[Record]) -> list[str]:
    """H@1, precision and recall of `fast` over the number of seeds: pairs as `NAME-20s`."""
    named = (re.fullmatch(r"(.+)-(\d+)s", each["pair"]) for each in records)
    counts = sorted({*COUNTS, *(int(each[2]) for each in named if each and each[1] in PAIRS)})
    lines = []
    for count in counts:
        cells = []
        for pair in PAIRS:
            own = of_row(records, "fast", f"{pair}-{count}s")
            figures = (hits, share_right, recall)
            cells.append(" / ".join(shown(own, each) for each in figures) if own else NONE)
        lines.append([f"{count:,}", *cells])
    return table(["seeds", *map(title, PAIRS)], lines)


def targets(records: Sequence[Record]) -> list[str]:
    """What became of the bars with few seeds."""
    return targets_of(few_seeds_bars(records))


def targets_of(bars: Iterable[Bar]) -> list[str]:
    """How many of the bars are met, and a table of those that are not."""
    measured = [bar for bar in bars if bar[1] is not None]
    missed = [bar for bar in measured if not is_met(bar)]
    met = f"Of {len(measured)} targets that were measured, {len(measured) - len(missed)} are met."
    if not missed:
        return [met]
    lines = [[what, f"{value:.4g}", limit(bar)] for bar in missed for what, value, *_ in [bar]]
    return [f"{met} Missed:", "", *table(["target", "measured", "wanted"], lines)]


def points(records: Sequence[Record], row: str, pair: str, figure: Figure) -> list[Point]:
    """The mean and range of a figure at each number of seeds that a pair was run with."""
    values: dict[int, list[float]] = {}
    for each in records:
        is_own = re.fullmatch(rf"{pair}-\d+s?", each["pair"]) and each["row"] == row
        value = figure(each) if is_own else None
        if value is not None:
            values.setdefault(each["num_seeds"], []).append(value)
    return [Point(n, mean(own), min(own), max(own)) for n, own in sorted(values.items())]


def plot(path: Path, records: Sequence[Record]) -> None:
    """H@1 and precision over the number of seeds, a line for each pair; nothing if not run."""
    columns: list[list[Panel]] = []
    for name, figure in (("H@1", hits), ("precision", share_right)):
        column = []
        for row in ("default", "fast"):
            lines = {pair: points(records, row, pair, figure) for pair in PAIRS}
            if figure is hits and row == "default":
                lines["published"] = [
                    Point(each["num_seeds"], value, value, value)
                    for (pair, share), value in PUBLISHED.items()
                    for each in of_row(records, row, f"{pair}-{share}")[:1]
                ]
            if any(lines.values()):
                column.append(
                    Panel(row, "seeds", f"{name} (%)", lines, (0, 100), log_x=True, ticks=TICKS)
                )
        columns.append(column)
    if any(columns):
        small_multiples(path, columns, LOOKS)

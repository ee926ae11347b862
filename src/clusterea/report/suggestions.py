"""`Suggestions`: pairs to ask a person about, with names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from clusterea.data.name_iris import NAMESPACES, to_cells
from clusterea.files import replacing
from clusterea.report.readable import confidence, labeled
from clusterea.types.html import html_table
from clusterea.types.pair import Pair

if TYPE_CHECKING:
    import pandas

    from clusterea.types import IntArray, Measure, Names, Question, Texts

_Short: TypeAlias = Callable[[str], str]  # shortens a name
HEADER = ("source", "target", "answer")  # of the file that a person fills in


@dataclass(frozen=True, slots=True, repr=False)
class Suggestions:
    """Questions in the order to ask them."""

    questions: tuple[Question, ...]
    names: Pair[Names]
    measure: Measure  # of the alignment
    confidence_note: str  # of the alignment
    labels: Pair[Texts] | None = None

    def __len__(self) -> int:
        return len(self.questions)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.questions)

    def __getitem__(self, index: int) -> Question:
        return self.questions[index]

    @property
    def num_random(self) -> int:
        """How many are of the random share."""
        return sum(each.is_random for each in self.questions)

    def columns(self) -> dict[str, list[Any]]:
        """The columns of `to_pandas`; `measure` of a candidate is its similarity."""
        ids = self._ids()
        source, target = self.names.zip(ids).map(lambda side: side[0].take(side[1]))
        found: dict[str, list[Any]] = {"source": source, "target": target}
        if self.labels is not None:
            labels = self.labels.zip(ids).map(lambda side: side[0].first(side[1]).to_pylist())
            found |= {"source_label": labels.source, "target_label": labels.target}
        return {
            **found,
            self.measure: [each.confidence for each in self.questions],
            "asked": ["random" if each.is_random else "chosen" for each in self.questions],
            "linked": [each.is_link for each in self.questions],
        }

    def to_pandas(self) -> pandas.DataFrame:
        """A table of source, target, labels if there are any, `measure`, asked and linked."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas.") from error
        return pd.DataFrame(self.columns())

    def write(self, path: Path) -> None:
        """Writes source and target as TSV, with an empty column for answers.

        A name that contains a tab or a line end is written as an IRI, as in RDF.
        """
        columns = self.columns()
        source, target = (
            to_cells(pa.array(columns[side], pa.large_string()), namespace).to_pylist()
            for side, namespace in zip(HEADER[:2], NAMESPACES, strict=True)
        )
        rows = (HEADER, *((*pair, "") for pair in zip(source, target, strict=True)))
        with replacing(path) as beside:
            beside.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")

    def rows(self, short: Pair[_Short] | None = None) -> list[tuple[str, ...]]:
        """`Label (name)` of both entities, the confidence or score, and why the pair is asked."""
        shorten = short or Pair(str, str)
        columns = self.columns()
        nobody = [None] * len(self)
        shown = [
            [labeled(cut(name), label) for name, label in zip(columns[side], labels, strict=True)]
            for side, cut, labels in (
                ("source", shorten.source, columns.get("source_label", nobody)),
                ("target", shorten.target, columns.get("target_label", nobody)),
            )
        ]
        sure = [confidence(each.confidence) for each in self.questions]
        return list(zip(*shown, sure, map(why, self.questions), strict=True))

    def __repr__(self) -> str:
        rows = ["  " + "   ".join(row) for row in (self._header(), *self.rows())]
        return "\n".join([self._title(), *rows, self.confidence_note])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        return html_table(self._title(), self._header(), self.rows(), note=self.confidence_note)

    def _title(self) -> str:
        return f"Suggestions({len(self):,} pairs, {self.num_random:,} of them at random)"

    def _header(self) -> tuple[str, ...]:
        return ("source", "target", self.measure, "why it is asked")

    def _ids(self) -> Pair[IntArray]:
        pairs = [(each.source, each.target) for each in self.questions]
        return Pair(*np.array(pairs, dtype=np.int64).reshape(-1, 2).T)


def why(question: Question) -> str:
    """Why a pair is asked, in a few words."""
    if question.is_random:
        return "a link, drawn at random"
    return "an unsure link" if question.is_link else "the best candidate; there is no link"

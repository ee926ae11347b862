"""`find_entity`: an entity by its name or its label."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from clusterea.errors import InputError
from clusterea.report.readable import labeled
from clusterea.report.unlinked import Side
from clusterea.types import Benchmark, IntArray, Names, Pair, Texts

OFFERED = 5  # entities suggested for an unknown or ambiguous name


def find_entity(benchmark: Benchmark, text: str) -> dict[Side, int]:
    """The entity with this name on each side that has one; else the one with this label.

    A label must be that of only one entity on each side. Its case does not matter.
    """
    source, target = benchmark.labels or (None, None)
    graphs = Pair(_Named(benchmark.names.source, source), _Named(benchmark.names.target, target))
    found = graphs.map(lambda graph: graph.by_name(text))
    if not any(map(len, found)):
        found = graphs.map(lambda graph: graph.by_label(text))
    if max(map(len, found)) > 1:
        problem = f"{sum(map(len, found)):,} entities have the label {text!r}."
        raise InputError(problem + _hint(graphs, found))
    if not any(map(len, found)):
        similar = graphs.map(lambda graph: graph.similar(text.strip()))
        raise InputError(f"no entity of either graph is called {text!r}." + _hint(graphs, similar))
    sides: Pair[Side] = Pair("source", "target")
    return {side: ids[0] for side, ids in sides.zip(found) if ids}


def _hint(graphs: Pair[_Named], entities: Pair[list[int]]) -> str:
    """A question that offers the first of these entities, of both sides in turn."""
    words = graphs.zip(entities).map(lambda side: [side[0].shown(each) for each in side[1]])
    offered = [each for turn in zip_longest(*words) for each in turn if each is not None]
    return f" Did you mean {', '.join(offered[:OFFERED])}?" if offered else ""


@dataclass(frozen=True, slots=True)
class _Named:
    """The names and labels of the entities of one graph."""

    names: Names
    labels: Texts | None

    def by_name(self, text: str) -> list[int]:
        ids = self.names.ids_of([text])
        return ids[ids >= 0].tolist()  # type: ignore[no-any-return]

    def by_label(self, text: str) -> list[int]:
        """The entities that have this label, preferred or not, in any case."""
        if self.labels is None or not text.strip():
            return []
        wanted = pc.utf8_lower(pa.scalar(text.strip(), pa.large_string()))
        labels = pc.utf8_lower(pc.utf8_trim_whitespace(self.labels.values))
        is_same = pc.equal(labels, wanted).to_numpy(zero_copy_only=False)
        return np.unique(self.labels.owners[is_same]).tolist()  # type: ignore[no-any-return]

    def similar(self, part: str) -> list[int]:
        """Entities whose name or label contains the text, those with the shortest text first."""
        if not part:
            return []
        near = _containing(self.names.arrow, np.arange(len(self.names)), part)
        if self.labels is not None:
            near += _containing(self.labels.values, self.labels.owners, part)
        return list(dict.fromkeys(entity for *_, entity in sorted(near)))

    def shown(self, entity: int) -> str:
        """The name in quotes, after the label if there is one."""
        name = self.names[entity]
        texts = [] if self.labels is None else self.labels.of(entity)
        return labeled(repr(name), texts[0] if texts and texts[0] != name else None)


def _containing(texts: pa.Array, owners: IntArray, part: str) -> list[tuple[int, str, int]]:
    """Length, text and entity of the shortest texts that contain this one."""
    places = pc.indices_nonzero(pc.match_substring(texts, part, ignore_case=True))
    matches = texts.take(places)
    table = pa.table(
        {
            "length": pc.utf8_length(matches),
            "text": matches,
            "entity": owners[places.to_numpy()],
        }
    )
    order = [("length", "ascending"), ("text", "ascending")]
    nearest = table.take(pc.select_k_unstable(table, OFFERED, sort_keys=order))
    return list(zip(*(column.to_pylist() for column in nearest.columns), strict=True))

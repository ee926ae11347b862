"""`Benchmark`: a task, its names and its test links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType

import numpy as np

from clusterea.types.arrays import IntArray, check_range, frozen_ids
from clusterea.types.decisions import Decisions
from clusterea.types.html import html_table
from clusterea.types.links import check_one_to_one
from clusterea.types.names import Names
from clusterea.types.pair import Pair
from clusterea.types.task import AlignmentTask
from clusterea.types.texts import Texts

OF_ANSWERS = "test links of entities that answers decide"


@dataclass(frozen=True, slots=True, eq=False, repr=False, weakref_slot=True)
class Benchmark:
    """The data that `load` returns. Stages see only `task`; only `evaluate` sees `test_links`."""

    task: AlignmentTask
    test_links: IntArray  # (n, 2), one-to-one; may be empty
    names: Pair[Names]  # of the entities
    relation_names: Pair[Names]
    dangling: Pair[IntArray] | None = None  # entities without a counterpart, if known
    dropped: Mapping[str, int] = field(default_factory=dict)  # reason → number left out
    format: str = "memory"  # of the files, or `memory`
    seeds_from: Mapping[str, int] = field(default_factory=dict)  # origin → number of seeds
    notes: tuple[str, ...] = ()  # how files were read; not stored in a run's folder
    labels: Pair[Texts] | None = None  # of the entities, as given; the preferred one first

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "test_links", frozen_ids(self.test_links, "test_links", columns=2))
        set_field(self, "dropped", MappingProxyType(dict(self.dropped)))
        set_field(self, "seeds_from", MappingProxyType(dict(self.seeds_from)))
        graphs = self.task.graphs
        check_range(self.test_links[:, 0], "test links' source", graphs.source.num_entities)
        check_range(self.test_links[:, 1], "test links' target", graphs.target.num_entities)
        check_one_to_one(self.test_links, "test_links")
        for side in (0, 1):
            if np.isin(self.test_links[:, side], self.task.seeds[:, side]).any():
                raise ValueError("test_links must be of entities that no seed decides.")
        for graph, (entities, relations) in zip(
            graphs, self.names.zip(self.relation_names), strict=True
        ):
            if len(entities) != graph.num_entities or len(relations) != graph.num_relations:
                raise ValueError(
                    f"names must match {graph!r}. Got {len(entities):,} entity names "
                    f"and {len(relations):,} relation names instead."
                )
        for labels, graph in zip(self.labels or (), graphs, strict=False):
            if labels.num_entities != graph.num_entities:
                raise ValueError(
                    f"labels must match {graph!r}. Got {labels.num_entities:,} instead."
                )
        if self.dangling is not None:
            set_field(self, "dangling", self.dangling.map(lambda ids: frozen_ids(ids, "dangling")))
            for ids, graph in zip(self.dangling, graphs, strict=True):
                check_range(ids, "dangling", graph.num_entities)

    def __reduce__(self) -> tuple[type[Benchmark], tuple[object, ...]]:
        """Pickles read-only mappings, which pickle can't, as dicts."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        plain = {name: dict(values[name]) for name in ("dropped", "seeds_from")}
        return Benchmark, tuple({**values, **plain}.values())

    def with_decisions(self, decisions: Decisions) -> Benchmark:
        """The same data with what a person decided: see `AlignmentTask.with_decisions`.

        Accepted pairs decide their entities, so test links of these are left out, and counted.
        """
        task = self.task.with_decisions(decisions)
        ends = zip(self.test_links.T, task.seeds.T, strict=True)
        is_decided = np.any([np.isin(*side) for side in ends], axis=0)
        new = {
            OF_ANSWERS: int(is_decided.sum()),
            "answers": int((~np.isin(task.seeds[:, 0], self.task.seeds[:, 0])).sum()),
        }
        dropped, added = ({name: new[name]} if new[name] else {} for name in new)
        origins = dict(self.seeds_from)
        if "names" in origins:
            origins["names"] = len(task.presumed)
        lost = int((~np.isin(self.task.seeds[:, 0], task.seeds[:, 0])).sum())
        for name in ("links", "iris"):
            taken = min(lost, origins.get(name, 0))
            if taken:
                origins[name] -= taken
                lost -= taken
        return replace(
            self,
            task=task,
            test_links=self.test_links[~is_decided],
            dropped={**self.dropped, **dropped},
            seeds_from={**origins, **added},
        )

    def swap(self) -> Benchmark:
        """The same benchmark with source and target exchanged."""
        return Benchmark(
            self.task.swap(),
            self.test_links[:, ::-1],
            self.names.swap(),
            self.relation_names.swap(),
            self.dangling.swap() if self.dangling else None,
            self.dropped,
            self.format,
            self.seeds_from,
            notes=self.notes,
            labels=self.labels and self.labels.swap(),
        )

    def _repr_html_(self) -> str:
        """The sizes of the graphs, the links, and what was left out, for notebooks."""
        graphs = zip(("source", "target"), self.task.graphs, self.names, strict=True)
        rows: list[tuple[object, ...]] = [
            (side, each.num_entities, each.num_relations, each.num_triples, _first(names))
            for side, each, names in graphs
        ]
        left = "".join(f", {count:,} {why} left out" for why, count in self.dropped.items())
        links = f"{len(self.task.all_seeds):,} seeds, {len(self.test_links):,} test links"
        header = ("graph", "entities", "relations", "triples", "first names")
        return html_table(f"Benchmark: {links}{left}", header, rows)

    def __repr__(self) -> str:
        source, target = self.task.graphs
        return (
            f"Benchmark({len(self.task.all_seeds):,} seeds, {len(self.test_links):,} test links, "
            f"source={source!r}, target={target!r})"
        )


def _first(names: Names, count: int = 3) -> str:
    return ", ".join(names[:count]) + (", …" if len(names) > count else "")

"""What a run on a cluster takes: operations, bytes, memory and seconds of each stage.

    .venv/bin/python benchmarks/cluster_plan.py              # prints both tables
    .venv/bin/python benchmarks/cluster_plan.py --write      # puts them into docs/clusters.md
    .venv/bin/python benchmarks/cluster_plan.py --entities 20e6 10e6 --triples 2e8 --machines 4

The counts are those of the units that `clusterea.sharded` cuts a run into. The seconds of an
operation on a core are measured: those of one record of `cluster.py`, divided by its operations.
The second table compares the CPU seconds that follow for other runs with the measured ones.

Nothing overlaps here: a stage computes, then sends. The seconds of GPUs are not measured. They
follow from one GPU's products per second (`constants.toml`) and an assumed rate of memory.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from cluster import LISTS, Run, cost_table
from clusterea.config import Config, preset
from clusterea.data.synthetic import SHAPES, generate
from clusterea.engines.packing import pack
from clusterea.fusion.joined import JoinEdges
from clusterea.graph.labeled_edges import LabeledEdges
from clusterea.numerics.block_sizes import BLOCK_SIZES
from clusterea.numerics.lists import num_lists
from clusterea.pipeline.cost import constants
from clusterea.pipeline.working_memory import (
    CELLS_SHARE,
    CHOSEN_BYTES,
    LEFT_SHARE,
    MATCHED_BYTES,
    NAMED_BYTES,
    SIMILARITY_BYTES,
    SUM_BYTES,
    UNION_BYTES,
    WRITTEN,
)
from clusterea.training.label_propagation import AT_ONCE, SLAB, LabelEdges
from common import RESULTS, Record, between_markers, read_records, table

PAGE = Path(__file__).parents[1] / "docs/clusters.md"
MEASURED = [  # pairs beside their prediction
    *(("150000", settings) for settings in ("", LISTS)),
    *(("1500000", ""), ("3000000", "")),
]
WIDER = 1 / 40  # of the other side
GPU_MEMORY_RATE = 2e12  # bytes per second that a kernel reads; about half of what an H200 can
STORED_BYTES = 8  # of a cell of the similarity in a file: a column of 32 bits, and a value
DEGREE_SHARE = 0.5  # of the edges of a pair's entities that are looked up for evidence


@dataclass(frozen=True, slots=True)
class Size:
    """Two graphs and what is asked for."""

    source: int  # entities
    target: int
    triples: int  # of both
    seeds: int
    config: Config

    @classmethod
    def of(cls, source: int, target: int, triples: int, seeds: int, settings: str = "") -> Size:
        given = [settings] if settings else []
        return cls(
            source, target, triples, seeds, preset("fast", max(source, target), settings=given)
        )

    @property
    def nodes(self) -> int:
        return self.source + self.target

    @property
    def free(self) -> tuple[int, int]:
        """Entities of each side that are in no seed."""
        return self.source - self.seeds, self.target - self.seeds

    @property
    def rows(self) -> int:
        return sum(self.free)

    @property
    def edges(self) -> int:
        return 2 * self.triples

    @property
    def cells(self) -> float:
        return CELLS_SHARE * self.config.fusion.candidates * self.rows


@dataclass(frozen=True, slots=True)
class Machines:
    """A cluster."""

    count: int
    cores: int  # of each machine; GPUs, if it has GPUs
    memory: float  # bytes of each
    rate: float  # bytes per second from and to each machine
    are_gpus: bool = False

    @property
    def all_cores(self) -> int:
        return self.count * self.cores

    @property
    def name(self) -> str:
        if self.are_gpus:
            return f"{self.cores} GPUs"
        return f"{self.count} machines of {self.cores} cores and {self.memory / 1e9:.0f} GB"


@dataclass(frozen=True, slots=True)
class Stage:
    """What one kind of units does."""

    name: str
    units: tuple[str, ...]  # as Ray names them; empty: the driver does it
    operations: float
    at_once: float  # units that may run at the same time
    moved: float  # bytes between machines
    by_driver: float  # bytes from and to the driver
    unit: float  # bytes that one unit takes
    held: float  # bytes of each machine, or of the driver's
    is_product: bool = False  # of matrices
    read: int = 4  # bytes that an operation reads, on a GPU

    def memory(self, machines: Machines) -> float:
        """Bytes of a machine."""
        own = min(machines.cores, -(-self.at_once // machines.count))
        return self.held + own * self.unit

    def seconds(self, machines: Machines, known: dict[str, float]) -> float:
        """Computing, then sending."""
        computed = self.operations * self._each(machines, known)
        computed /= min(machines.all_cores, self.at_once)
        sent = self.moved / (machines.count * machines.rate) + self.by_driver / machines.rate
        return computed + (sent if machines.all_cores > 2 else 0)

    def _each(self, machines: Machines, known: dict[str, float]) -> float:
        if not machines.are_gpus or not self.units:
            return known.get(self.name, 0.0)
        if self.is_product:
            return float(constants()["cuda"]["fusion"]["search"])
        return self.read / GPU_MEMORY_RATE


@cache
def graph_bytes() -> dict[str, float]:
    """Bytes per triple of what units get of the graph, counted on the demo pair."""
    graphs = generate(SHAPES["demo"], 0).task.graphs
    triples = sum(graph.num_triples for graph in graphs)
    cpu = torch.device("cpu")

    def size(*values: object) -> float:
        return sum(part.nbytes for value in values for part in pack(value)[1]) / triples

    everyone = [torch.arange(graph.num_entities) for graph in graphs]
    return {
        "labels": size(LabelEdges.of(graphs, cpu)),
        "join": size(*(JoinEdges.of(*each) for each in zip(graphs, everyone, strict=True))),
        "evidence": size(*(LabeledEdges.of(graph, cpu) for graph in graphs)),
    }


def stages(size: Size, machines: Machines, shards: int | None = None) -> list[Stage]:
    """All stages of a run with `fast` on so many shards."""
    shards = shards or machines.all_cores
    return [
        *_propagation(size, machines, shards),
        *_fusion(size, machines, shards),
        *_links(size, machines, shards),
    ]


def _propagation(size: Size, machines: Machines, shards: int) -> list[Stage]:
    config, of_graph = size.config.propagation, graph_bytes()
    nodes, rounds, number = size.nodes, config.rounds, 4
    labels, features = number * nodes * config.dimension, number * nodes * config.features
    slab = number * nodes * min(SLAB, config.dimension)
    wide = number * nodes * min(AT_ONCE, config.features)
    graph = of_graph["labels"] * size.triples
    others = machines.count - 1
    return [
        Stage(
            "graph",
            ("LabelEdges.of",),
            size.triples,
            1,
            others * graph,
            24 * size.triples,
            UNION_BYTES * size.edges,
            graph,
        ),
        Stage(
            "labels",
            ("first_labels", "spread", "row_scales"),
            rounds * size.edges * config.dimension,
            -(-config.dimension // SLAB),
            rounds * 2 * labels,
            0,
            4 * slab,
            graph + labels / machines.count,
            read=2,
        ),
        Stage(
            "sketches",
            ("sketched",),
            (rounds + 1) * nodes * config.dimension * config.features,
            shards,
            (rounds + 1) * labels,
            0,
            (2 * features + labels) / shards,
            (2 * features + labels) / machines.count,
            is_product=True,
        ),
        Stage(
            "embeddings",
            ("sketch_parts", "set_sums", "heard", "described"),
            size.edges * config.features,
            -(-config.features // AT_ONCE),
            2 * features,
            features,
            3 * wide,
            graph + 2 * features / machines.count,
            read=4,
        ),
    ]


def _fusion(size: Size, machines: Machines, shards: int) -> list[Stage]:
    config, of_graph = size.config.fusion, graph_bytes()
    width, rows = size.config.propagation.features, size.rows
    vectors = 4 * width * rows
    lists, source, target = num_lists(rows), *size.free
    everywhere = machines.count * vectors
    is_exact = config.search != "approximate"
    compared = source * target if is_exact else rows * min(config.search_compared, max(size.free))
    found = []
    if not is_exact:
        sample = config.search_sample * lists
        found = [
            Stage(
                "centers",
                ("list_centers",),
                config.search_rounds * sample * lists * width,
                1,
                0,
                4 * sample * width,
                12 * sample * width,
                0,
                is_product=True,
            ),
            Stage(
                "lists",
                ("list_labels",),
                rows * lists * width,
                shards,
                0,
                vectors,
                2 * vectors / shards,
                0,
                is_product=True,
            ),
        ]
    count = max(config.candidates, config.hubness_neighbors)
    found.append(
        Stage(
            "search",
            ("_best_of_shard", "_merged", "_rescored", "searched", "_rows_of"),
            compared * width,
            shards,
            everywhere,
            vectors,
            vectors / shards + 4 * width * min(config.search_compared, target) + 2**30,
            vectors + SIMILARITY_BYTES * count * rows / machines.count,
            is_product=True,
        )
    )
    if not is_exact and config.search_joined:
        found.append(
            Stage(
                "join",
                ("JoinEdges.of", "Partners.of", "Partners.swap", "_first", "with_joined"),
                rows * config.search_joined * width,
                shards,
                of_graph["join"] * size.triples * machines.count,
                16 * rows,
                (vectors + 24 * count * rows) / shards,
                vectors + of_graph["join"] * size.triples,
            )
        )
    rounds = config.sinkhorn_rounds * (1 + config.support_rounds) + 1
    cells = size.cells
    by_both = 2 * 16 * cells / machines.count
    of_columns = 16 * shards * target  # what each shard has for all columns; the driver gets it
    return [
        *found,
        Stage(
            "Sinkhorn",
            (
                *("cells_of_neighbors", "candidate_cells", "value_range", "row_sums"),
                *("cells_of_columns", "column_sums", "new_potentials", "with_potentials"),
                *("Sums.is_empty", "Neighbors.mean"),
            ),
            2 * rounds * cells,
            shards,
            rounds * machines.count * 8 * rows + 4 * 20 * cells,
            16 * rows,
            60 * cells / shards,
            by_both,
            read=16,
        ),
        Stage(
            "evidence",
            (
                *("LabeledEdges.of", "Prior.of", "BestOfShard.of", "kinds_met", "kind_totals"),
                *("with_evidence", "whole_with_gains", "sums_of_plan"),
            ),
            config.support_rounds * cells * DEGREE_SHARE * size.edges / size.nodes,
            shards,
            of_graph["evidence"] * size.triples * machines.count,
            of_columns * (1 + config.support_rounds),
            100 * cells / shards,
            of_graph["evidence"] * size.triples + by_both + of_columns / machines.count,
            read=40,
        ),
    ]


def _links(size: Size, machines: Machines, shards: int) -> list[Stage]:
    similarity = STORED_BYTES * size.cells  # in a file of the driver
    block = MATCHED_BYTES * BLOCK_SIZES["matched"]["cpu"]
    of_columns = 24 * size.target  # the highest values of each, and how many there are
    return [
        Stage(
            "matching",
            (
                *("Firsts.of", "Firsts.of_rest", "ComparedRows.of"),
                *("CellRows.only", "CellRows.without"),
            ),
            size.cells,
            shards,
            0,
            2 * similarity,  # from the fusion, and to the units
            block + of_columns + 2 * LEFT_SHARE * similarity / shards,
            CHOSEN_BYTES * size.nodes + similarity / machines.count,
        ),
        Stage(
            "writing",
            (),
            size.cells,
            1,
            0,
            0,
            SUM_BYTES * WRITTEN + NAMED_BYTES * size.nodes,
            0,
        ),
    ]


# ---- constants and predictions


def spent(stage: Stage, record: Record) -> float:
    """The CPU seconds that a run spent on a stage."""
    of_units = sum(record["cpu_of_units"].get(name, 0.0) for name in stage.units)
    # Seconds of the driver: it matched alone when some runs were measured.
    return float(of_units or record["stages"].get(stage.name, 0.0))


def size_of(record: Record) -> Size:
    """The size of a run."""
    source, target = record["entities"]
    return Size.of(source, target, sum(record["triples"]), record["seeds"], record["settings"])


HERE = Machines(1, 2, 24e9, 1e9)  # where runs are measured


def known_from(record: Record) -> dict[str, float]:
    """CPU seconds of an operation of each stage, by a run."""
    every = stages(size_of(record), HERE, record["shards"])
    return {each.name: spent(each, record) / each.operations for each in every}


def undisturbed(records: Iterable[Record]) -> dict[tuple[str, str], Record]:
    """Pair and settings → its run on Ray."""
    found: dict[tuple[str, str], Record] = {}
    for record in records:
        run = Run.of(record)
        if run.engine == "ray" and run.shards in (8, None) and not (run.nodes or run.lost):
            found[run.pair, run.settings] = record
    return found


def fitted_to(records: Sequence[Record]) -> Record | None:
    """The run that the constants are from: the largest with the search of large pairs."""
    found = [
        each
        for each in undisturbed(records).values()
        if size_of(each).config.fusion.search == "approximate"
    ]
    return max(found, key=lambda each: sum(each["entities"]), default=None)


def checked(records: Sequence[Record]) -> list[str]:
    """A table of predicted and measured CPU seconds."""
    from_run = fitted_to(records)
    if from_run is None:
        return ["No run was measured."]
    known = known_from(from_run)
    runs = {key: undisturbed(records)[key] for key in MEASURED if key in undisturbed(records)}
    by_stage: dict[str, list[str]] = {}
    totals = np.zeros((len(runs), 2))
    for number, record in enumerate(runs.values()):
        for stage in stages(size_of(record), HERE, record["shards"]):
            cells = by_stage.setdefault(stage.name, ["–"] * len(runs))
            predicted = stage.operations * known[stage.name]
            cells[number] = f"{predicted:,.1f} / {spent(stage, record):,.1f}"
            totals[number] += predicted, spent(stage, record)
    head = [
        f"{int(pair):,}"
        + (", approximate" if settings else "")
        + (", fitted" if record is from_run else "")
        for (pair, settings), record in runs.items()
    ]
    by_stage["all"] = [f"{predicted:,.0f} / {took:,.0f}" for predicted, took in totals]
    return table(["CPU seconds", *head], ([name, *cells] for name, cells in by_stage.items()))


def plan(size: Size, machines: Sequence[Machines], known: dict[str, float]) -> list[str]:
    """A table of the stages."""
    lines = []
    totals = [0.0] * len(machines)
    first, *_ = machines
    for own, *others in zip(*(stages(size, each) for each in machines), strict=True):
        times = [
            stage.seconds(each, known) for stage, each in zip((own, *others), machines, strict=True)
        ]
        totals = [total + each for total, each in zip(totals, times, strict=True)]
        memory = own.memory(first)
        is_more = " **" if memory > first.memory else " "
        lines.append(
            [
                own.name,
                f"{own.operations:.1e}",
                f"{(own.moved + own.by_driver) / 1e9:,.0f}",
                f"{is_more}{memory / 1e9:,.0f}{is_more[::-1]}".strip(),
                *(_minutes(each) for each in times),
            ]
        )
    lines.append(["all", "", "", "", *(_minutes(each) for each in totals)])
    more = [_wider_search(size, each) for each in machines]
    times = [stage.seconds(each, known) for stage, each in zip(more, machines, strict=True)]
    shown = ["search, wider", f"{more[0].operations:.1e}", "", ""]
    lines.append([*shown, *(_minutes(each) for each in times)])
    head = ["stage", "operations", "GB moved", "GB of a machine"]
    return table([*head, *(f"{each.name}, min" for each in machines)], lines)


def _wider_search(size: Size, machines: Machines) -> Stage:
    """A search that compares a larger share of the other side."""
    (own,) = (each for each in stages(size, machines) if each.name == "search")
    source, target = size.free
    width = size.config.propagation.features
    return replace(own, operations=2 * WIDER * source * target * width)


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:,.1f}"


WIKIDATA = Size.of(100_000_000, 50_000_000, 1_000_000_000, 5_000_000)
SMALL = Machines(16, 16, 64e9, 1.25e9)  # 10 Gb/s
GPUS = Machines(1, 8, 8 * 141e9, 4e11, are_gpus=True)  # NVLink


def written(page: str, records: Sequence[Record]) -> str:
    """The page with its tables."""
    from_run = fitted_to(records)
    known = {} if from_run is None else known_from(from_run)
    page = between_markers(page, "plan", plan(WIKIDATA, (SMALL, GPUS), known))
    page = between_markers(page, "predicted", checked(records))
    return between_markers(page, "measured", cost_table(records))


def main() -> None:
    """Prints or writes the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    whole: Callable[[str], int] = lambda text: int(float(text))  # noqa: E731
    parser.add_argument("--entities", nargs=2, type=whole, default=[100_000_000, 50_000_000])
    parser.add_argument("--triples", type=whole, default=1_000_000_000)
    parser.add_argument("--seeds", type=whole, default=5_000_000)
    parser.add_argument("--machines", type=int, default=SMALL.count)
    parser.add_argument("--cores", type=int, default=SMALL.cores)
    parser.add_argument("--memory", type=float, default=SMALL.memory, help="bytes of a machine")
    parser.add_argument("--rate", type=float, default=SMALL.rate, help="bytes per second")
    parser.add_argument("--gpus", type=int, default=GPUS.cores)
    parser.add_argument("--records", type=Path, default=RESULTS / "cluster.jsonl")
    parser.add_argument("--write", action="store_true", help=f"into {PAGE.name}")
    given = parser.parse_args()
    records = read_records(given.records)
    if given.write:
        PAGE.write_text(written(PAGE.read_text(), records))
        return
    source, target = given.entities
    size = Size.of(source, target, given.triples, given.seeds)
    asked = Machines(given.machines, given.cores, given.memory, given.rate)
    gpus = Machines(1, given.gpus, GPUS.memory, GPUS.rate, are_gpus=True)
    from_run = fitted_to(records)
    known = {} if from_run is None else known_from(from_run)
    print("\n".join([*plan(size, (asked, gpus), known), "", *checked(records)]))


if __name__ == "__main__":
    main()

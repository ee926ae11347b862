"""Approximate nearest neighbors on a CPU: our lists beside the libraries that others use.

    .venv/bin/python benchmarks/neighbors.py ROW … [--entities 300000] [--scratch FOLDER]

The vectors are those of label propagation as `fast` has them at a million entities (512 numbers),
for a generated pair of DBP1M's shape with so many entities on both sides together. The entities in
no seed are searched for their 50 nearest of the other side, in both directions. Rows:

- `exact`: our exact search
- `lists`: our approximate search with several `search_compared`, without and with the join over
  known partners
- `faiss-flat`, `faiss-pq`, `faiss-fast-scan`, `faiss-rabitq`: inverted files of faiss, with whole
  vectors, and with vectors of bytes, of half bytes and of bits that are refined with whole ones
- `faiss-hnsw`, `hnswlib`, `usearch`: graphs; `scann`: an inverted file with half bytes

The libraries are no dependencies of the project. Compared were `faiss-cpu==1.15.1`,
`hnswlib==0.8.0`, `usearch==2.26.6` and `scann==1.4.2`, installed from PyPI.

Each row has a process of its own with one thread. `build_seconds` and `search_seconds` are CPU
seconds for both directions; what we build is counted as search. A library searches for 2,000 rows
of each side, and its `search_seconds` are scaled to all rows; our search has all rows. These rows
are the ends of 2,000 test links. `recall` is the mean share of their 50 nearest that is found: one
that is found counts if it is no worse than the 50th, since ties may fall either way. `covered` is
the share of the links that are among the 50 found for either end. `host_bytes` is the peak of the
process, which holds the vectors of both sides. A record replaces that of the same setting.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from math import isqrt
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clusterea.config import FusionConfig, PropagationConfig
from clusterea.engines import InMemory
from clusterea.fusion.undecided import Undecided, undecided
from clusterea.sharded import propagate
from clusterea.sharded.search import joined, search, whole
from clusterea.sharded.shards import Shards
from clusterea.types import Benchmark, Pair
from common import RESULTS, Record, commit, device_name, generated, host_peak, put_record, scaled

IDENTITY = ("entities", "method", "setting", "device")
K = 50
CHECKED = 2000  # test links
STEP = 65_536  # rows of a block
COMPARED = (8192, 16_384, 32_768, 65_536)
CPU = torch.device("cpu")

Floats: TypeAlias = NDArray[np.float32]
Search: TypeAlias = Callable[[Floats, int], NDArray[np.int64]]  # queries, effort → (queries, K)


# ---- what is searched


@dataclass(frozen=True)
class Problem:
    """The rows of a pair, and the true neighbors of some of them."""

    benchmark: Benchmark
    entities: Undecided
    links: Tensor  # (CHECKED, 2): rows
    least: Tensor  # (CHECKED, 2): the cosine of the 50th neighbor of each end

    @classmethod
    def of(cls, num_entities: int, folder: Path) -> Problem:
        """Embeddings and cosines are computed once, and kept in the folder."""
        benchmark = generated(scaled(num_entities))
        paths = [folder / f"{num_entities}-{side}.npy" for side in ("source", "target")]
        kept = folder / f"{num_entities}-least.npy"
        if not kept.exists():
            made = propagate(benchmark.task, PropagationConfig(dimension=256, features=512))
            for path, embeddings in zip(paths, made, strict=True):
                np.save(path, embeddings.numpy())
        tables = Pair(*(torch.from_numpy(np.load(path, mmap_mode="c")) for path in paths))
        task = benchmark.task
        entities = undecided([tables], task.seeds, task.tie_keys, 0, CPU)
        draw = np.random.default_rng(0)
        chosen = torch.from_numpy(draw.permutation(benchmark.test_links)[:CHECKED])
        links = torch.stack(
            [row_of(ids)[ends] for ids, ends in zip(entities.entities, chosen.T, strict=True)], 1
        )
        if not kept.exists():
            sides = entities.tables.zip(entities.entities)
            rows = sides.map(lambda side: side[0].rows(side[1]))
            np.save(
                kept,
                np.stack(
                    [
                        least_of(rows.source[links[:, 0]], rows.target),
                        least_of(rows.target[links[:, 1]], rows.source),
                    ],
                    1,
                ),
            )
        return cls(benchmark, entities, links, torch.from_numpy(np.load(kept)))

    def vectors(self) -> Pair[Tensor]:
        """(rows, 512) of each side."""
        return self.entities.tables.zip(self.entities.entities).map(
            lambda side: side[0].rows(side[1])
        )

    def judged(self, found: Pair[Tensor]) -> Record:
        """How good the (CHECKED, K) neighbors of the links' ends are; -1 stands for none."""
        tables, entities = list(self.entities.tables), list(self.entities.entities)
        shares, hits = [], []
        for side, near in enumerate(found):
            other = 1 - side
            own = tables[side].rows(entities[side][self.links[:, side]])
            others = tables[other].rows(entities[other][near.clamp(min=0).flatten()])
            cosines = torch.einsum("rd,rkd->rk", own, others.view(*near.shape, -1))
            is_good = (cosines >= self.least[:, side : side + 1] - 1e-5) & (near >= 0)
            shares.append(float(is_good.double().mean()))
            hits.append((near == self.links[:, other : other + 1]).any(1))
        covered = float((hits[0] | hits[1]).double().mean())
        return {"recall": sum(shares) / 2, "covered": covered}


def row_of(entities: Tensor) -> Tensor:
    """(entities,): the row of each; -1 where it has none."""
    rows = torch.full((int(entities.max()) + 1,), -1)
    rows[entities] = torch.arange(len(entities))
    return rows


def least_of(rows: Tensor, others: Tensor) -> Floats:
    """(rows,): the K-th of the largest cosines, by brute force."""
    best = rows.new_full((len(rows), K), -torch.inf)
    for part in torch.split(others, STEP):
        best = torch.cat([best, rows @ part.T], 1).topk(K, dim=1).values
    return best[:, -1].numpy()


# ---- our search


def our_rows(
    name: str, problem: Problem, compared_with: Sequence[int]
) -> Iterator[tuple[str, Record]]:
    """Each setting and its record."""
    if name == "exact":
        yield from ours("all compared", problem, FusionConfig(candidates=K))
        return
    for compared in compared_with:
        config = FusionConfig(candidates=K, search="approximate", search_compared=compared)
        yield from ours(f"{compared} compared", problem, config)


def ours(setting: str, problem: Problem, config: FusionConfig) -> Iterator[tuple[str, Record]]:
    """A search for all rows; then the join, if it is approximate."""
    engine, start = InMemory(), time.process_time()
    entities, vectors, found = search(engine, problem.entities, config, CPU)
    seconds = time.process_time() - start
    yield setting, judged_ours(problem, entities, found, seconds)
    if config.search == "approximate":
        task = problem.benchmark.task
        start = time.process_time()
        found = joined(engine, found, vectors, entities, task.graphs, task.seeds, config)
        seconds += time.process_time() - start
        yield f"{setting}, joined", judged_ours(problem, entities, found, seconds)


def judged_ours(
    problem: Problem,
    entities: Undecided,
    found: Pair[Shards],
    seconds: float,
) -> Record:
    """The record of a search, which may have the rows in another order."""
    before, after = problem.entities.entities, entities.entities
    ends = Pair(*problem.links.T)
    near = whole(InMemory(), found).map(lambda side: side.indices)
    chosen = Pair(
        near.source[row_of(after.source)[before.source[ends.source]]],
        near.target[row_of(after.target)[before.target[ends.target]]],
    )
    old = before.zip(after).map(lambda side: row_of(side[0])[side[1]])
    indices = Pair(old.target[chosen.source], old.source[chosen.target])
    return {
        "build_seconds": 0.0,
        "search_seconds": seconds,
        "host_bytes": host_peak(),
        **problem.judged(indices),
    }


# ---- libraries


@dataclass(frozen=True)
class Library:
    """How an index is built and searched; more effort finds more."""

    package: str
    build: Callable[[Floats], Search]
    setting: str  # of building
    effort: str  # what it counts
    efforts: Sequence[int]


def num_cells(rows: Floats) -> int:
    """How many lists an inverted file has."""
    return 4 * isqrt(len(rows))


def faiss() -> Any:
    """The module, with one thread, and products for this CPU."""
    flags = Path("/proc/cpuinfo").read_text()
    kinds = {"avx512f": "SkylakeX", "avx2": "Haswell"}
    found = [kind for flag, kind in kinds.items() if flag in flags]
    os.environ.setdefault("OPENBLAS_CORETYPE", (found or [""])[0])  # or it may take a Prescott
    module = import_module("faiss")
    module.omp_set_num_threads(1)
    return module


def by_factory(description: str, refined: int = 0) -> Callable[[Floats], Search]:
    """An inverted file of faiss; `refined` times as many as wanted are compared exactly."""

    def build(rows: Floats) -> Search:
        made = faiss()
        text = description.format(cells=num_cells(rows))
        index = made.index_factory(rows.shape[1], text, made.METRIC_INNER_PRODUCT)
        inverted = made.extract_index_ivf(index)
        inverted.cp.niter, inverted.cp.max_points_per_centroid = 10, 64
        index.train(rows)
        index.add(rows)

        def search_rows(queries: Floats, effort: int) -> NDArray[np.int64]:
            inverted.nprobe = effort
            if refined:
                index.k_factor = refined
            found: NDArray[np.int64] = index.search(queries, K)[1]
            return found

        return search_rows

    return build


def faiss_graph(rows: Floats) -> Search:
    """HNSW of faiss."""
    made = faiss()
    index = made.IndexHNSWFlat(rows.shape[1], 24, made.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 64
    index.add(rows)

    def search_rows(queries: Floats, effort: int) -> NDArray[np.int64]:
        index.hnsw.efSearch = effort
        found: NDArray[np.int64] = index.search(queries, K)[1]
        return found

    return search_rows


def hnswlib_graph(rows: Floats) -> Search:
    """HNSW of hnswlib."""
    index = import_module("hnswlib").Index(space="ip", dim=rows.shape[1])
    index.init_index(max_elements=len(rows), M=24, ef_construction=64)
    index.add_items(rows, num_threads=1)

    def search_rows(queries: Floats, effort: int) -> NDArray[np.int64]:
        index.set_ef(effort)
        return np.asarray(index.knn_query(queries, K, num_threads=1)[0], np.int64)

    return search_rows


def usearch_graph(rows: Floats) -> Search:
    """HNSW of usearch, with vectors in two bytes a number."""
    index = import_module("usearch.index").Index(
        ndim=rows.shape[1], metric="ip", dtype="bf16", connectivity=24, expansion_add=64
    )
    index.add(np.arange(len(rows)), rows, threads=1)

    def search_rows(queries: Floats, effort: int) -> NDArray[np.int64]:
        index.expansion_search = effort
        return np.asarray(index.search(queries, K, threads=1).keys, np.int64)

    return search_rows


def scann_tree(rows: Floats) -> Search:
    """An inverted file of scann; eight times as many as wanted are compared exactly."""
    builder = import_module("scann").scann_ops_pybind.builder(rows, K, "dot_product")
    cells = num_cells(rows)
    builder = builder.set_n_training_threads(1).tree(
        num_leaves=cells, num_leaves_to_search=16, training_sample_size=64 * cells
    )
    made = builder.score_ah(2, anisotropic_quantization_threshold=0.2).reorder(8 * K).build()

    def search_rows(queries: Floats, effort: int) -> NDArray[np.int64]:
        found, _ = made.search_batched(queries, leaves_to_search=effort)
        return np.asarray(found, np.int64)

    return search_rows


PROBES = (8, 16, 32, 64, 128)
GRAPHS = (64, 128, 256, 512)
GRAPH = "24 links, 64 compared"
LIBRARIES = {
    "faiss-flat": Library("faiss-cpu", by_factory("IVF{cells},Flat"), "IVF,Flat", "probes", PROBES),
    "faiss-pq": Library(
        "faiss-cpu",
        by_factory("IVF{cells},PQ64,RFlat", 8),
        "IVF,PQ64,RFlat, 8 refined",
        "probes",
        PROBES,
    ),
    "faiss-fast-scan": Library(
        "faiss-cpu",
        by_factory("IVF{cells},PQ256x4fs,RFlat", 8),
        "IVF,PQ256x4fs,RFlat, 8 refined",
        "probes",
        PROBES,
    ),
    "faiss-rabitq": Library(
        "faiss-cpu",
        by_factory("IVF{cells},RaBitQfs,RFlat", 8),
        "IVF,RaBitQfs,RFlat, 8 refined",
        "probes",
        PROBES,
    ),
    "faiss-hnsw": Library("faiss-cpu", faiss_graph, GRAPH, "searched", GRAPHS),
    "hnswlib": Library("hnswlib", hnswlib_graph, GRAPH, "searched", GRAPHS),
    "usearch": Library("usearch", usearch_graph, f"{GRAPH}, bf16", "searched", GRAPHS),
    "scann": Library("scann", scann_tree, "tree, half bytes, 8 reordered", "leaves", PROBES),
}


def library_rows(name: str, problem: Problem) -> Iterator[tuple[str, Record]]:
    """Each setting and its record."""
    library = LIBRARIES[name]
    vectors = problem.vectors()
    build, searching = 0.0, dict.fromkeys(library.efforts, 0.0)
    found: dict[int, list[Tensor]] = {effort: [] for effort in library.efforts}
    for side, (own, others) in enumerate((vectors, vectors.swap())):
        start = time.process_time()
        search_rows = library.build(others.numpy())
        build += time.process_time() - start
        queries = own[problem.links[:, side]].numpy()
        for effort in library.efforts:
            start = time.process_time()
            near = search_rows(queries, effort)
            seconds = time.process_time() - start
            searching[effort] += seconds * len(own) / len(queries)
            found[effort].append(torch.from_numpy(near))
        del search_rows
    peak = host_peak()
    for effort in library.efforts:
        yield (
            f"{library.setting}; {effort} {library.effort}",
            {
                "version": f"{library.package} {version(library.package)}",
                "build_seconds": build,
                "search_seconds": searching[effort],
                "host_bytes": peak,
                **problem.judged(Pair(*found[effort])),
            },
        )


# ---- the command

OURS = ("exact", "lists")


def measured(
    name: str, entities: int, folder: Path, out: Path, compared_with: Sequence[int]
) -> None:
    """Keeps and prints the records of a row, in a process of its own."""
    torch.set_num_threads(1)
    problem = Problem.of(entities, folder)
    rows = our_rows(name, problem, compared_with) if name in OURS else library_rows(name, problem)
    for setting, found in rows:
        record: Record = {"entities": entities, "method": name, "setting": setting, **found}
        record["cpu_seconds"] = record["build_seconds"] + record["search_seconds"]
        record |= {"rows": list(problem.entities.num_rows), "threads": 1}
        record |= {"device": device_name(CPU), "commit": commit()}
        print(json.dumps(record), flush=True)
        put_record(out, record, IDENTITY)


def main() -> None:
    """Measures the rows that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="+", choices=[*OURS, *LIBRARIES], metavar="ROW")
    parser.add_argument("--entities", type=int, default=300_000)
    parser.add_argument("--compared", nargs="*", type=int, default=COMPARED, help="of lists")
    parser.add_argument("--scratch", type=Path, help="keep embeddings and cosines there")
    parser.add_argument("--out", type=Path, default=RESULTS / "neighbors.jsonl")
    arguments = parser.parse_args()
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    with TemporaryDirectory() as temporary:
        folder = arguments.scratch or Path(temporary)
        for name in arguments.rows:
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                given = name, arguments.entities, folder, arguments.out, arguments.compared
                pool.submit(measured, *given).result()


if __name__ == "__main__":
    main()

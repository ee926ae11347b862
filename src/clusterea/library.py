"""The functions for Python callers: `load`, `align` and `fuse`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

import numpy as np

from clusterea.config import Config, FusionConfig
from clusterea.config import preset as find_preset
from clusterea.data import load as load_data
from clusterea.data.features import given_features
from clusterea.data.given_decisions import DecisionSource, decided
from clusterea.data.in_memory import GraphSource, LinkSource
from clusterea.engines import Engine, check_engine, open_engine
from clusterea.errors import InputError, names_arguments
from clusterea.files import is_uri
from clusterea.pipeline import (
    AlignmentResult,
    Observer,
    PythonWarnings,
    check_names,
    choose_device,
    find_previous,
    run_in_folder,
)
from clusterea.pipeline import align as run_stages
from clusterea.pipeline.memory import memory_limit, within
from clusterea.pipeline.result import numbered
from clusterea.review.answers import answers_of
from clusterea.run_lock import run_lock
from clusterea.sizes import parse_size
from clusterea.threads import are_excessive, available_cpus
from clusterea.types import (
    AlignmentTask,
    Benchmark,
    IntArray,
    KnowledgeGraph,
    Pair,
    Partition,
    Similarity,
)
from clusterea.workspace import Workspace, in_folder, task_key

if TYPE_CHECKING:
    import torch
    from numpy.typing import ArrayLike
    from torch import Tensor

    Features: TypeAlias = Pair[Any] | tuple[ArrayLike, ArrayLike]


# Errors name arguments here; the command line uses `load_data`, whose errors name options.
load = names_arguments(load_data)


@contextmanager
def _within_quota() -> Iterator[None]:
    """Takes only as many threads as the quota allows, where torch was loaded before this package.

    Afterwards torch has as many as before. `set_thread_defaults` is for the other order.
    """
    torch: Any = sys.modules.get("torch")
    threads = 0 if torch is None else torch.get_num_threads()
    if not are_excessive(threads):
        yield
        return
    torch.set_num_threads(available_cpus())
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@overload
def align(
    source: Benchmark | AlignmentTask,
    *,
    preset: str = "default",
    features: Features | None = None,
    decisions: DecisionSource | None = None,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    settings: Mapping[str, object] | Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    memory: int | str | None = None,
    engine: str = "local",
    address: str | None = None,
    shards: int | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> AlignmentResult: ...


@overload
def align(
    source: Benchmark | AlignmentTask,
    preset: str,
    /,
    *,
    features: Features | None = None,
    decisions: DecisionSource | None = None,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    settings: Mapping[str, object] | Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    memory: int | str | None = None,
    engine: str = "local",
    address: str | None = None,
    shards: int | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> AlignmentResult: ...


@overload
def align(
    source: GraphSource,
    target: GraphSource,
    *,
    links: LinkSource | None = None,
    seeds: LinkSource | None = None,
    test_links: LinkSource | None = None,
    preset: str = "default",
    features: Features | None = None,
    decisions: DecisionSource | None = None,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    settings: Mapping[str, object] | Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    memory: int | str | None = None,
    engine: str = "local",
    address: str | None = None,
    shards: int | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> AlignmentResult: ...


@names_arguments
@_within_quota()
def align(
    source: Benchmark | AlignmentTask | GraphSource,
    target: GraphSource | None = None,
    *,
    links: LinkSource | None = None,
    seeds: LinkSource | None = None,
    test_links: LinkSource | None = None,
    preset: str = "default",
    features: Features | None = None,
    decisions: DecisionSource | None = None,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    settings: Mapping[str, object] | Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    memory: int | str | None = None,
    engine: str = "local",
    address: str | None = None,
    shards: int | None = None,
    run: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> AlignmentResult:
    """Finds which entities of two graphs are the same.

    >>> import clusterea
    >>> benchmark = clusterea.load("path/to/openea-folder", seeds_share=0.3)
    >>> result = clusterea.align(benchmark, preset="fast", device="cpu")
    >>> list(result.to_pandas().columns) == ["source", "target", result.alignment.measure]
    True
    >>> metrics = result.evaluate()
    >>> 0 <= metrics.all_candidates.source.hits[1] <= 1
    True

    Args:
        source: The result of `load`, its `task`, or the source graph in any form that `load` takes.
        target: The target graph, if `source` is a graph; otherwise it may be the preset.
        links: The known links between two graphs, in any form that `load` takes.
        seeds: The seeds, instead of `links`.
        test_links: The test links, with `seeds`; only `evaluate` and the report use them.
        preset: paper, default or fast.
        features: Vectors of your own: two arrays, source and target, in which row i is that of
            entity i (`benchmark.names.source[i]`). Rows of zeros stand for no vector.
        decisions: What a person decided: a file from `clusterea review`, rows of source, target and
            "same" or "different", answers, or `Decisions`. Accepted pairs are seeds, and rejected
            ones are never linked. Default: the file decisions.sssom.tsv in `run`, if there is one.
        model: Encoders instead of the preset's.
        samplers: Samplers instead of the preset's.
        settings: Other settings, as `{"training.epochs": 10}` or `["training.epochs=10"]`.
        seed: Random seed: same seed, same result.
        device: auto, cpu or cuda.
        memory: Most memory to take, in bytes or as "20GiB": of the GPU, or of the host if there is
            none. Raises if it can't be kept.
        engine: local, or ray for a Ray cluster. Results are the same.
        address: HOST:PORT of the cluster; default: Ray is started on this machine.
        shards: Parts that the work is cut into. More take less memory; on one machine, parts that
            wait are on disk.
        run: A folder for the files of `clusterea align --out`, or a URI; a second call continues
            the run. With new decisions, it is a warm restart: it goes on from what the last run
            learned. The local copy of a run at a URI is removed when Python ends.
        overwrite: Remove the run in the folder, and start over.
        observer: Gets progress and warnings. Without one, warnings are Python warnings.
    """
    if not isinstance(source, Benchmark | AlignmentTask):
        if features is not None:
            raise InputError(
                "features go with the result of `load`: row i is that of its entity i. Load the "
                "graphs first, or give `load` files of features."
            )
        source = load_data(source, target, links=links, seeds=seeds, test_links=test_links)
    else:
        if isinstance(target, str):  # as in `align(task, "fast")`
            preset, target = target, None
        if any(each is not None for each in (target, links, seeds, test_links)):
            raise InputError(
                f"a {type(source).__name__} has its graphs and links: expected only the preset and "
                "other settings, by name."
            )
    benchmark, task = (source, source.task) if isinstance(source, Benchmark) else (None, source)
    if features is not None:
        task = replace(task, features=given_features(features, task.num_entities))
        benchmark = None if benchmark is None else replace(benchmark, task=task)
    larger = max(graph.num_entities for graph in task.graphs)
    given = (
        [f"{name}={_text(value)}" for name, value in settings.items()]
        if isinstance(settings, Mapping)
        else settings
    )
    check_engine(engine, shards, address)
    allowed = None if memory is None else parse_size(str(memory))
    watcher, torch_device = observer or PythonWarnings(), choose_device(device, engine)

    def choose(first: Sequence[str]) -> Config:
        return find_preset(
            preset, larger, model=model, samplers=samplers, seed=seed, settings=[*first, *given]
        )

    config = choose([])
    check_names(config)  # before anything is written
    if allowed is not None:
        config = within(choose, task, torch_device, allowed)
    folder = None if run is None or is_uri(str(run)) else Path(run)  # of temporary files
    opened = open_engine(engine, shards, address, folder, watcher.warn)
    with memory_limit(torch_device, allowed), opened as units:
        return _aligned(
            task,
            benchmark,
            config,
            torch_device,
            watcher,
            units,
            decisions,
            run,
            overwrite=overwrite,
        )


def _aligned(
    task: AlignmentTask,
    benchmark: Benchmark | None,
    config: Config,
    torch_device: torch.device,
    watcher: Observer,
    engine: Engine,
    decisions: DecisionSource | None,
    run: str | Path | None,
    *,
    overwrite: bool,
) -> AlignmentResult:
    """The result in memory, or in a folder; without a benchmark, entities have no names."""
    if run is None and decisions is None:
        result = run_stages(task, config, torch_device, observer=watcher, engine=engine)
        return replace(result, benchmark=benchmark)
    undecided = benchmark or numbered(task)  # without names, entities are named by number
    if run is None:
        data = decided(undecided, decisions or ())
        result = run_stages(data.task, config, torch_device, observer=watcher, engine=engine)
        return replace(result, benchmark=None if benchmark is None else data)
    with (
        in_folder(run, "clusterea.align", keeps=True) as folder,
        run_lock(folder, "clusterea.align"),
    ):
        workspace, claimed = Workspace(folder), task_key(task)
        if not overwrite:
            workspace.check_task(claimed, option="overwrite=True")
        own = answers_of(folder, undecided) if decisions is None else decisions
        data = decided(undecided, own)
        workspace.claim(claimed, overwrite=overwrite, option="overwrite=True")
        previous = find_previous(workspace, data.task, config, torch_device)
        result, _ = run_in_folder(
            workspace,
            data,
            config,
            torch_device,
            watcher,
            task=claimed,
            previous=previous,
            engine=engine,
        )
        return replace(result, benchmark=None if benchmark is None else data)


def _text(value: object) -> str:
    """The value as `--set` takes it: several names are separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@names_arguments
@_within_quota()
def fuse(
    source: ArrayLike | Tensor,
    target: ArrayLike | Tensor,
    seeds: ArrayLike | Tensor = (),
    *,
    partitions: Sequence[Partition] = (),
    graphs: Pair[KnowledgeGraph] | None = None,
    keys: Pair[IntArray] | None = None,
    device: str = "auto",
    **settings: Any,
) -> Similarity:
    """The fused similarity of your own embeddings.

    >>> import numpy as np, clusterea
    >>> rows = np.random.default_rng(0).normal(size=(20, 8))
    >>> similarity = clusterea.fuse(rows, rows + 0.01, candidates=5, device="cpu")
    >>> similarity.num_entities
    Pair(source=20, target=20)

    Args:
        source: (entities, dim): nonzero vectors; they are normalized.
        target: (entities, dim).
        seeds: (n, 2): their entities are left out.
        partitions: Mini-batches for the view `local`; without any, this view is left out.
        graphs: The graphs of the entities (`task.graphs`), for the view `support`. Without them,
            and unless `views` is given, the view is `sinkhorn` instead.
        keys: Tie keys (`Names.keys`); default: the entities' ids.
        device: auto, cpu or cuda.
        **settings: Fields of `FusionConfig`.
    """
    import torch

    from clusterea.sharded import fuse as fuse_views

    def rows(values: ArrayLike | Tensor) -> Tensor:
        array = values if isinstance(values, torch.Tensor) else torch.tensor(np.asarray(values))
        return torch.nn.functional.normalize(array.float(), dim=1)

    embeddings = Pair(rows(source), rows(target))
    links = torch.tensor(np.asarray(seeds), dtype=torch.int64).reshape(-1, 2)
    if graphs is None:
        settings = {"views": ("local", "sinkhorn")} | settings
    return fuse_views(
        [embeddings],
        partitions,
        links,
        keys or embeddings.map(lambda side: np.arange(len(side))),
        FusionConfig(**settings),
        graphs=graphs,
        device=choose_device(device),
    )

"""The package as a library: `align` and `fuse` with everything that can be left out left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterea.config import FusionConfig
from clusterea.config import preset as find_preset
from clusterea.pipeline import AlignmentResult, Observer, choose_device
from clusterea.pipeline import align as run_stages
from clusterea.pipeline.align import check_names
from clusterea.run_lock import run_lock
from clusterea.types import AlignmentTask, IntArray, Pair, Partition, Similarity
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from torch import Tensor


def align(
    task: AlignmentTask,
    preset: str = "default",
    *,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    settings: Mapping[str, object] | Sequence[str] = (),
    seed: int = 0,
    device: str = "auto",
    run: str | Path | None = None,
    overwrite: bool = False,
    observer: Observer | None = None,
) -> AlignmentResult:
    """Which entities of the task's two graphs are the same.

    >>> import clusterea
    >>> benchmark = clusterea.load("path/to/openea-folder", seeds_share=0.3)
    >>> result = clusterea.align(benchmark.task, preset="fast", device="cpu")
    >>> result.alignment.links.shape[1]  # source entity, target entity
    2
    >>> metrics = result.evaluate(benchmark.test_links)
    >>> 0 <= metrics.all_candidates.source.hits[1] <= 1
    True

    Args:
        task: Two graphs and the seeds; `clusterea.load(…).task`.
        preset: paper, default or fast.
        model: Another encoder than the preset's.
        samplers: Others than the preset's.
        settings: Any setting, as `{"training.epochs": 10}` or `["training.epochs=10"]`.
        seed: Same seed, same result.
        device: auto, cpu or cuda.
        run: A folder that keeps each stage's result, so that a second call finds it.
        overwrite: Remove the run that the folder holds, and begin anew.
        observer: Told how far things are.
    """
    larger = max(graph.num_entities for graph in task.graphs)
    given = (
        [f"{name}={value}" for name, value in settings.items()]
        if isinstance(settings, Mapping)
        else settings
    )
    config = find_preset(preset, larger, model=model, samplers=samplers, seed=seed, settings=given)
    stages = partial(run_stages, task, config, choose_device(device), observer=observer)
    if run is None:
        return stages()
    check_names(config)  # before a folder is made
    with run_lock(Path(run), "clusterea.align"):
        workspace = Workspace(Path(run))
        workspace.claim(task_key(task), overwrite=overwrite, option="overwrite=True")
        return stages(workspace=workspace)


def fuse(
    source: ArrayLike | Tensor,
    target: ArrayLike | Tensor,
    seeds: ArrayLike | Tensor = (),
    *,
    partitions: Sequence[Partition] = (),
    keys: Pair[IntArray] | None = None,
    device: str = "auto",
    **settings: Any,
) -> Similarity:
    """The fused similarity of anybody's embeddings, without our training.

    >>> import numpy as np, clusterea
    >>> rows = np.random.default_rng(0).normal(size=(20, 8))
    >>> similarity = clusterea.fuse(rows, rows + 0.01, candidates=5, device="cpu")
    >>> similarity.num_entities
    Pair(source=20, target=20)

    Args:
        source: (entities, dim): rows of any length but zero.
        target: (entities, dim).
        seeds: (n, 2): known pairs, which are left out.
        partitions: Mini-batches in which Sinkhorn normalizes; without any, the global view alone.
        keys: What decides ties (`Names.keys`); the entities' numbers if not given.
        device: auto, cpu or cuda.
        **settings: Fields of `FusionConfig`.
    """
    import torch

    from clusterea.fusion import fuse as fuse_views

    def rows(values: ArrayLike | Tensor) -> Tensor:
        array = values if isinstance(values, torch.Tensor) else torch.tensor(np.asarray(values))
        return torch.nn.functional.normalize(array.float(), dim=1)

    embeddings = Pair(rows(source), rows(target))
    links = torch.as_tensor(np.asarray(seeds), dtype=torch.int64).reshape(-1, 2)
    decide = keys or embeddings.map(lambda side: np.arange(len(side)))
    return fuse_views(
        [embeddings],
        partitions,
        links,
        decide,
        FusionConfig(**settings),
        device=choose_device(device),
    )

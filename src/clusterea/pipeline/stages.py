"""The stages, each with its artifact: found in the run's folder, or made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from clusterea.config import (
    EncoderConfig,
    FusionConfig,
    MatchingConfig,
    SamplingConfig,
    SelfTrainingConfig,
    TrainingConfig,
)
from clusterea.pipeline.artifacts import (
    Artifacts,
    entity_counts,
    pack_alignment,
    pack_links,
    pack_pair,
    pack_partition,
    pack_similarity,
    unpack_alignment,
    unpack_links,
    unpack_pair,
    unpack_partition,
    unpack_similarity,
)
from clusterea.pipeline.encoding import Known, without_seeds
from clusterea.types import Alignment, AlignmentTask, IntArray, Pair, Partition, Similarity
from clusterea.workspace import FileCheckpoints, recipe_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.samplers import Cut
    from clusterea.training import EncoderProgress

GIVEN = "given"  # the links kept by --min-confidence or --top
Steps = Callable[[str, int, int], None]  # what is being done, how far, of how much


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """What the confidence of links is fitted on: seeds held out, while they were."""

    pairs: Tensor  # (n, 2)
    key: str = ""  # of the last similarity before they rejoined; "": they never did
    similarity: Callable[[], Similarity] | None = None  # it


def train_stage(
    artifacts: Artifacts,
    known: Known,
    config: EncoderConfig,
    device: torch.device,
    progress: Callable[[EncoderProgress], None] | None = None,
) -> tuple[str, Pair[Tensor]]:
    """The embeddings of one encoder and their key; training that was broken off goes on."""
    from clusterea.training import propagate, train

    recipe = config.recipe() | known.recipe()
    checkpoints = None
    if artifacts.workspace is not None and isinstance(config, TrainingConfig):
        name = f"{recipe_key('train', recipe, known.parents)}.safetensors"
        place = artifacts.workspace.folder / "checkpoints" / name
        checkpoints = FileCheckpoints(place, warn=artifacts.warn)

    def make() -> Pair[Tensor]:
        if isinstance(config, TrainingConfig):
            return train(
                known.task, config, device=device, checkpoints=checkpoints, progress=progress
            )
        return propagate(known.task, config, device=device, progress=progress)

    unpack = partial(unpack_pair, sizes=entity_counts(known.task))
    key, embeddings = artifacts.tensors("train", recipe, known.parents, make, pack_pair, unpack)
    if checkpoints is not None:
        checkpoints.remove()
    return key, embeddings


def point_at_encoders(artifacts: Artifacts, keys: Sequence[str]) -> None:
    """Makes these the encoders that the run's later commands work with."""
    if artifacts.workspace is not None:
        for place, key in enumerate(keys):
            artifacts.workspace.point(encoder_name(place), key)
        artifacts.workspace.forget(encoder_name(len(keys)))  # and so all beyond it


def encoder_name(place: int) -> str:
    """What the encoder at this place is called among a run's results: train, train-2 and so on."""
    return "train" if place == 0 else f"train-{place + 1}"


def sample_stage(
    artifacts: Artifacts,
    train_key: str,
    known: Known,
    embeddings: Callable[[], Pair[Tensor]],
    sampler: str,
    config: SamplingConfig,
    device: torch.device,
    cut: Cut,
) -> tuple[str, Partition]:
    """The mini-batches of one sampler and their key. `embeddings` is called if they are needed."""
    from clusterea.samplers import Resources, recipe, sample

    key, partition = artifacts.tensors(
        "sample",
        {"sampler": sampler, **recipe(sampler, config)} | known.recipe(),
        {"train": train_key} | known.learned(),
        lambda: sample(sampler, known.task, embeddings(), config, Resources(device, cut)),
        pack_partition,
        partial(unpack_partition, sizes=entity_counts(known.task)),
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point(f"sample-{sampler}", key)
    return key, partition


def fuse_stage(
    artifacts: Artifacts,
    parents: Mapping[str, str],
    task: AlignmentTask,
    encodings: Callable[[], Sequence[Pair[Tensor]]],
    partitions: Mapping[str, Partition],
    config: FusionConfig,
    device: torch.device,
    progress: Steps | None = None,
    shares: Sequence[float] | None = None,
    of_source: Tensor | None = None,
) -> tuple[str, Similarity]:
    """The fused similarity, on the host, and its key.

    Args:
        artifacts: Where results are kept.
        parents: The keys of the encoders, by `encoder_name`, and of each partition, by its sampler.
        task: Its seeds and structural entities are left out, its tie keys decide ties, its
            graphs give support.
        encodings: The embeddings of all encoders; called if they are needed.
        partitions: By sampler.
        config: What to compute.
        device: Where.
        progress: Called now and then.
        shares: What each encoder weighs; all the same if not given.
        of_source: What they weigh for each source entity, where the folds check each other.
    """
    from clusterea.fusion import fuse

    def make() -> Similarity:
        fused = fuse(
            encodings(),
            list(partitions.values()),
            task.seeds,
            task.tie_keys,
            config,
            shares=shares,
            of_source=of_source,
            graphs=task.graphs,
            structural=task.structural,
            device=device,
            progress=progress,
        )
        return fused.to("cpu")

    key, similarity = artifacts.tensors(
        "fuse",
        config.recipe()
        | ({} if shares is None else {"shares": list(shares)})
        | ({} if of_source is None else {"check": True}),  # by the folds of the parents
        parents,
        make,
        pack_similarity,
        partial(unpack_similarity, sizes=entity_counts(task)),
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("fuse", key)
    return key, similarity


def pseudo_seed_stage(
    artifacts: Artifacts,
    fuse_key: str,
    task: AlignmentTask,
    similarity: Callable[[], Similarity],
    config: SelfTrainingConfig,
    device: torch.device,
    held: Tensor | None = None,
) -> tuple[str, Tensor]:
    """(n, 2): the matches that the next round learns from, and their key.

    With seeds that were held out, it is the chance of a match that decides, not its score.
    """
    from clusterea.matching import chances, pseudo_seeds

    measure = "score" if held is None else config.measure

    def make() -> Tensor:
        scores = similarity().to(device)
        sure = None
        if held is not None and measure == "chance":
            sure = partial(chances, similarity=scores, task=task, pairs=held)
        return pseudo_seeds(
            scores,
            _keys(task, device),
            task.seeds,
            threshold=config.threshold,
            seed=config.seed,
            chances=sure,
        ).cpu()

    recipe = config.recipe() | {"measure": measure}
    unpack = partial(unpack_links, sizes=entity_counts(task))
    return artifacts.tensors("pseudo", recipe, {"fuse": fuse_key}, make, pack_links, unpack)


def match_stage(
    artifacts: Artifacts,
    fuse_key: str,
    task: AlignmentTask,
    similarity: Callable[[], Similarity],
    config: MatchingConfig,
    device: torch.device,
    trial: Trial | None = None,
) -> tuple[str, Alignment]:
    """The alignment and its key; with seeds that were held out, its confidence is calibrated."""
    from clusterea.matching import calibrated, fit_confidence, match, merged, without_pairs

    def make() -> Alignment:
        keys = _keys(task, device)

        def matched(scores: Similarity, seeds: IntArray) -> Alignment:
            return match(
                scores,
                keys,
                seeds,
                method=config.method,
                seed=config.seed,
                structural=task.structural,
            )

        if trial is None or not len(trial.pairs):
            return matched(similarity().to(device), task.seeds).to("cpu")
        others = without_seeds(task, trial.pairs)
        scores = (trial.similarity or similarity)().to(device)
        tried = matched(scores, others.seeds)
        confidence = fit_confidence(tried, scores, others, trial.pairs)
        if trial.similarity is not None:
            found = matched(similarity().to(device), task.seeds)
        else:
            kept = without_pairs(tried, trial.pairs)
            # Who was taken by a held-out entity is free again.
            decided = np.concatenate([task.seeds, kept.links.cpu().numpy()])
            found = merged(kept, matched(scores, decided))
        if confidence is not None:
            found = calibrated(found, scores, task, confidence, abstain=config.abstain)
        return found.to("cpu")

    parents = {"fuse": fuse_key}
    if trial is not None and trial.key:
        parents["trial"] = trial.key
    unpack = partial(unpack_alignment, sizes=entity_counts(task))
    key, alignment = artifacts.tensors(
        "match", config.recipe(), parents, make, pack_alignment, unpack
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point("match", key)
    return key, alignment


def give_stage(
    artifacts: Artifacts,
    match_key: str,
    task: AlignmentTask,
    alignment: Alignment,
    least: float = 0.0,
    top: int | None = None,
) -> tuple[str, Alignment]:
    """The links that the run's files have, all or the surest of them, and their key.

    Later commands find both: all links, and those that were given.
    """
    if not least and top is None:
        if artifacts.workspace is not None:
            artifacts.workspace.forget(GIVEN)
        return match_key, alignment
    key, given = artifacts.tensors(
        GIVEN,
        {"min_confidence": least, "top": top},
        {"match": match_key},
        lambda: alignment.bounded(least, top),
        pack_alignment,
        partial(unpack_alignment, sizes=entity_counts(task)),
    )
    if artifacts.workspace is not None:
        artifacts.workspace.point(GIVEN, key)
    return key, given


def _keys(task: AlignmentTask, device: torch.device) -> Pair[Tensor]:
    from torch import from_numpy

    return task.tie_keys.map(lambda side: from_numpy(side.copy()).to(device))

"""`align`: the paper's figure 2. Encode, sample, fuse, match; maybe in several fits and rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from clusterea.config import Config, SelfTrainingConfig
from clusterea.pipeline.learning import Encoding, Fit, Lesson, lessons
from clusterea.pipeline.observer import Observer, PythonWarnings
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.pipeline.stages import Stages, encoder_names
from clusterea.pipeline.store import Made, Store
from clusterea.types import Alignment, AlignmentTask, Partition, Similarity
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    import torch

Stage = Literal["train", "sample", "fuse", "match"]


def align(
    task: AlignmentTask,
    config: Config,
    device: torch.device,
    *,
    workspace: Workspace | None = None,
    observer: Observer | None = None,
    until: Stage = "match",
    samplers: Sequence[str] | None = None,
) -> AlignmentResult:
    """Finds which entities of two graphs are the same.

    Self-training repeats encoding, sampling and fusion. Each round learns from the seeds and from
    the most probable matches of the last round (pseudo-seeds). Where seeds are few, all this
    may be done twice, each time with other seeds held out; the two similarities are averaged.

    Args:
        task: Two graphs and the seeds.
        config: All settings.
        device: Where to compute.
        workspace: The run's folder. Results that it has are not computed again.
        observer: Gets progress and warnings. Without one, warnings are Python warnings.
        until: The last stage to run, in the last round.
        samplers: With `until="sample"`: the samplers to run last, if not those of the config.
    """
    check_names(config)
    config = replace(config, fusion=config.fusion.on(device.type))  # keys say what is really done
    observer = observer or PythonWarnings()
    whole = Made.of(task_key(task), task)
    similarity: Made[Similarity] | None = None
    alignment: Made[Alignment] | None = None
    with Stages(whole, config, device, Store(workspace, observer.warn), observer) as run:
        if until != "train":
            run.begin_metis([*config.samplers, *(samplers or ())])
        every = [_learned(run, fit, config.self_training, until, samplers) for fit in run.fits()]
        similarities = [each.similarity for each in every if each.similarity is not None]
        if similarities:
            similarity = run.mean(similarities)
        if until == "match" and similarity is not None:
            alignment = run.match(similarities, similarity)
    return AlignmentResult(
        task,
        config,
        encoder_names(every[0].encodings),
        every[0].partitions,
        similarity,
        alignment,
        tuple(run.costs),
        tuple(round_ for each in every for round_ in each.rounds),
        made_fits=tuple(similarities) if len(similarities) > 1 else (),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Learned:
    """What the last pass of a fit made."""

    rounds: Sequence[Round]
    encodings: Sequence[Encoding]
    partitions: Mapping[str, Made[Partition]]
    similarity: Made[Similarity] | None  # None: the run stops before


def _learned(
    run: Stages,
    fit: Fit,
    config: SelfTrainingConfig,
    until: Stage,
    samplers: Sequence[str] | None,
) -> _Learned:
    """A first pass, and rounds of self-training.

    In a pass, encoders learn from seeds and pseudo-seeds, mini-batches are sampled, and
    similarities fused. The last rounds have all encoders, those before them only label propagation.
    """
    rounds: list[Round] = []
    learned = [Lesson(fit.known, fit=fit.number)]
    left = run.rounds_ahead  # rounds after this pass; None: not known yet
    before: list[Encoding] = []  # embeddings of the last pass, if it had all encoders
    while True:
        has_all = left is not None and left < run.trained_rounds
        encodings = run.encode(learned, all_encoders=has_all)
        if left == 0:
            break
        partitions = run.sample(learned[0], encodings[0], run.used_samplers)
        similarity = run.fuse(fit, learned[0], encodings, partitions, check=True)
        found = run.choose(fit, similarity, len(rounds) + 1)
        rounds.append(Round.after(rounds, found, fit.number))
        if left is None and run.are_last(fit, rounds):
            left = run.trained_rounds
        left = None if left is None else left - 1
        learned = lessons(fit, found, len(rounds), config.folds, config.seed)
        before = encodings if has_all and len(found.value) else []
        left = left if len(found.value) else 0  # with the seeds alone, once is enough
        del encodings, partitions, similarity  # gigabytes of the round before
    if until == "train":
        return _Learned(rounds, encodings, {}, None)
    if until == "sample":
        partitions = run.sample(learned[0], encodings[0], samplers or run.samplers)
        return _Learned(rounds, encodings, partitions, None)
    partitions = run.sample(learned[0], encodings[0], run.used_samplers)
    similarity = run.fuse(fit, learned[0], [*before, *encodings], partitions, check=False)
    if fit.number:  # the result has those of the first fit, and they take gigabytes
        return _Learned(rounds, [], {}, similarity)
    return _Learned(rounds, encodings, partitions, similarity)


def check_names(config: Config) -> None:
    """Raises if a model, a sampler or a view is unknown."""
    from clusterea.fusion import find_views
    from clusterea.models import check_model
    from clusterea.samplers import find_sampler

    for model in config.models:
        check_model(model)
    for sampler in config.samplers:
        find_sampler(sampler)
    find_views(config.fusion.views, has_mini_batches=bool(config.samplers))

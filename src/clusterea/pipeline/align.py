"""`align`: the paper's figure 2. Encode, sample, fuse, match; maybe in several fits and rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias

from clusterea.config import Config, SelfTrainingConfig
from clusterea.engines import Engine
from clusterea.pipeline.learning import Encoding, Fit, Fitted, Lesson, lessons
from clusterea.pipeline.observer import Observer, PythonWarnings
from clusterea.pipeline.previous import Previous
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.pipeline.shard_plan import shard_plan
from clusterea.pipeline.stages import Stages, encoder_names
from clusterea.pipeline.store import Made, Store
from clusterea.types import Alignment, AlignmentTask, Links, Partition, Similarity
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
    previous: Previous | None = None,
    engine: Engine | None = None,
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
        previous: What to take over from the run before, from `find_previous`.
        engine: Where the units of a stage run; default: in this process. It changes no result.
    """
    check_names(config)
    fusion = config.fusion.on(device.type, task.num_undecided)
    config = replace(config, fusion=fusion)  # keys say what is really done
    observer = observer or PythonWarnings()
    whole = Made.of(task_key(task), task)
    similarity: Made[Similarity] | None = None
    alignment: Made[Alignment] | None = None
    if engine is not None:
        engine.fit(lambda shards: shard_plan(task, config, shards).worker)
    with (
        Store(workspace, observer.warn) as store,
        Stages(whole, config, device, store, observer, previous, engine) as run,
    ):
        if until != "train":
            run.begin_metis([*config.samplers, *(samplers or ())])
        run.encode_contents()
        every = [_learned(run, fit, config.self_training, until, samplers) for fit in run.fits()]
        fitted = [each.fitted for each in every if each.fitted is not None]
        if fitted:
            similarity = run.mean([each.similarity for each in fitted])
        if until == "match" and similarity is not None:
            alignment = run.match(fitted, similarity)
        run.settle()
    return AlignmentResult(
        task,
        config,
        encoder_names(every[0].encodings),
        every[0].partitions,
        similarity,
        alignment,
        tuple(run.costs),
        tuple(round_ for each in every for round_ in each.rounds),
        made_fits=tuple(fitted),
        previous=previous,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Learned:
    """What the last pass of a fit made."""

    rounds: Sequence[Round]
    encodings: Sequence[Encoding]
    partitions: Mapping[str, Made[Partition]]
    fitted: Fitted | None  # None: the run stops before


def _learned(
    run: Stages,
    fit: Fit,
    config: SelfTrainingConfig,
    until: Stage,
    samplers: Sequence[str] | None,
) -> _Learned:
    """What one fit makes: encoders, mini-batches and similarities of the last pass."""
    passes = _rounds if run.previous is None else _warm
    rounds, learned, encodings, before = passes(run, fit, config)
    if until == "train":
        return _Learned(rounds, encodings, {}, None)
    if until == "sample":
        partitions = run.sample(learned[0], encodings, samplers or run.samplers)
        return _Learned(rounds, encodings, partitions, None)
    partitions = run.sample(learned[0], encodings, run.used_samplers)
    last = [*before, *encodings]
    contents = run.contents(learned)
    trust = run.trust(fit, learned[0], last, contents)
    fuse = partial(run.fuse, fit, learned[0], last, partitions, contents, trust, check=False)
    trial = similarity = fuse()
    if fit.hides and trust is not None:
        similarity = run.restore(fit, trial) if fit.holds_few else fuse(hides=False)
    fitted = Fitted(similarity, trial, contents, trust, run.trained(last))
    if fit.number:  # the result has those of the first fit, and they take gigabytes
        return _Learned(rounds, [], {}, fitted)
    return _Learned(rounds, encodings, partitions, fitted)


# Rounds, the lessons of the last pass, its embeddings, and those of the pass before.
_Passes: TypeAlias = tuple[list[Round], list[Lesson], list[Encoding], list[Encoding]]


def _rounds(run: Stages, fit: Fit, config: SelfTrainingConfig) -> _Passes:
    """A first pass, and rounds of self-training.

    In a pass, encoders learn from seeds and pseudo-seeds, mini-batches are sampled, and
    similarities fused. The last rounds have all encoders, those before them only label propagation.
    The last pass is not fused yet.
    """
    rounds: list[Round] = []
    learned = [fit.first_lesson()]
    left = run.rounds.ahead  # rounds after this pass; None: not known yet
    before: list[Encoding] = []  # embeddings of the last pass, if it had all encoders
    while True:
        has_all = left is not None and left < run.rounds.trained
        encodings = run.encode(learned, all_encoders=has_all)
        if left == 0:
            return rounds, learned, encodings, before
        found = _chosen(run, fit, learned, encodings, rounds)
        if left is None and run.are_last(fit, rounds):
            left = run.rounds.trained
        left = None if left is None else left - 1
        learned = lessons(fit, found, len(rounds), config.folds, config.seed)
        before = encodings if has_all and len(found.value) else []
        left = left if len(found.value) else 0  # with the seeds alone, once is enough
        del encodings  # gigabytes of the round before


def _chosen(
    run: Stages,
    fit: Fit,
    learned: Sequence[Lesson],
    encodings: Sequence[Encoding],
    rounds: list[Round],
) -> Made[Links]:
    """The pseudo-seeds of the next round, which is added to the rounds."""
    partitions = run.sample(learned[0], encodings, run.used_samplers)
    contents = run.contents(learned)
    trust = run.trust(fit, learned[0], encodings, contents)
    similarity = run.fuse(fit, learned[0], encodings, partitions, contents, trust, check=True)
    found = run.choose(fit, similarity, run.gains(trust, contents, fit), len(rounds) + 1)
    rounds.append(Round.after(rounds, found, fit.number))
    return found


def _warm(run: Stages, fit: Fit, config: SelfTrainingConfig) -> _Passes:
    """Rounds of label propagation from the pseudo-seeds of the run before, and a last pass.

    One round is enough beside trained embeddings. Without these, one more than in a full run.
    """
    found, trained = run.taken_over(fit)
    rounds: list[Round] = []
    learned = [fit.first_lesson()]
    if found is not None:
        rounds.append(Round(found, 0, fit.number))
        learned = lessons(fit, found, 1, config.folds, config.seed)
    encodings = run.encode(learned, all_encoders=False)
    most = 1 if trained else config.rounds + 1
    while encodings and 0 < len(rounds) <= most:
        found = _chosen(run, fit, learned, encodings, rounds)
        learned = lessons(fit, found, len(rounds), config.folds, config.seed)
        del encodings  # gigabytes of the round before
        encodings = run.encode(learned, all_encoders=False)
    return rounds, learned, [*trained, *encodings], []


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

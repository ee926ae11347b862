"""`Stages`: the stages of a run. Each is measured, reported, and stored under its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from clusterea.config import (
    Config,
    EncoderConfig,
    MatchingConfig,
    PropagationConfig,
    TrainingConfig,
)
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.learning import (
    FEWEST_SEEDS,
    Encoding,
    Fit,
    Lesson,
    checking_shares,
    fits,
    shares,
)
from clusterea.pipeline.measure import measured
from clusterea.pipeline.observer import Observer
from clusterea.pipeline.store import Made, Store
from clusterea.types import (
    Alignment,
    AlignmentTask,
    Embeddings,
    IntArray,
    Links,
    Pair,
    Partition,
    Similarity,
    StageCost,
    Stored,
)
from clusterea.types.alignment import ENOUGH_SEEDS
from clusterea.workspace import FileCheckpoints

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from clusterea.pipeline.result import Round
    from clusterea.training import EncoderProgress

Kept = TypeVar("Kept", bound=Stored)


class Stages:
    """One method per stage, for `align`. `costs` has the cost of each."""

    def __init__(
        self,
        whole: Made[AlignmentTask],
        config: Config,
        device: torch.device,
        store: Store,
        observer: Observer,
    ) -> None:
        self._whole = whole
        self._config = config
        self._device = device
        self._store = store
        self._observer = observer
        self._cuts = Cuts(store, whole)
        self._fits = fits(whole, config)
        self.costs: list[StageCost] = []

    def __enter__(self) -> Stages:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cuts.close()

    def _stage(
        self,
        label: str,
        stage: str,
        recipe: Mapping[str, Any],
        parents: Mapping[str, str],
        kind: type[Kept],
        make: Callable[[str], Kept],
        stored: Callable[[str], None] | None = None,
    ) -> Made[Kept]:
        """Runs a stage or finds its stored result; reports and measures it."""
        self._observer.begin(label)
        with measured(label, self._device) as cost:
            made = self._store.made(
                stage, recipe, parents, kind, self._whole.value.num_entities, make, stored
            )
        cost.reused = made.reused
        self.costs.append(cost)
        self._observer.end(cost)
        return made

    def fits(self) -> list[Fit]:
        """The fits: each with other seeds held out."""
        return self._fits

    def begin_metis(self, samplers: Sequence[str]) -> None:
        """Starts METIS for the samplers that need it, beside the stages that follow."""
        sampling = self._config.sampling
        self._cuts.begin(samplers, sampling.num_batches, sampling.seed)

    def encode(self, learned: Sequence[Lesson], *, all_encoders: bool) -> list[Encoding]:
        """Runs each encoder on each lesson; only label propagation, if not `all_encoders`.

        Training is slow, and early pairs teach little. Without label propagation, every pass
        trains.
        """
        configs = [self._in_round(each, learned[0].round) for each in self._config.encoders()]
        is_quick = [isinstance(each, PropagationConfig) for each in configs]
        return [
            Encoding(encoder, lesson, self._encoded(config, lesson))
            for encoder, config in enumerate(configs)
            if all_encoders or is_quick[encoder] or not any(is_quick)
            for lesson in learned
        ]

    def _in_round(self, config: EncoderConfig, number: int) -> EncoderConfig:
        """The settings of an encoder in a round; round 0 is the first pass."""
        rounds = self._config.self_training
        if number and rounds.epochs and isinstance(config, TrainingConfig):
            return replace(config, epochs=rounds.epochs)
        if self._goes_on and rounds.features and isinstance(config, PropagationConfig):
            return replace(config, features=rounds.features)
        return config

    @property
    def _goes_on(self) -> bool:
        """Whether rounds of label propagation go on while they gain: where seeds are few."""
        config, task = self._config.self_training, self._whole.value
        return config.rounds > 0 and config.are_few(task.num_seeds, task.num_entities)

    @property
    def rounds_ahead(self) -> int | None:
        """How many rounds there will be, as known before the first pass; None: not known."""
        if self._goes_on:
            return None
        has_rounds = self._config.self_training.rounds > 0 and self._config.has_trained
        return self.trained_rounds if has_rounds else 0

    @property
    def trained_rounds(self) -> int:
        """The number of last rounds, which have all encoders; the first pass counts too."""
        config = self._config.self_training
        return max(1, min(config.trained_rounds if self._config.has_trained else 1, config.rounds))

    def are_last(self, fit: Fit, rounds: Sequence[Round]) -> bool:
        """Whether the last rounds begin after these: too few pairs to learn from are new.

        No test link is looked at.
        """
        config, last = self._config.self_training, rounds[-1]
        pairs = fit.known.value.num_seeds + len(last.pseudo_seeds)
        is_settled = last.num_new <= config.least_gain * pairs
        return is_settled or len(rounds) - 1 + self.trained_rounds >= config.rounds

    def _encoded(self, config: EncoderConfig, lesson: Lesson) -> Made[Embeddings]:
        from clusterea.training import propagate, train

        config = replace(config, seed=config.seed + lesson.fold)
        is_trained = isinstance(config, TrainingConfig)
        label = _label("training" if is_trained else "propagation", lesson)

        def told(at: EncoderProgress) -> None:
            what = f"epoch {at.epoch} of {at.epochs}" if at.epochs > 1 else "labels"
            done = (at.epoch - 1) * at.steps + at.step
            self._observer.step(label, what, done, at.epochs * at.steps)

        def make(key: str) -> Embeddings:
            task = lesson.task.value
            if not isinstance(config, TrainingConfig):
                return Embeddings(*propagate(task, config, device=self._device, progress=told))
            kept = self._checkpoints(key)
            return Embeddings(
                *train(task, config, device=self._device, checkpoints=kept, progress=told)
            )

        def stored(key: str) -> None:
            if is_trained and (checkpoints := self._checkpoints(key)) is not None:
                checkpoints.remove()

        parents = {"lesson": lesson.task.key}
        return self._stage(label, "train", config.recipe(), parents, Embeddings, make, stored)

    def _checkpoints(self, key: str) -> FileCheckpoints | None:
        workspace = self._store.workspace
        if workspace is None:
            return None
        return FileCheckpoints(workspace.checkpoint(key), warn=self._store.warn)

    @property
    def samplers(self) -> tuple[str, ...]:
        """The samplers of the config."""
        return self._config.samplers

    @property
    def used_samplers(self) -> tuple[str, ...]:
        """The samplers whose mini-batches some view uses."""
        from clusterea.fusion import VIEWS

        uses = any(VIEWS[name].in_mini_batches for name in self._config.fusion.views)
        return self._config.samplers if uses else ()

    def sample(
        self, lesson: Lesson, encoding: Encoding, samplers: Sequence[str]
    ) -> dict[str, Made[Partition]]:
        """The mini-batches of each of these samplers."""
        from clusterea.samplers import Resources, recipe, sample

        config, resources = self._config.sampling, Resources(self._device, self._cuts)

        def make(key: str, sampler: str) -> Partition:
            del key
            vectors = encoding.embeddings.value
            return sample(sampler, lesson.task.value, vectors, config, resources)

        return {
            sampler: self._stage(
                _label(f"sampling: {sampler}", lesson),
                "sample",
                {"sampler": sampler, **recipe(sampler, config)},
                {"train": encoding.embeddings.key, "lesson": lesson.task.key},
                Partition,
                partial(make, sampler=sampler),
            )
            for sampler in samplers
        }

    def fuse(
        self,
        fit: Fit,
        lesson: Lesson,
        encodings: Sequence[Encoding],
        partitions: Mapping[str, Made[Partition]],
        *,
        check: bool,
    ) -> Made[Similarity]:
        """The fused similarity of all undecided entities, on the host.

        Args:
            fit: The seeds that it learns from are left out.
            lesson: The first lesson of the round.
            encodings: The embeddings to compare.
            partitions: The mini-batches of each sampler.
            check: Whether to score a pseudo-seed only with the fold that did not train on it.
        """
        from clusterea.fusion import fuse

        known, task = fit.known, fit.known.value
        has_folds = any(each.lesson.left_out is not None for each in encodings)
        check = check and has_folds and self._config.self_training.check
        weights = shares(encodings)
        label = _label("fusion", lesson)

        def make(key: str) -> Similarity:
            del key
            by_source = checking_shares(encodings, task.num_entities.source) if check else None
            fused = fuse(
                [each.embeddings.value for each in encodings],
                [each.value for each in partitions.values()],
                task.seeds,
                task.tie_keys,
                self._config.fusion,
                shares=weights,
                of_source=by_source,
                graphs=task.graphs,
                structural=task.structural,
                device=self._device,
                progress=partial(self._observer.step, label),
            )
            return fused.to("cpu")

        parents = {"known": known.key, **{name: made.key for name, made in partitions.items()}}
        parents |= {name: made.key for name, made in encoder_names(encodings).items()}
        recipe = {**self._config.fusion.recipe(), "shares": weights, "check": check}
        return self._stage(label, "fuse", recipe, parents, Similarity, make)

    def choose(self, fit: Fit, similarity: Made[Similarity], number: int) -> Made[Links]:
        """The pseudo-seeds of round `number`: matches with a high probability to be right.

        The probability is fitted on held-out seeds; without any, the score decides.
        """
        from clusterea.matching import chances, pseudo_seeds

        config, task = self._config.self_training, fit.known.value

        def make(key: str) -> Links:
            del key
            scores = similarity.value.to(self._device)
            sure = None
            if len(fit.held):
                sure = partial(chances, similarity=scores, task=task, pairs=_tensor(fit.held))
            found = pseudo_seeds(
                scores,
                _tie_keys(task, self._device),
                task.seeds,
                threshold=config.threshold,
                seed=config.seed,
                chances=sure,
            )
            return Links(found.cpu())

        label = _label("self-training", Lesson(fit.known, number, fit=fit.number))
        parents = {"fuse": similarity.key, "known": fit.known.key, "task": self._whole.key}
        return self._stage(label, "pseudo", config.recipe(), parents, Links, make)

    def mean(self, similarities: Sequence[Made[Similarity]]) -> Made[Similarity]:
        """The mean similarity of all fits, without the entities of seeds."""
        if len(similarities) == 1:
            return similarities[0]
        from clusterea.fusion import mean

        def make(key: str) -> Similarity:
            del key
            every = [each.value.to(self._device) for each in similarities]
            return mean(every, self._whole.value.seeds).to("cpu")

        parents = {**_by_fit(similarities), "task": self._whole.key}
        return self._stage("fusion of both fits", "fuse", {}, parents, Similarity, make)

    def match(
        self, similarities: Sequence[Made[Similarity]], similarity: Made[Similarity]
    ) -> Made[Alignment]:
        """The alignment. With held-out seeds, its confidence is a probability."""
        config, task = self._config.matching, self._whole.value
        made = self._stage(
            "matching",
            "match",
            config.recipe(),
            {**_by_fit(similarities), "fuse": similarity.key, "task": self._whole.key},
            Alignment,
            lambda _: matched(
                task,
                [(fit, made.value) for fit, made in zip(self._fits, similarities, strict=True)],
                similarity.value,
                config,
                self._device,
            ),
        )
        if config.held_out and config.abstain and not made.value.examples:
            enough = ENOUGH_SEEDS if config.fits > 1 else 2 * ENOUGH_SEEDS
            self._observer.warn(
                f"Too few seeds ({task.num_seeds:,}) to tell right links from wrong ones: only "
                "links next to a seed are given; candidates.parquet has the others. About "
                f"{FEWEST_SEEDS} seeds give more, and {enough} a calibrated confidence."
            )
        return made


def matched(
    task: AlignmentTask,
    every: Sequence[tuple[Fit, Similarity]],
    similarity: Similarity,
    config: MatchingConfig,
    device: torch.device,
) -> Alignment:
    """The links of a similarity, on the host.

    The confidence is fitted on trials: alignments of the similarity of each fit, in which its
    held-out seeds are matched like other entities. They show how often links are right.

    Args:
        task: The task with all seeds.
        every: The fits, each with its similarity, which is without the seeds it learned from.
        similarity: Their mean.
        config: The settings.
        device: Where to compute.
    """
    from clusterea.matching import Trial, calibrated, fit_confidence, match, supported

    keys = _tie_keys(task, device)

    def links(scores: Similarity, seeds: IntArray) -> Alignment:
        how = {"method": config.method, "seed": config.seed, "structural": task.structural}
        return match(scores, keys, seeds, **how)  # type: ignore[arg-type]

    own = [scores.to(device) for _, scores in every]
    found = links(own[0] if len(own) == 1 else similarity.to(device), task.seeds)
    trials = [
        Trial(links(scores, fit.known.value.seeds), scores, fit.known.value, _tensor(fit.held))
        for (fit, _), scores in zip(every, own, strict=True)
        if len(fit.held)
    ]
    confidence = fit_confidence(trials)
    if confidence is not None:
        found = calibrated(found, own, task, confidence, abstain=config.abstain)
    elif config.held_out and config.abstain:
        found = supported(found, task)
    return found.to("cpu")


def encoder_names(encodings: Sequence[Encoding]) -> dict[str, Made[Embeddings]]:
    """The embeddings by their names in the manifest: train, train-2 and so on."""
    return {
        "train" if not index else f"train-{index + 1}": each.embeddings
        for index, each in enumerate(encodings)
    }


def _by_fit(similarities: Sequence[Made[Similarity]]) -> dict[str, str]:
    """The keys of the fits' similarities, as parents."""
    return {f"fuse-{number}": made.key for number, made in enumerate(similarities, start=1)}


def _label(stage: str, lesson: Lesson) -> str:
    fit = f", fit {lesson.fit + 1}" if lesson.fit else ""
    return f"{stage}, round {lesson.round}{fit}" if lesson.round else f"{stage}{fit}"


def _tensor(pairs: IntArray) -> Tensor:
    from torch import from_numpy

    return from_numpy(pairs.copy())


def _tie_keys(task: AlignmentTask, device: torch.device) -> Pair[Tensor]:
    return task.tie_keys.map(lambda side: _tensor(side).to(device))

"""`Stages`: the stages of a run. Each is measured, reported, and stored under its key."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from clusterea.config import (
    Config,
    EncoderConfig,
    MatchingConfig,
    PropagationConfig,
    TrainingConfig,
)
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.learning import Encoding, Lesson, checking_shares, held_out, shares
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
from clusterea.workspace import FileCheckpoints, recipe_key

if TYPE_CHECKING:
    import torch
    from torch import Tensor

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
        self.costs: list[StageCost] = []

    def __enter__(self) -> Stages:
        sampling = self._config.sampling
        self._cuts.begin(self._config.samplers, sampling.num_batches, sampling.seed)
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
    ) -> Made[Kept]:
        """Runs a stage or finds its stored result; reports and measures it."""
        self._observer.begin(label)
        with measured(label, self._device) as cost:
            made = self._store.made(
                stage, recipe, parents, kind, self._whole.value.num_entities, make
            )
        cost.reused = made.reused
        self.costs.append(cost)
        self._observer.end(cost)
        return made

    def hold_out(self) -> tuple[Made[AlignmentTask], IntArray]:
        """The task without the held-out seeds, and the (n, 2) held-out seeds."""
        matching = self._config.matching
        held, known = held_out(self._whole.value, matching)
        if not len(held):
            return Made.of(self._whole.key, known), held
        recipe = {"held_out": matching.held_out, "seed": matching.seed}
        return Made.of(recipe_key("known", recipe, {"task": self._whole.key}), known), held

    def encode(
        self, learned: Sequence[Lesson], encoders: Sequence[int] | None = None
    ) -> list[Encoding]:
        """Runs each of these encoders (default: all) on each lesson."""
        configs = self._config.encoders()
        if learned[0].round and self._config.self_training.epochs:
            epochs = self._config.self_training.epochs
            configs = tuple(
                replace(each, epochs=epochs) if isinstance(each, TrainingConfig) else each
                for each in configs
            )
        return [
            Encoding(encoder, lesson, self._encoded(configs[encoder], lesson))
            for encoder in (range(len(configs)) if encoders is None else encoders)
            for lesson in learned
        ]

    def encode_again(
        self, learned: Sequence[Lesson], first: Sequence[Encoding], *, trained_too: bool
    ) -> list[Encoding]:
        """Runs the encoders of a later round.

        Label propagation runs in every round. Trained encoders are slow: they run again only in the
        last round, unless all encoders are trained. Until then they keep their first embeddings.
        """
        configs = enumerate(self._config.encoders())
        again = [index for index, each in configs if isinstance(each, PropagationConfig)]
        if trained_too or not again:
            return self.encode(learned)
        kept = [each for each in first if each.encoder not in again]
        return sorted([*kept, *self.encode(learned, again)], key=lambda each: each.encoder)

    def _encoded(self, config: EncoderConfig, lesson: Lesson) -> Made[Embeddings]:
        from clusterea.training import propagate, train

        config = replace(config, seed=config.seed + lesson.fold)
        is_trained = isinstance(config, TrainingConfig)
        label = _label("training" if is_trained else "propagation", lesson.round)

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

        made = self._stage(
            label, "train", config.recipe(), {"lesson": lesson.task.key}, Embeddings, make
        )
        if is_trained and (checkpoints := self._checkpoints(made.key)) is not None:
            checkpoints.remove()
        return made

    def _checkpoints(self, key: str) -> FileCheckpoints | None:
        workspace = self._store.workspace
        if workspace is None:
            return None
        return FileCheckpoints(workspace.checkpoint(key), warn=self._store.warn)

    def sample(self, lesson: Lesson, encoding: Encoding) -> dict[str, Made[Partition]]:
        """The mini-batches of each sampler."""
        from clusterea.samplers import Resources, recipe, sample

        config, resources = self._config.sampling, Resources(self._device, self._cuts)

        def make(key: str, sampler: str) -> Partition:
            del key
            vectors = encoding.embeddings.value
            return sample(sampler, lesson.task.value, vectors, config, resources)

        return {
            sampler: self._stage(
                _label(f"sampling: {sampler}", lesson.round),
                "sample",
                {"sampler": sampler, **recipe(sampler, config)},
                {"train": encoding.embeddings.key, "lesson": lesson.task.key},
                Partition,
                partial(make, sampler=sampler),
            )
            for sampler in self._config.samplers
        }

    def fuse(
        self,
        known: Made[AlignmentTask],
        lesson: Lesson,
        encodings: Sequence[Encoding],
        partitions: Mapping[str, Made[Partition]],
        *,
        check: bool,
    ) -> Made[Similarity]:
        """The fused similarity of all undecided entities, on the host.

        Args:
            known: The task; its seeds are left out.
            lesson: The first lesson of the round.
            encodings: The embeddings to compare.
            partitions: The mini-batches of each sampler.
            check: Whether to score a pseudo-seed only with the fold that did not train on it.
        """
        from clusterea.fusion import fuse

        task = known.value
        has_folds = any(each.lesson.left_out is not None for each in encodings)
        check = check and has_folds and self._config.self_training.check
        weights = shares(encodings)
        label = _label("fusion", lesson.round)

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

    def choose(
        self, known: Made[AlignmentTask], held: IntArray, similarity: Made[Similarity], number: int
    ) -> Made[Links]:
        """The pseudo-seeds of round `number`: matches with a high probability to be right.

        The probability is fitted on held-out seeds; without any, the score decides.
        """
        from clusterea.matching import chances, pseudo_seeds

        config, task = self._config.self_training, known.value

        def make(key: str) -> Links:
            del key
            scores = similarity.value.to(self._device)
            sure = None
            if len(held):
                sure = partial(chances, similarity=scores, task=task, pairs=_tensor(held))
            found = pseudo_seeds(
                scores,
                _tie_keys(task, self._device),
                task.seeds,
                threshold=config.threshold,
                seed=config.seed,
                chances=sure,
            )
            return Links(found.cpu())

        label = _label("self-training", number)
        parents = {"fuse": similarity.key, "known": known.key, "task": self._whole.key}
        return self._stage(label, "pseudo", config.recipe(), parents, Links, make)

    def match(self, held: IntArray, similarity: Made[Similarity]) -> Made[Alignment]:
        """The alignment. With held-out seeds, its confidence is a probability."""
        config, task = self._config.matching, self._whole.value
        return self._stage(
            "matching",
            "match",
            config.recipe(),
            {"fuse": similarity.key, "task": self._whole.key},
            Alignment,
            lambda _: matched(task, held, similarity.value, config, self._device),
        )


def matched(
    task: AlignmentTask,
    held: IntArray,
    similarity: Similarity,
    config: MatchingConfig,
    device: torch.device,
) -> Alignment:
    """The links of a similarity, on the host.

    Args:
        task: The task with all seeds.
        held: (n, 2): the held-out seeds. Their entities are matched like others, to measure how
            often links are right.
        similarity: The fused similarity, without the entities of the other seeds.
        config: The settings.
        device: Where to compute.
    """
    from clusterea.matching import calibrated, fit_confidence, match, merged, without_pairs

    keys, scores = _tie_keys(task, device), similarity.to(device)

    def links(seeds: IntArray) -> Alignment:
        how = {"method": config.method, "seed": config.seed, "structural": task.structural}
        return match(scores, keys, seeds, **how)  # type: ignore[arg-type]

    if not len(held):
        return links(task.seeds).to("cpu")
    learned = task.with_seeds(task.seeds[~np.isin(task.seeds[:, 0], held[:, 0])])
    tried = links(learned.seeds)
    confidence = fit_confidence(tried, scores, learned, _tensor(held))
    kept = without_pairs(tried, _tensor(held))
    # Entities that were matched with a held-out entity are matched again.
    found = merged(kept, links(np.concatenate([task.seeds, kept.links.cpu().numpy()])))
    if confidence is not None:
        found = calibrated(found, scores, task, confidence, abstain=config.abstain)
    return found.to("cpu")


def encoder_names(encodings: Sequence[Encoding]) -> dict[str, Made[Embeddings]]:
    """The embeddings by their names in the manifest: train, train-2 and so on."""
    return {
        "train" if not index else f"train-{index + 1}": each.embeddings
        for index, each in enumerate(encodings)
    }


def _label(stage: str, number: int) -> str:
    return f"{stage}, round {number}" if number else stage


def _tensor(pairs: IntArray) -> Tensor:
    from torch import from_numpy

    return from_numpy(pairs.copy())


def _tie_keys(task: AlignmentTask, device: torch.device) -> Pair[Tensor]:
    return task.tie_keys.map(lambda side: _tensor(side).to(device))

"""`Stages`: the stages of a run. Each is measured, reported, and stored under its key."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from clusterea.config import (
    NAMES,
    Config,
    EncoderConfig,
    TrainingConfig,
)
from clusterea.engines import Engine, InMemory
from clusterea.errors import InputError
from clusterea.pipeline.cuts import Cuts
from clusterea.pipeline.learning import (
    FEWEST_SEEDS,
    Encoding,
    Fit,
    Fitted,
    Lesson,
    checking_shares,
    fits,
    shares,
)
from clusterea.pipeline.link_gains import Contents, LinkGains
from clusterea.pipeline.matched import as_tensor, matched, tie_keys_on
from clusterea.pipeline.measure import measured
from clusterea.pipeline.observer import Observer
from clusterea.pipeline.previous import Previous
from clusterea.pipeline.rounds import Rounds, stage_label
from clusterea.pipeline.store import Made, Store, read
from clusterea.types import (
    NO_ENTITIES,
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

    from clusterea.fusion import Trust
    from clusterea.graph.compact_union import Unions
    from clusterea.pipeline.result import Round
    from clusterea.training import EncoderProgress

Kept = TypeVar("Kept", bound=Stored)
MOST_EXAMPLES = 1000  # seeds that trust in names is fitted on, if structure is not encoded


class Stages:
    """One method per stage, for `align`. `costs` has the cost of each."""

    def __init__(
        self,
        whole: Made[AlignmentTask],
        config: Config,
        device: torch.device,
        store: Store,
        observer: Observer,
        previous: Previous | None = None,
        engine: Engine | None = None,
    ) -> None:
        self._whole = whole
        self._engine = engine or InMemory()
        self.previous = previous
        self._config = config
        self._device = device
        self._store = store
        self._observer = observer
        self._cuts = Cuts(store, whole)
        self._fits = fits(whole, config, 0 if previous is None else previous.held)
        self.rounds = Rounds.of(whole.value, config)
        self._contents: dict[str, Made[Embeddings]] = {}  # of names and features
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

    def settle(self) -> None:
        """Waits until all results are on disk. The time counts as part of the last stage."""
        start = time.perf_counter()
        self._store.wait()
        if self.costs:
            self.costs[-1].seconds += time.perf_counter() - start

    def fits(self) -> list[Fit]:
        """The fits: each with other seeds held out."""
        return self._fits

    def encode_contents(self) -> None:
        """Runs the encoders of names and features, where the data have them. They see no seeds."""
        from clusterea.sharded import encode_names

        task, config = self._whole.value, self._config.names
        names, features = task.names, task.features
        if NAMES in self._config.models and names is None:
            raise InputError(
                "the encoder names needs names, but there are none to compare. Choose where they "
                "come from with --names, --name-files or --label-property."
            )
        parents = {"task": self._whole.key}
        if names is not None:
            self._contents["names"] = self._stage(
                "names",
                "names",
                config.recipe(),
                parents,
                Embeddings,
                lambda _: Embeddings(*encode_names(names, config, engine=self._engine)),
            )
        if features is not None:
            self._contents["features"] = self._stage(
                "features", "features", {}, parents, Embeddings, lambda _: _unit_rows(features)
            )

    def contents(self, learned: Sequence[Lesson]) -> Contents:
        """The vectors of names and features, and those of names translated with these lessons."""
        from clusterea.training import translate

        names = self._contents.get("names")
        if names is None or not self._config.names.translates:
            return self._contents
        lesson = learned[0]
        parents = {f"lesson-{each.fold}": each.task.key for each in learned}

        def make(key: str) -> Embeddings:
            del key
            pairs = np.concatenate([each.task.value.seeds for each in learned])
            pairs = np.unique(pairs, axis=0)
            pairs = pairs[lesson.task.value.tie_keys.source[pairs[:, 0]].argsort(kind="stable")]
            return Embeddings(*translate(names.value, pairs, self._device))

        made = self._stage(
            _label("translation", lesson),
            "translation",
            {},
            {**parents, "names": names.key},
            Embeddings,
            make,
        )
        return {**self._contents, "translation": made}

    def trust(
        self, fit: Fit, lesson: Lesson, encodings: Sequence[Encoding], contents: Contents
    ) -> Made[Trust] | None:
        """How far names and features can be trusted, by pairs that structure is sure of.

        Held-out pairs are not among them.
        """
        from clusterea.fusion import Trust, fit_trust, surest_pairs

        if not contents:
            return None
        weights = shares(encodings)

        def make(key: str) -> Trust:
            del key
            task = lesson.task.value
            if encodings:
                structure = [each.embeddings.value for each in encodings]
                taken = np.concatenate([task.seeds, fit.held])
                free = task.num_entities.zip(task.never_linked.zip(Pair(*taken.T))).map(
                    lambda side: _others(side[0], *side[1])
                )
                pairs = surest_pairs(structure, weights, free, self._device)
            else:  # names alone: only seeds can tell
                pairs = as_tensor(fit.known.value.seeds[:MOST_EXAMPLES])
            vectors = [made.value for made in contents.values()]
            return fit_trust(vectors, pairs, self._device)

        parents = {name: made.key for name, made in encoder_names(encodings).items()}
        parents |= {name: made.key for name, made in contents.items()}
        parents |= {"lesson": lesson.task.key, "known": fit.known.key}
        return self._stage(
            _label("trust", lesson), "trust", {"shares": weights}, parents, Trust, make
        )

    def gains(self, trust: Made[Trust] | None, contents: Contents, fit: Fit) -> LinkGains | None:
        """The gains of links by names and features; None where these are not compared."""
        return LinkGains.by(trust, contents, fit.hidden)

    def begin_metis(self, samplers: Sequence[str]) -> None:
        """Starts METIS for the samplers that need it, beside the stages that follow."""
        sampling = self._config.sampling
        self._cuts.begin(samplers, sampling.num_batches, sampling.seed)

    def encode(self, learned: Sequence[Lesson], *, all_encoders: bool) -> list[Encoding]:
        """Runs the encoders of a round on each lesson: see `Rounds.encoders`."""
        from clusterea.graph.compact_union import Unions

        if learned[0].round or learned[0].fit:
            self.settle()  # the embeddings before these are not needed in memory any more
        encoders = self.rounds.encoders(
            learned[0].round, has_all=all_encoders, is_warm=self.previous is not None
        )
        unions = Unions()
        return [
            Encoding(number, lesson, self._encoded(config, lesson, unions))
            for number, config in encoders
            for lesson in learned
        ]

    def taken_over(self, fit: Fit) -> tuple[Made[Links] | None, list[Encoding]]:
        """The pseudo-seeds and the trained embeddings of the run before, for a warm restart."""
        assert self.previous is not None
        workspace, sizes = self._store.workspace, self._whole.value.num_entities

        def stored(key: str, kind: type[Kept]) -> Made[Kept]:
            assert workspace is not None
            return Made(key, lambda: read(workspace, key, kind, sizes), reused=True)

        pseudo = self.previous.pseudo[fit.number]
        trained = self.previous.trained[fit.number]
        lesson = fit.first_lesson()
        return (
            None if pseudo is None else stored(pseudo, Links),
            [Encoding(encoder, lesson, stored(key, Embeddings)) for encoder, key in trained],
        )

    def trained(self, encodings: Sequence[Encoding]) -> tuple[tuple[int, str], ...]:
        """The number and the key of each encoding that took training."""
        configs = self._config.encoders()
        return tuple(
            (each.encoder, each.embeddings.key)
            for each in encodings
            if isinstance(configs[each.encoder], TrainingConfig)
        )

    def are_last(self, fit: Fit, rounds: Sequence[Round]) -> bool:
        """Whether the last rounds begin after these: too few pairs to learn from are new.

        No test link is looked at.
        """
        config, last = self._config.self_training, rounds[-1]
        pairs = fit.known.value.num_seeds + len(last.pseudo_seeds)  # presumed ones are found again
        is_settled = last.num_new <= config.least_gain * pairs
        return is_settled or len(rounds) - 1 + self.rounds.trained >= config.rounds

    def _encoded(self, config: EncoderConfig, lesson: Lesson, unions: Unions) -> Made[Embeddings]:
        from clusterea.sharded import propagate
        from clusterea.training import train

        config = replace(config, seed=config.seed + lesson.fold)
        is_trained = isinstance(config, TrainingConfig)
        label = _label("training" if is_trained else "propagation", lesson)

        def told(at: EncoderProgress) -> None:
            what = f"epoch {at.epoch} of {at.epochs}" if at.epochs > 1 else "labels"
            done = (at.epoch - 1) * at.steps + at.step
            self._observer.step(label, what, done, at.epochs * at.steps)

        def make(key: str) -> Embeddings:
            task = lesson.task.value
            how: Any = {"device": self._device, "progress": told, "unions": unions}
            if not isinstance(config, TrainingConfig):
                return Embeddings(*propagate(task, config, engine=self._engine, **how))
            kept = self._checkpoints(key)
            return Embeddings(*train(task, config, checkpoints=kept, **how))

        def stored(key: str) -> None:
            if is_trained and (checkpoints := self._checkpoints(key)) is not None:
                checkpoints.remove()

        parents = {"lesson": lesson.task.key}
        return self._stage(label, "train", config.recipe(), parents, Embeddings, make, stored)

    def _checkpoints(self, key: str) -> FileCheckpoints | None:
        workspace = self._store.workspace
        if workspace is None:
            return None
        return workspace.checkpoints(key, self._store.warn)

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
        self, lesson: Lesson, encodings: Sequence[Encoding], samplers: Sequence[str]
    ) -> dict[str, Made[Partition]]:
        """The mini-batches of each of these samplers, by the first encoding."""
        from clusterea.samplers import Resources, recipe, sample

        if not samplers:
            return {}
        if not encodings:
            raise InputError("samplers need an encoder of structure beside names.")
        encoding = encodings[0]

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
        contents: Contents,
        trust: Made[Trust] | None,
        *,
        check: bool,
        hides: bool = True,
    ) -> Made[Similarity]:
        """The fused similarity of all undecided entities, on the host.

        Args:
            fit: The seeds that it learns from are left out.
            lesson: The first lesson of the round.
            encodings: The embeddings to compare.
            partitions: The mini-batches of each sampler.
            contents: The vectors of names and features.
            trust: In names and features, where these are compared.
            check: Whether to score a pseudo-seed only with the fold that did not train on it.
            hides: Whether the names of held-out pairs are hidden, if equal names suggested these.
        """
        from clusterea.sharded import fuse

        known, task = fit.known, fit.known.value
        has_folds = any(each.lesson.left_out is not None for each in encodings)
        check = check and has_folds and self._config.self_training.check
        weights = shares(encodings)
        hides = hides and fit.hides
        label = _label("fusion" if hides == fit.hides else "fusion with all names", lesson)

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
                structural=task.never_linked,
                rejected=task.rejected,
                contents=[made.value for made in contents.values()],
                trust=None if trust is None else trust.value,
                hidden=fit.hidden if hides else NO_ENTITIES,
                device=self._device,
                progress=partial(self._observer.step, label),
                engine=self._engine,
            )
            return _on_host(fused)

        parents = {"known": known.key, **{name: made.key for name, made in partitions.items()}}
        parents |= {name: made.key for name, made in encoder_names(encodings).items()}
        recipe = {**self._config.fusion.recipe(), "shares": weights, "check": check}
        if trust is not None:
            parents |= {"trust": trust.key}
            recipe["hides"] = hides
        return self._stage(label, "fuse", recipe, parents, Similarity, make)

    def restore(self, fit: Fit, similarity: Made[Similarity]) -> Made[Similarity]:
        """The similarity with held-out pairs put back, unless structure found a better partner.

        Their equal names were hidden. Fusing again with all names would do the same with more
        care, and take as long as the first fusion.
        """
        from clusterea.fusion import restored

        return self._stage(
            _label("held-out names", Lesson(fit.known, fit=fit.number)),
            "fuse",
            {"restored": True},
            {"fuse": similarity.key, "known": fit.known.key, "task": self._whole.key},
            Similarity,
            lambda _: restored(similarity.value, as_tensor(fit.held), self._engine.empty),
        )

    def choose(
        self, fit: Fit, similarity: Made[Similarity], gains: LinkGains | None, number: int
    ) -> Made[Links]:
        """The pseudo-seeds of round `number`: matches with a high probability to be right.

        The probability is fitted on held-out seeds; without any, the score decides.
        """
        from clusterea.matching import chances, pseudo_seeds
        from clusterea.sharded import HeldScores, ShardedCells

        config, task = self._config.self_training, fit.known.value

        def make(key: str) -> Links:
            del key
            scores = HeldScores.of(similarity.value.to(self._device), self._engine)
            ties, seeds = tie_keys_on(task, self._device), as_tensor(task.seeds)
            decided = Pair(seeds[:, 0], seeds[:, 1])
            sure = None
            if len(fit.held):
                sure = partial(
                    chances,
                    similarity=scores,
                    task=task,
                    pairs=as_tensor(fit.held),
                    gains=None if gains is None else gains.total,
                    rejected=fit.held_rejected,
                )
            found = pseudo_seeds(
                ShardedCells.of(scores, ties, decided, config.seed),
                threshold=config.threshold,
                chances=sure,
                # With few seeds, the hardest may be held out, so that nothing seems probable.
                otherwise=len(task.all_seeds) if self.rounds.goes_on and number == 1 else 0,
            )
            return Links(found.cpu())

        label = _label("self-training", Lesson(fit.known, number, fit=fit.number))
        parents = {"fuse": similarity.key, "known": fit.known.key, "task": self._whole.key}
        return self._stage(label, "pseudo", config.recipe(), parents, Links, make)

    def mean(self, similarities: Sequence[Made[Similarity]]) -> Made[Similarity]:
        """The mean similarity of all fits, without the entities of seeds and rejected pairs.

        The similarity of a fit still has cells of the rejected pairs that it held out.
        """
        task = self._whole.value
        if len(similarities) == 1 and not len(self._fits[0].held_rejected):
            return similarities[0]
        from clusterea.fusion import mean
        from clusterea.numerics.cells import without_pairs

        def make(key: str) -> Similarity:
            del key
            every = [each.value.to(self._device) for each in similarities]
            empty = self._engine.empty if self._device.type == "cpu" else None
            total = mean(every, task.seeds, empty) if len(every) > 1 else every[0]
            return _on_host(without_pairs(total, task.rejected, empty))

        label = "fusion of both fits" if len(similarities) > 1 else "rejected pairs"
        parents = {**_by_fit(similarities), "task": self._whole.key}
        return self._stage(label, "fuse", {}, parents, Similarity, make)

    def match(self, fitted: Sequence[Fitted], similarity: Made[Similarity]) -> Made[Alignment]:
        """The alignment. With held-out seeds, its confidence is a probability."""
        config, task = self._config.matching, self._whole.value
        parents = {**_by_fit([each.similarity for each in fitted]), "fuse": similarity.key}
        for number, each in enumerate(fitted, start=1):
            if each.trust is not None:
                parents |= {f"trial-{number}": each.trial.key, f"trust-{number}": each.trust.key}
        made = self._stage(
            "matching",
            "match",
            config.recipe(),
            {**parents, "task": self._whole.key},
            Alignment,
            lambda _: matched(
                task,
                self._fits,
                fitted,
                similarity.value,
                self._config,
                self._device,
                self._engine,
            ),
        )
        if config.held_out and config.abstain and not made.value.examples:
            enough = ENOUGH_SEEDS if config.fits > 1 else 2 * ENOUGH_SEEDS
            self._observer.warn(
                f"Too few seeds ({len(task.all_seeds):,}) to tell right links from wrong ones: "
                "only links next to a seed are given; candidates.parquet has the others. About "
                f"{FEWEST_SEEDS} seeds give more, and {enough} a calibrated confidence."
            )
        return made


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
    return stage_label(stage, lesson.round, lesson.fit)


def _others(size: int, never_linked: IntArray, taken: IntArray) -> Tensor:
    """The entities of a side that may be linked and are not taken, ascending."""
    is_free = np.ones(size, dtype=bool)
    is_free[never_linked] = False
    is_free[taken] = False
    return as_tensor(np.flatnonzero(is_free))


def _on_host(similarity: Similarity) -> Similarity:
    from clusterea.numerics.copies import on_host

    if similarity.values.device.type == "cpu":
        return similarity
    return Similarity(
        on_host(similarity.row_offsets),
        on_host(similarity.columns),
        on_host(similarity.values),
        similarity.num_entities,
    )


def _unit_rows(features: Pair[NDArray[np.float32]]) -> Embeddings:
    """The user's vectors, of unit length; zeros stay zeros."""
    from torch import from_numpy
    from torch.nn.functional import normalize

    return Embeddings(*features.map(lambda side: normalize(from_numpy(side.copy()), dim=1)))

"""Names and features in whole runs: what they bring, what they leave as it is, and what is kept."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import CPU, Ear, assert_same, benchmark, digests, made, reused, stages
from torch import Tensor

import clusterea
from clusterea import fusion, matching, sharded
from clusterea.config import Config, preset
from clusterea.data.synthetic import SHAPES, LabelShape, generate, write_openea
from clusterea.errors import InputError
from clusterea.matching import has_matched_neighbors
from clusterea.pipeline import AlignmentResult, align, learning, load_run, run_in_folder
from clusterea.pipeline.learning import FEWEST_SEEDS, Fit, fits
from clusterea.pipeline.link_gains import LinkGains
from clusterea.pipeline.memory import expected_disk, expected_memory, widths
from clusterea.pipeline.store import Made
from clusterea.sharded import HeldScores
from clusterea.types import (
    AlignmentTask,
    Benchmark,
    Embeddings,
    IntArray,
    Pair,
    Similarity,
    Texts,
)
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE
from clusterea.workspace import Workspace

SMALL = (
    "propagation.dimension=128",
    "propagation.features=256",
    "names.dimensions=256",
    "fusion.candidates=20",
)


# Half of the labels are missing, a tenth is ambiguous, and many are misspelled.
NOISY = LabelShape(missing=0.5, ambiguous=0.1, noise=0.3)
KNOWN: dict[str, dict[str, Any]] = {
    "seeded": {"seeds_share": 0.3},
    "seedless": {"seeds_from": "names"},
}


def settings(*more: str, model: str | None = None, samplers: Sequence[str] | None = None) -> Config:
    """The preset fast, made small."""
    return preset("fast", 800, model=model, samplers=samplers, settings=[*SMALL, *more])


def written(
    folder: Path, labels: LabelShape, entities: int = 800, degree: int = 3, seed: int = 0
) -> Path:
    sizes = Pair(entities, 9 * entities // 10)
    shape = replace(
        SHAPES["demo"],
        entities=sizes,
        triples=sizes.map(lambda count: degree * count),
        relations=Pair(12, 10),
    )
    write_openea(generate(shape, seed, labels), folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("named") / "pair", NOISY)


@pytest.fixture(scope="module")
def folders(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three such pairs: what one of them gives depends on the last digits of numbers."""
    place = tmp_path_factory.mktemp("three")
    return [folder, *(written(place / f"pair-{seed}", NOISY, seed=seed) for seed in (1, 2))]


@pytest.fixture(scope="module")
def seeded(folder: Path) -> Benchmark:
    return clusterea.load(folder, names="labels", **KNOWN["seeded"])


@pytest.fixture(scope="module")
def seedless(folder: Path) -> Benchmark:
    return clusterea.load(folder, names="labels", **KNOWN["seedless"])


@pytest.fixture(scope="module")
def clear(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small pair whose labels are mostly equal: more than a hundred pairs are presumed."""
    place = tmp_path_factory.mktemp("clear") / "pair"
    return written(place, LabelShape(missing=0.1, ambiguous=0.05, noise=0.2), 300, 5)


def with_task(given: Benchmark, **changes: Any) -> Benchmark:
    return replace(given, task=replace(given.task, **changes))


def run(given: Benchmark, config: Config) -> AlignmentResult:
    return replace(align(given.task, config, CPU, observer=Ear()), benchmark=given)


def hits(result: AlignmentResult) -> float:
    return result.evaluate().all_candidates.source.hits[1]


def found_right(result: AlignmentResult) -> float:
    scores = result.evaluate().matching
    assert scores is not None
    return scores.recall


def gains_of(result: AlignmentResult) -> list[float]:
    """The largest gain of each encoder of content, in the first fit."""
    trust = result.made_fits[0].trust
    assert trust is not None
    largest: list[float] = trust.value.most.tolist()
    return largest


def same(one: Similarity, other: Similarity) -> None:
    for name, tensor in one.tensors().items():
        assert torch.equal(tensor, other.tensors()[name])


class TestPlantedTruth:
    @pytest.mark.parametrize("kind", KNOWN)
    def test_names_and_structure_beat_either(self, kind: str, folders: Sequence[Path]) -> None:
        rows = []
        for folder in folders:
            given = clusterea.load(folder, names="labels", **KNOWN[kind])
            assert bool(len(given.task.presumed)) == (kind == "seedless")
            both = run(given, settings())
            structure = run(with_task(given, names=None), settings())
            names = run(given, settings(model="names"))
            assert gains_of(both)[0] > 5
            rows.append(
                [of(each) for of in (hits, found_right) for each in (both, structure, names)]
            )
        for by_both, by_structure, by_names in np.mean(rows, axis=0).reshape(2, 3):
            assert by_both > max(by_structure + 0.04, by_names + 0.3)

    def test_names_in_two_languages_are_translated(self, folder: Path) -> None:
        """The seeds show which words correspond; the languages have no letter in common."""
        given = clusterea.load(folder, seeds_share=0.6)
        rng = np.random.default_rng(0)
        chosen = given.task.num_entities.map(lambda count: rng.integers(0, 60, (count, 3)))
        links = np.concatenate([given.task.seeds, given.test_links])
        chosen.target[links[:, 1]] = chosen.source[links[:, 0]]

        def texts(side: tuple[IntArray, str]) -> Texts:
            words = ["".join(rng.choice(list(side[1]), 5)) for _ in range(60)]
            return Texts.of_lists([[" ".join(words[word] for word in row)] for row in side[0]])

        names = chosen.zip(Pair("abcdefghij", "klmnopqrst")).map(texts)
        plain, found = (
            run(with_task(given, names=names), settings(f"names.translates={each}"))
            for each in ("false", "true")
        )
        assert gains_of(plain) == [0]
        assert list(found.made_fits[0].contents) == ["names", "translation"]
        assert gains_of(found)[0] == 0
        assert gains_of(found)[1] > 3
        assert hits(found) > hits(plain) + 0.05
        assert found.all_links.grounds is not None
        assert (found.all_links.grounds & BY_NAMES).bool().float().mean() > 0.5

    def test_grounds_tell_what_speaks_for_a_link(self, seeded: Benchmark) -> None:
        result = run(seeded, settings())
        found = result.all_links
        assert found.grounds is not None
        names = seeded.task.names
        assert names is not None
        has_names = np.ones(len(found.links), dtype=bool)
        for texts, ids in zip(names, found.links.numpy().T, strict=True):
            has_names &= texts.counts[ids] > 0
        by_names = (found.grounds & BY_NAMES).bool().numpy()
        assert 0 < by_names.sum() < has_names.sum()
        assert not (by_names & ~has_names).any()
        by_structure = (found.grounds & BY_STRUCTURE).bool()
        assert torch.equal(by_structure, has_matched_neighbors(found.links, seeded.task))
        assert 0.8 < float(by_structure.float().mean()) < 1
        assert not (found.grounds & BY_FEATURES).any()
        truth = dict(seeded.test_links.tolist())
        right = np.array([truth.get(s) == t for s, t in found.links.tolist()])
        assert right[by_names].mean() > right[~by_names].mean()
        assert run(with_task(seeded, names=None), settings()).all_links.grounds is None

    def test_labels_on_other_entities_change_nothing(self, seeded: Benchmark) -> None:
        """The trust is zero, and the similarity bit for bit that of structure alone."""
        names = seeded.task.names
        assert names is not None
        rng = np.random.default_rng(0)
        shuffled = names.map(lambda side: side.take(rng.permutation(side.num_entities)))
        config = settings("names.translates=true")
        result = run(with_task(seeded, names=shuffled), config)
        assert gains_of(result) == [0, 0]
        plain = run(with_task(seeded, names=None), config)
        same(result.similarity, plain.similarity)
        assert torch.equal(result.all_links.links, plain.all_links.links)
        assert torch.equal(result.all_links.confidence, plain.all_links.confidence)
        assert result.all_links.grounds is not None
        assert int(result.all_links.grounds.max()) == BY_STRUCTURE

    def test_names_alone_that_tell_nothing_are_refused(self, seeded: Benchmark) -> None:
        names = seeded.task.names
        assert names is not None
        order = np.random.default_rng(0).permutation(names.target.num_entities)
        shuffled = Pair(names.source, names.target.take(order))
        with pytest.raises(InputError, match="names or features tell nothing"):
            run(with_task(seeded, names=shuffled), settings(model="names"))

    @pytest.mark.parametrize("model", ["names", "names,label-propagation"])
    def test_the_encoder_names_needs_names(self, seeded: Benchmark, model: str) -> None:
        with pytest.raises(InputError, match="^the encoder names needs names.*--name-files"):
            run(with_task(seeded, names=None), settings(model=model))

    def test_it_takes_part_wherever_there_are_names(self, seeded: Benchmark) -> None:
        one = run(seeded, settings())
        other = run(seeded, settings(model="names,label-propagation"))
        same(one.similarity, other.similarity)

    def test_with_samplers(self, seeded: Benchmark) -> None:
        few = ("sampling.num_batches=2", "sampling.gcn_epochs=10", "sampling.kmeans_starts=1")
        config = settings("fusion.views=local,global", *few, samplers=("vps",))
        both = run(seeded, config)
        assert "sampling: vps" in stages(both)
        assert hits(both) > hits(run(with_task(seeded, names=None), config)) + 0.04
        with pytest.raises(InputError, match="samplers need an encoder of structure beside names"):
            run(seeded, settings("fusion.views=local", *few, samplers=("vps",), model="names"))


class TestExpected:
    @pytest.mark.parametrize("device", ["cpu", "cuda"])
    def test_names_take_memory(self, seeded: Benchmark, device: str) -> None:
        config, bare = settings(), with_task(seeded, names=None)
        large, small = (
            expected_memory(each.task, config, torch.device(device)) for each in (seeded, bare)
        )
        assert large.host > small.host
        assert large.gpu >= small.gpu
        assert widths(config, seeded.task) == [*widths(config, bare.task), 256]
        config = settings("names.translates=true")
        features = seeded.task.num_entities.map(lambda count: np.zeros((count, 7), np.float32))
        both = with_task(seeded, features=features)
        assert widths(config, both.task) == [*widths(config, bare.task), 256, 256, 7]

    def test_names_alone(self, seeded: Benchmark) -> None:
        config = settings(model="names")
        assert widths(config, seeded.task) == [256]
        assert expected_memory(seeded.task, config, CPU).host > 0
        assert expected_disk(seeded, config, CPU) > 4 * 256 * sum(seeded.task.num_entities)

    @pytest.mark.parametrize("seeds", ["--seeds-share=0.3", "--seeds-from=names"])
    def test_on_the_command_line(
        self, seeds: str, folder: Path, tmp_path: Path, clusterea_command: Callable[..., Any]
    ) -> None:
        given = [folder, "--names=labels", seeds, "--preset=fast", "--device=cpu"]
        out = ["--model=names", "--out", tmp_path / "run"]
        assert clusterea_command("align", *given, *out, "--dry-run").code == 0
        assert clusterea_command("align", *given, *out).code == 0
        assert load_run(tmp_path / "run").config.models == ("names",)
        wrong = [folder, "--seeds-share=0.3", "--preset=fast", "--device=cpu"]
        ran = clusterea_command("align", *wrong, "--model=names", "--out", tmp_path / "other")
        assert ran.code != 0
        assert "the encoder names needs names" in " ".join(ran.err.split())
        assert "Traceback" not in ran.err


# -- presumed pairs ------------------------------------------------------------------------------


def fits_of(task: AlignmentTask, config: Config) -> list[Fit]:
    return fits(Made.of("", task), config)


class TestPresumed:
    def test_they_are_matched_and_judged_like_others(self, seedless: Benchmark) -> None:
        presumed = seedless.task.presumed
        assert len(presumed) >= FEWEST_SEEDS
        judged = np.isin(seedless.test_links[:, 0], presumed[:, 0])
        assert judged.sum() > len(presumed) / 2
        result = run(seedless, settings())
        linked = result.all_links.links.numpy()
        assert np.isin(presumed[:, 0], linked[:, 0]).mean() > 0.7
        assert result.evaluate().test_links == len(seedless.test_links)

    @pytest.mark.parametrize("num_fits", [1, 2])
    def test_structure_corrects_wrong_ones(self, num_fits: int) -> None:
        """Whether they are held out or not."""
        given = benchmark((600, 540), share=0.0)
        presumed = given.test_links[:240].copy()
        presumed[:40, 1] = np.roll(presumed[:40, 1], 1)
        given = with_task(given, presumed=presumed)
        config = settings(f"matching.fits={num_fits}")
        held = np.concatenate([each.held[:, 0] for each in fits_of(given.task, config)])
        partner = dict(run(given, config).all_links.links.tolist())
        truth = dict(given.test_links.tolist())
        for is_held in (False, True):
            wrong = [pair for pair in presumed[:40].tolist() if (pair[0] in held) == is_held]
            assert len(wrong) > 4
            right = [partner.get(source) == truth[source] for source, _ in wrong]
            assert np.mean(right) > 0.2
            assert sum(partner.get(source) == target for source, target in wrong) < sum(right)
        kept = [partner.get(source) == target for source, target in presumed[40:].tolist()]
        assert np.mean(kept) > 0.7

    def test_all_are_learned_from_at_first(self, seedless: Benchmark) -> None:
        config = settings("matching.held_out=0")
        (fit,) = fits_of(seedless.task, config)
        learned = fit.first_lesson().task.value
        assert listed(learned.seeds) == listed(seedless.task.presumed)
        assert not len(learned.presumed)
        assert not fit.hides
        assert not len(fit.known.value.seeds)

    @pytest.mark.parametrize("num_fits", [1, 2])
    def test_some_are_held_out_where_seeds_are_too_few(
        self, seedless: Benchmark, num_fits: int
    ) -> None:
        task = seedless.task
        every = fits_of(task, settings(f"matching.fits={num_fits}"))
        assert len(every) == num_fits
        for fit in every:
            assert fit.hides
            left = fit.known.value
            assert len(fit.held) >= FEWEST_SEEDS // 2
            assert sorted([*listed(fit.held), *listed(left.presumed)]) == listed(task.presumed)
            assert listed(fit.first_lesson().task.value.seeds) == listed(left.presumed)
            assert np.array_equal(fit.hidden.source, fit.held[:, 0])
            assert np.array_equal(fit.hidden.target, fit.held[:, 1])
        if num_fits == 2:
            assert not set(listed(every[0].held)) & set(listed(every[1].held))

    def test_seeds_are_held_out_instead_where_there_are_enough(self, seeded: Benchmark) -> None:
        used = seeded.task.seeds
        others = seeded.test_links[:60]
        task = seeded.task.with_seeds(used, others)
        (fit,) = fits_of(task, settings())
        assert not fit.hides
        assert not any(len(side) for side in fit.hidden)
        assert set(listed(fit.held)) < set(listed(used))
        assert listed(fit.known.value.presumed) == listed(others)

    def test_names_of_held_out_ones_are_hidden(
        self, seedless: Benchmark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In every fusion but the last; and no trust is fitted on them."""
        config = settings()
        (fit,) = fits_of(seedless.task, config)
        hidden: list[Pair[IntArray]] = []
        examples: list[Tensor] = []
        fuse, fit_trust = sharded.fuse, fusion.fit_trust

        def fuse_(*arguments: Any, **more: Any) -> Similarity:
            hidden.append(more["hidden"])
            return fuse(*arguments, **more)

        def fit_trust_(contents: Any, pairs: Tensor, device: Any) -> fusion.Trust:
            examples.append(pairs)
            return fit_trust(contents, pairs, device)

        monkeypatch.setattr(sharded, "fuse", fuse_)
        monkeypatch.setattr(fusion, "fit_trust", fit_trust_)
        result = run(seedless, config)
        *before, last = hidden
        assert not any(len(side) for side in last)
        assert len(before) == len(examples) >= 2
        for each in before:
            assert listed(np.stack([each.source, each.target], 1)) == listed(fit.held)
        for pairs in examples:
            assert len(pairs) > 20
            assert not np.isin(pairs[:, 0].numpy(), fit.held[:, 0]).any()
            assert not np.isin(pairs[:, 1].numpy(), fit.held[:, 1]).any()
        (fitted,) = result.made_fits
        assert result.similarity is fitted.similarity.value
        assert stages(result)[-2:] == ["fusion with all names, round 2", "matching"]

    @pytest.mark.parametrize("holds_few", [False, True])
    def test_equal_names_are_seen_in_the_result(
        self, holds_few: bool, seedless: Benchmark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """So that most held-out pairs are found there, and fewer in the trial."""
        if holds_few:
            monkeypatch.setattr(learning, "MOST_HELD_OUT", 0.6)
        result = run(seedless, settings())
        assert ("held-out names" in stages(result)) == holds_few
        (fit,) = fits_of(seedless.task, result.config)
        (fitted,) = result.made_fits
        found = []
        for each in (fitted.trial.value, fitted.similarity.value):
            order = each.values.argsort()  # of each row, the best one comes last
            cells = each.rows()[order].tolist(), each.columns[order].tolist()
            best = dict(zip(*cells, strict=True))
            found.append(np.mean([best.get(s) == t for s, t in fit.held.tolist()]))
        assert found[0] < found[1] - 0.1
        assert found[1] > 0.7

    def test_confidence_is_fitted_on_the_trial(
        self, seedless: Benchmark, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """There, held-out pairs are looked for by structure alone."""
        trials: list[matching.Trial] = []
        fit_confidence = matching.fit_confidence

        def fit_confidence_(given: Sequence[matching.Trial], edges: Any) -> Any:
            trials.extend(given)
            return fit_confidence(given, edges)

        monkeypatch.setattr(matching, "fit_confidence", fit_confidence_)
        result = run(seedless, settings())
        (fit,) = fits_of(seedless.task, result.config)
        (trial,) = trials
        assert isinstance(trial.similarity, HeldScores)
        (cells,) = trial.similarity.shards.refs
        assert torch.equal(cells.values, result.made_fits[0].trial.value.values)
        assert listed(trial.pairs) == listed(fit.held)
        assert trial.gains is not None
        assert not trial.gains(trial.pairs).any()

    def test_the_confidence_is_calibrated(self, folders: Sequence[Path]) -> None:
        told, true = [], []
        for folder in folders:
            given = clusterea.load(folder, names="labels", **KNOWN["seedless"])
            found = run(given, settings()).all_links
            truth = dict(given.test_links.tolist())
            right = [truth.get(source) == target for source, target in found.links.tolist()]
            told.append(float(found.confidence.mean()))
            true.append(np.mean(right))
        assert np.mean(told) == pytest.approx(np.mean(true), abs=0.1)

    def test_the_trial_does_not_see_hidden_names(self, seedless: Benchmark) -> None:
        """Held-out pairs are found as often as structure finds them, not as equal names are."""
        result = run(seedless, settings())
        (fit,) = fits_of(seedless.task, result.config)
        (fitted,) = result.made_fits
        assert fitted.trust is not None
        pairs = torch.from_numpy(fit.held.copy())
        visible = LinkGains.by(fitted.trust, fitted.contents)
        hidden = LinkGains.by(fitted.trust, fitted.contents, fit.hidden)
        assert visible is not None
        assert hidden is not None
        assert float(visible.total(pairs).min()) > 5  # equal names
        assert not hidden.total(pairs).any()


def listed(links: Any) -> list[tuple[int, int]]:
    return sorted((int(source), int(target)) for source, target in links)


class TestLinkGains:
    TRUST = fusion.Trust(
        torch.linspace(0, 1, 10).double().repeat(3, 1),
        torch.linspace(0, 1, 10).double() * torch.tensor([[6.0], [3.0], [2.0]]),
    )
    LINKS = torch.tensor([[0, 0], [1, 1], [2, 0]])

    def gains(self, hidden: Pair[IntArray] | None = None) -> LinkGains:
        names = Embeddings(torch.eye(3), torch.eye(3))
        features = Embeddings(torch.eye(3), torch.eye(3).flip(0))
        half = Embeddings(torch.eye(3), 0.6 * torch.eye(3))
        vectors = {"names": names, "features": features, "translation": half}
        given = {name: Made.of(name, each) for name, each in vectors.items()}
        nobody = Pair(np.empty(0, np.int64), np.empty(0, np.int64))
        return LinkGains(given, Made.of("trust", self.TRUST), hidden or nobody)

    def test_one_by_one_and_together(self) -> None:
        found = self.gains().of(self.LINKS)
        assert {name: values.tolist() for name, values in found.items()} == {
            "names": [6, 6, 0],
            "features": [0, 3, 3],
            "translation": [pytest.approx(1.2), pytest.approx(1.2), 0],
        }
        assert self.gains().total(self.LINKS).tolist() == pytest.approx([7.2, 10.2, 3])

    def test_hidden_on_either_side(self) -> None:
        hidden = Pair(np.array([1]), np.array([2]))
        assert self.gains(hidden).total(self.LINKS).tolist() == pytest.approx([7.2, 0, 3])
        hidden = Pair(np.array([1]), np.array([0]))
        assert self.gains(hidden).total(self.LINKS).tolist() == [0, 0, 0]

    def test_grounds(self) -> None:
        near = torch.tensor([True, False, False])
        found = self.gains().grounds(self.LINKS, near)
        assert found.dtype == torch.uint8
        assert found.tolist() == [
            BY_STRUCTURE | BY_NAMES,
            BY_NAMES | BY_FEATURES,
            BY_FEATURES,
        ]

    def test_none_without_a_trust(self) -> None:
        assert LinkGains.by(None, {}) is None


# -- a run's folder ------------------------------------------------------------------------------


QUICK = settings(
    "names.translates=true", "self_training.few=1", "matching.fits=2", "propagation.dimension=32"
)


def in_folder(place: Path, given: Benchmark) -> AlignmentResult:
    return run_in_folder(Workspace(place), given, QUICK, CPU, Ear())[0]


@pytest.fixture(scope="module")
def ran(clear: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, AlignmentResult]:
    given = clusterea.load(clear, names="labels", seeds_from="names")
    place = tmp_path_factory.mktemp("runs") / "run"
    return place, in_folder(place, given)


class TestFolder:
    def test_a_second_run_makes_nothing(
        self, ran: tuple[Path, AlignmentResult], clear: Path
    ) -> None:
        place, first = ran
        before = digests(place)
        counts = made(place)
        assert counts["names"] == 1
        assert counts["translation"] == counts["trust"] >= 2
        assert float(first.made_fits[0].contents["translation"].value.source.abs().sum()) > 0
        again = in_folder(place, clusterea.load(clear, names="labels", seeds_from="names"))
        assert reused(again) == stages(again) == stages(first)
        assert_same(first, again)
        assert digests(place) == before

    @pytest.mark.parametrize("stage", ["names", "translation", "trust", "fuse", "match"])
    def test_what_is_missing_is_made_again(
        self, stage: str, ran: tuple[Path, AlignmentResult], tmp_path: Path
    ) -> None:
        place, first = ran
        copy = tmp_path / "run"
        shutil.copytree(place, copy)
        for artifact in [*copy.glob(f"{stage}-*")]:
            shutil.rmtree(artifact)
        assert len(digests(copy)) < len(digests(place))
        again = in_folder(copy, first.named)
        assert_same(first, again)
        assert digests(copy) == digests(place)
        assert stages(first) == stages(again)
        assert 0 < len(reused(again)) < len(stages(again))

    def test_other_vectors_of_names_are_another_result(
        self, ran: tuple[Path, AlignmentResult], tmp_path: Path
    ) -> None:
        """In a folder that has the old ones: as in a new folder."""
        place, first = ran
        copy = tmp_path / "copy"
        shutil.copytree(place, copy)
        config = replace(QUICK, names=replace(QUICK.names, dimensions=128))
        here, there = (
            run_in_folder(Workspace(folder), first.named, config, CPU, Ear())[0]
            for folder in (copy, tmp_path / "new")
        )
        assert_same(here, there)
        kept = [name for name, key in here.keys.items() if first.keys.get(name) == key]
        assert not {name for name in kept if not name.startswith(("train", "pseudo"))}

    def test_it_takes_about_the_disk_that_was_expected(
        self, ran: tuple[Path, AlignmentResult]
    ) -> None:
        place, first = ran
        kinds = ("names", "translation", "train")
        taken = sum(
            file.stat().st_size for kind in kinds for file in place.glob(f"{kind}-*/*.safetensors")
        )
        bare = replace(first.named, task=replace(first.task, names=None))
        with_names, without = (expected_disk(each, QUICK, CPU) for each in (first.named, bare))
        assert with_names > without
        assert taken / 2 < with_names < 5 * taken

    def test_read_again(self, ran: tuple[Path, AlignmentResult], tmp_path: Path) -> None:
        place, first = ran
        again = load_run(place)
        assert_same(first, again)
        assert again.keys == first.keys
        assert len(again.made_fits) == 2
        for one, other in zip(first.made_fits, again.made_fits, strict=True):
            assert list(one.contents) == list(other.contents) == ["names", "translation"]
            assert one.trust is not None
            assert other.trust is not None
            assert torch.equal(one.trust.value.gains, other.trust.value.gains)
            same(one.trial.value, other.trial.value)
            assert one.trial.key != one.similarity.key
        source = int(again.alignment.links[0, 0])
        said = again.explain(again.named.names.source[source])
        assert str(said) == str(first.explain(first.named.names.source[source]))
        for result, name in ((first, "one"), (again, "other")):
            result.export(tmp_path / name, "tsv")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()

    def test_links_that_were_dropped_are_explained_too(
        self, ran: tuple[Path, AlignmentResult]
    ) -> None:
        """It matches again, with the stored trust and vectors."""
        place, first = ran
        again = load_run(place)
        one, other = first._with_dropped(), again._with_dropped()
        assert len(one.links) > len(first.all_links.links)
        assert torch.equal(one.links, other.links)
        assert torch.equal(one.confidence, other.confidence)
        assert one.grounds is not None
        assert other.grounds is not None
        assert torch.equal(one.grounds, other.grounds)


# -- features ------------------------------------------------------------------------------------


class TestFeatures:
    def vectors(self, given: Benchmark, seed: int) -> tuple[Tensor, Tensor]:
        draw = torch.Generator().manual_seed(seed)
        sizes = given.task.num_entities
        source, target = (torch.randn(size, 32, generator=draw) for size in sizes)
        return source, target

    def informative(self, given: Benchmark, share: float) -> tuple[Tensor, Tensor]:
        """A share of all pairs has nearly equal vectors, of any length."""
        source, target = self.vectors(given, 1)
        pairs = np.concatenate([given.task.seeds, given.test_links])
        pairs = np.random.default_rng(0).permutation(pairs)[: int(share * len(pairs))]
        target[pairs[:, 1]] = 3 * source[pairs[:, 0]] + 0.3 * target[pairs[:, 1]]
        return source, target

    def aligned(self, given: Benchmark, features: Any = None) -> AlignmentResult:
        return clusterea.align(given, "fast", features=features, settings=SMALL, device="cpu")

    def test_they_help(self, folder: Path) -> None:
        given = clusterea.load(folder, seeds_share=0.3)
        plain = self.aligned(given)
        result = self.aligned(given, self.informative(given, 0.5))
        assert gains_of(result)[0] > 5
        assert hits(result) > hits(plain) + 0.1
        assert result.all_links.grounds is not None
        by_features = (result.all_links.grounds & BY_FEATURES).bool().float().mean()
        assert 0.3 < float(by_features) < 0.8
        assert plain.all_links.grounds is None

    def test_arrays_may_be_of_numpy(self, folder: Path) -> None:
        given = clusterea.load(folder, seeds_share=0.3)
        vectors = self.informative(given, 0.5)
        one = self.aligned(given, Pair(*(side.double().numpy() for side in vectors)))
        same(one.similarity, self.aligned(given, vectors).similarity)

    @pytest.mark.parametrize("seed", range(3))
    def test_random_ones_change_nothing(self, folder: Path, seed: int) -> None:
        given = clusterea.load(folder, seeds_share=0.3)
        result = self.aligned(given, self.vectors(given, seed))
        assert gains_of(result) == [0]
        same(result.similarity, self.aligned(given).similarity)

    def test_beside_names(self, seeded: Benchmark) -> None:
        result = self.aligned(seeded, self.informative(seeded, 0.4))
        assert list(result.made_fits[0].contents) == ["names", "features"]
        assert min(gains_of(result)) > 3
        assert hits(result) > hits(self.aligned(seeded)) + 0.05

    def test_zeros_are_no_vectors(self, folder: Path) -> None:
        given = clusterea.load(folder, seeds_share=0.3)
        source, target = self.informative(given, 0.5)
        source[:] = 0
        result = self.aligned(given, (source, target))
        assert gains_of(result) == [0]

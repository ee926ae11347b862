"""Runs with what a person decided, and warm restarts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_runs import CPU, Ear, benchmark, digests, in_rounds, reused, stages

import clusterea
from clusterea.config import Config, preset
from clusterea.errors import InputError
from clusterea.pipeline import AlignmentResult, align, find_previous, load_run, run_in_folder
from clusterea.pipeline.learning import FEWEST_SEEDS, fits
from clusterea.pipeline.previous import Previous
from clusterea.pipeline.store import Made
from clusterea.training.losses import rejected_loss
from clusterea.types import Answer, Benchmark, Decisions, IntArray
from clusterea.workspace import Workspace, task_key
from conftest import Ran

QUICK = ("propagation.dimension=128", "propagation.features=256", "fusion.candidates=20")


@pytest.fixture(scope="module")
def pair() -> Benchmark:
    return benchmark((400, 360), degree=4, share=0.4)


def fast(*more: str) -> Config:
    return preset("fast", 400, settings=[*QUICK, *more])


def decided(given: Benchmark, *answers: tuple[int | None, int | None, str]) -> Benchmark:
    made = (Answer(s, t, verdict) for s, t, verdict in answers)  # type: ignore[arg-type]
    return given.with_decisions(Decisions.of(made))


def linked(result: AlignmentResult) -> dict[int, int]:
    return dict(result.all_links.links.tolist())


class TestDecided:
    def test_rejected_pairs_are_never_linked(self, pair: Benchmark) -> None:
        before = linked(align(pair.task, fast(), CPU))
        some = list(before.items())[::3]
        assert len(some) > 20
        after = align(decided(pair, *((s, t, "different") for s, t in some)).task, fast(), CPU)
        now = linked(after)
        assert not [source for source, target in some if now.get(source) == target]
        rejected = torch.tensor(some)
        rows, columns = after.similarity.rows(), after.similarity.columns
        keys = rows * 1000 + columns
        assert not torch.isin(keys, rejected[:, 0] * 1000 + rejected[:, 1]).any()
        others = [source for source in before if source not in dict(some)]
        assert np.mean([now.get(source) == before[source] for source in others]) > 0.7

    def test_accepted_pairs_are_seeds(self, pair: Benchmark) -> None:
        source, target = pair.test_links[0].tolist()
        wrong = int(pair.test_links[1, 1])
        result = align(decided(pair, (source, wrong, "same")).task, fast(), CPU)
        assert [source, wrong] in result.task.seeds.tolist()
        assert source not in linked(result)
        assert target in result.alignment.unmatched.target or target in linked(result).values()

    def test_entities_without_a_counterpart_are_unmatched(self, pair: Benchmark) -> None:
        before = linked(align(pair.task, fast(), CPU))
        (source, _), (_, target), *_ = before.items()
        given = decided(pair, (source, None, "none"), (None, target, "none"))
        result = align(given.task, fast(), CPU)
        assert source not in linked(result)
        assert target not in linked(result).values()
        assert source in result.alignment.unmatched.source
        assert target in result.alignment.unmatched.target

    def test_rejected_pairs_lower_the_confidence(self) -> None:
        """Those that are held out are examples of wrong links."""
        given = benchmark((400, 360), degree=4, share=0.6)
        before = align(given.task, fast(), CPU)
        wrong = before.all_links.links[::2].tolist()
        after = align(decided(given, *((s, t, "different") for s, t in wrong)).task, fast(), CPU)
        assert after.all_links.examples > before.all_links.examples

    def test_test_links_play_no_part(self, pair: Benchmark) -> None:
        answers = [(int(s), int(t), "same") for s, t in pair.test_links[:5]]
        answers += [
            (int(s), int(t), "different")
            for s, (_, t) in zip(pair.test_links[10:20, 0], pair.test_links[20:30], strict=True)
        ]
        one = decided(pair, *answers)
        other = decided(replace(pair, test_links=pair.test_links[:0]), *answers)
        assert task_key(one.task) == task_key(other.task)

    def test_the_order_of_answers_does_not_matter(self, many: Benchmark) -> None:
        links = many.test_links
        ends = zip(links[:30, 0], links[1:31, 1], strict=True)
        wrong = [(int(s), int(t), "different") for s, t in ends]
        found = [
            align(decided(many, *some).task, in_rounds(), CPU).all_links
            for some in (wrong, wrong[::-1])
        ]
        assert torch.equal(found[0].links, found[1].links)
        assert torch.equal(found[0].confidence, found[1].confidence)

    def test_loss_of_rejected_pairs(self) -> None:
        source = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        target = torch.tensor([[0.5, 0.0], [4.0, 1.0]])
        assert float(rejected_loss(source, target, margin=1.0)) == pytest.approx((0.75 + 0) / 2)

    def test_training_pushes_rejected_pairs_apart(self, pair: Benchmark) -> None:
        config = preset(
            "paper",
            400,
            samplers=[],
            settings=["training.dimension=32", "training.epochs=30", "fusion.views=global"],
        )
        before = align(pair.task, config, CPU, until="train").embeddings
        pairs = pair.test_links[:40]
        given = replace(pair.task, rejected=pairs)
        after = align(given, config, CPU, until="train").embeddings

        def near(both: clusterea.Pair[torch.Tensor]) -> float:
            source, target = torch.tensor(pairs).T
            return float((both.source[source] * both.target[target]).sum(1).mean())

        assert near(after) < near(before) - 0.03


# -- warm restarts -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> Benchmark:
    return benchmark((260, 230), share=0.6)


def run(
    given: Benchmark, folder: Path, answers: Sequence[Answer] = (), config: Config | None = None
) -> AlignmentResult:
    data = given.with_decisions(Decisions.of(answers)) if answers else given
    config = config or in_rounds("matching.fits=2")
    workspace = Workspace(folder)
    previous = find_previous(workspace, data.task, config, CPU)
    result, _ = run_in_folder(
        workspace, data, config, CPU, Ear(), task=task_key(given.task), previous=previous
    )
    return result


def some_answers(given: Benchmark, count: int = 6) -> list[Answer]:
    right = given.test_links[:count].tolist()
    wrong = zip(given.test_links[count : 2 * count, 0], given.test_links[:count, 1], strict=True)
    return [
        *(Answer(s, t, "same") for s, t in right),
        *(Answer(int(s), int(t), "different") for s, t in wrong),
    ]


class TestWarm:
    def test_trained_embeddings_are_taken_over(self, many: Benchmark, tmp_path: Path) -> None:
        first = run(many, tmp_path)
        assert first.previous is None
        warm = run(many, tmp_path, some_answers(many))
        assert warm.previous == first.leaves
        assert not [stage for stage in stages(warm) if stage.startswith("training")]
        assert [each.trained for each in warm.made_fits] == [
            each.trained for each in first.made_fits
        ]
        assert any(each.trained for each in first.made_fits)
        assert len(stages(warm)) < len(stages(first))
        accepted = {(each.source, each.target) for each in some_answers(many)[:6]}
        assert accepted <= {*map(tuple, warm.task.seeds.tolist())}

    def test_the_same_again_computes_nothing(self, many: Benchmark, tmp_path: Path) -> None:
        run(many, tmp_path)
        warm = run(many, tmp_path, some_answers(many))
        before = digests(tmp_path)
        again = run(many, tmp_path, some_answers(many))
        assert again.previous == warm.previous
        assert reused(again) == stages(again)
        assert digests(tmp_path) == before

    def test_a_stored_run_says_what_it_took_over(self, many: Benchmark, tmp_path: Path) -> None:
        run(many, tmp_path)
        warm = run(many, tmp_path, some_answers(many))
        stored = load_run(tmp_path)
        assert stored.previous == warm.previous
        assert stored.leaves == warm.leaves
        assert stored.keys == warm.keys
        assert Previous.from_dict(warm.leaves.to_dict()) == warm.leaves

    def test_a_killed_restart_goes_on(self, many: Benchmark, tmp_path: Path) -> None:
        run(many, tmp_path / "one")
        run(many, tmp_path / "other")
        whole = run(many, tmp_path / "one", some_answers(many))
        data = many.with_decisions(Decisions.of(some_answers(many)))
        workspace, config = Workspace(tmp_path / "other"), in_rounds("matching.fits=2")
        previous = find_previous(workspace, data.task, config, CPU)
        with pytest.raises(KeyboardInterrupt):
            run_in_folder(
                workspace,
                data,
                config,
                CPU,
                Ear(stop_at="matching"),
                task=task_key(many.task),
                previous=previous,
            )
        resumed = run(many, tmp_path / "other", some_answers(many))
        assert resumed.previous == previous == whole.previous
        assert resumed.keys == whole.keys

    @pytest.mark.parametrize("setting", ["self_training.threshold=0.2", "matching.seed=1"])
    def test_other_settings_run_in_full(
        self, setting: str, many: Benchmark, tmp_path: Path
    ) -> None:
        run(many, tmp_path)
        config = in_rounds("matching.fits=2", setting)
        assert run(many, tmp_path, some_answers(many), config).previous is None

    def test_seeds_alone_are_no_warm_restart(self, many: Benchmark, tmp_path: Path) -> None:
        """Without training and without pseudo-seeds, there is nothing to take over."""
        run(many, tmp_path, config=fast())
        assert run(many, tmp_path, some_answers(many), fast()).previous is None

    def test_pseudo_seeds_are_taken_over(self, many: Benchmark, tmp_path: Path) -> None:
        """Where nothing is trained: they stand for the first pass."""
        config = fast("self_training.few=1")
        first = run(many, tmp_path, config=config)
        warm = run(many, tmp_path, some_answers(many), config)
        assert warm.previous == first.leaves
        assert warm.previous.keys == [first.rounds[-1].found.key]
        assert torch.equal(warm.rounds[0].pseudo_seeds, first.rounds[-1].pseudo_seeds)
        assert len(warm.rounds) == 2 + config.self_training.rounds
        assert "propagation" in stages(first)
        assert "propagation" not in stages(warm)
        again = run(many, tmp_path, some_answers(many), config)
        assert again.keys == warm.keys
        assert reused(again) == stages(again)

    @pytest.mark.parametrize(("more", "is_warm"), [(0, True), (1, False)])
    def test_mostly_new_seeds_run_in_full(self, more: int, is_warm: bool, tmp_path: Path) -> None:
        """What so few seeds taught is poor."""
        given, config = benchmark((260, 230), share=0.1), fast("self_training.few=1")
        seeds = len(given.task.seeds)
        assert 2 * seeds + more < FEWEST_SEEDS  # none are held out
        run(given, tmp_path, config=config)
        answers = [Answer(s, t, "same") for s, t in given.test_links[: seeds + more].tolist()]
        assert (run(given, tmp_path, answers, config).previous is not None) == is_warm

    def test_held_out_seeds_taught_nothing_before(self, tmp_path: Path) -> None:
        """Though a full run would hold out more of them, after answers to random questions."""
        given = benchmark((400, 360), share=0.2)
        config = fast("self_training.few=1", "matching.fits=2")
        first = run(given, tmp_path, config=config)
        answers = [Answer(s, t, "same", is_random=True) for s, t in given.test_links[:12].tolist()]
        warm = run(given, tmp_path, answers, config)
        assert warm.previous is not None
        before, now, full = (
            fits(Made.of("", each.task), config, held)
            for each, held in ((first, 0), (warm, warm.previous.held), (warm, 0))
        )
        assert len(full[0].held) > len(now[0].held) == len(before[0].held) == warm.leaves.held
        for old, new, other in zip(before, now, full, strict=True):
            learned = {*map(tuple, old.known.value.seeds.tolist())}
            assert learned & {*map(tuple, other.held.tolist())}
            assert not learned & {*map(tuple, new.held.tolist())}

    def test_it_holds_out_nothing_that_was_learned(self, tmp_path: Path) -> None:
        """With 50 seeds some are held out, and with fewer none: these were learned from."""
        given = benchmark((260, 230), share=0.2)
        first = run(given, tmp_path)
        answers = [Answer(s, t, "same") for s, t in given.test_links[:30].tolist()]
        data = given.with_decisions(Decisions.of(answers))
        before, now = (fits(Made.of("", each), first.config) for each in (given.task, data.task))
        learned = {*map(tuple, before[0].known.value.seeds.tolist())}
        assert learned & {*map(tuple, now[0].held.tolist())}
        assert run(given, tmp_path, answers).previous is None

    def test_a_missing_artifact_runs_in_full(self, many: Benchmark, tmp_path: Path) -> None:
        first = run(many, tmp_path)
        Workspace(tmp_path).remove(first.leaves.keys[-1])
        assert run(many, tmp_path, some_answers(many)).previous is None

    @pytest.mark.parametrize("is_warm", [False, True])
    def test_a_damaged_artifact_runs_in_full(
        self, is_warm: bool, many: Benchmark, tmp_path: Path
    ) -> None:
        first = run(many, tmp_path)
        if is_warm:
            run(many, tmp_path, some_answers(many))
        file = Workspace(tmp_path).tensors_file(first.leaves.keys[-1])
        file.write_bytes(file.read_bytes()[:-9])
        result = run(many, tmp_path, some_answers(many))
        assert result.previous is None
        assert len(result.all_links.links)

    def test_an_accepted_pair_that_is_taken_back_runs_in_full(
        self, many: Benchmark, tmp_path: Path
    ) -> None:
        answers = some_answers(many)
        run(many, tmp_path, answers)
        first = answers[0]
        back = Answer(first.source, first.target, "undone")
        assert run(many, tmp_path, [*answers, back]).previous is None

    def test_another_seed_of_matching_trains_again(
        self, many: Benchmark, tmp_path: Path, clusterea_command: Callable[..., Ran]
    ) -> None:
        """It holds out other pairs, which the taken-over embeddings may have learned from."""
        run(many, tmp_path)
        assert run(many, tmp_path, some_answers(many)).previous is not None
        assert clusterea_command("match", tmp_path, "--device", "cpu").code == 0
        assert load_run(tmp_path).previous is not None
        assert clusterea_command("match", tmp_path, "--seed", "3", "--device", "cpu").code == 0
        assert load_run(tmp_path).previous is None


class TestLibrary:
    def rows(self, given: Benchmark, pairs: IntArray, word: str) -> list[tuple[str, str, str]]:
        return [(given.names.source[s], given.names.target[t], word) for s, t in pairs.tolist()]

    def test_rows(self, pair: Benchmark) -> None:
        rows = self.rows(pair, pair.test_links[:3], "same")
        result = clusterea.align(pair, "fast", settings=QUICK, device="cpu", decisions=rows)
        assert result.task.num_seeds == pair.task.num_seeds + 3
        assert len(result.named.test_links) == len(pair.test_links) - 3

    def test_a_file(self, pair: Benchmark, tmp_path: Path) -> None:
        rows = self.rows(pair, pair.test_links[:3], "same")
        path = tmp_path / "answers.tsv"
        path.write_text("".join("\t".join(row) + "\n" for row in rows))
        result = clusterea.align(pair, "fast", settings=QUICK, device="cpu", decisions=path)
        assert result.task.num_seeds == pair.task.num_seeds + 3

    def test_of_a_bare_task(self, pair: Benchmark) -> None:
        source, target = pair.test_links[0].tolist()
        answer = Answer(source, target, "same")
        result = clusterea.align(
            pair.task, "fast", settings=QUICK, device="cpu", decisions=[answer]
        )
        assert result.task.num_seeds == pair.task.num_seeds + 1

    def test_no_seed_is_left(self, pair: Benchmark) -> None:
        rows = self.rows(pair, pair.task.seeds, "different")
        with pytest.raises(InputError, match="the decisions reject every seed"):
            clusterea.align(pair, "fast", device="cpu", decisions=rows)

    def test_wrong_decisions_remove_nothing(self, pair: Benchmark, tmp_path: Path) -> None:
        given: dict[str, Any] = {"settings": QUICK, "device": "cpu", "run": tmp_path / "run"}
        clusterea.align(pair, "fast", **given)
        with pytest.raises(InputError, match="no entity of the source graph"):
            clusterea.align(
                pair, "fast", overwrite=True, decisions=[("nobody", "x", "same")], **given
            )
        assert (tmp_path / "run/alignment.tsv").exists()

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([("nobody", "x", "same")], "no entity of the source graph is called 'nobody'"),
            ([("a", "b")], "decisions must be a file, answers, or rows"),
            ([("a", "b", "maybe")], "a decision must be same or different. Got 'maybe'"),
        ],
    )
    def test_wrong_rows(self, rows: list[tuple[str, ...]], message: str, pair: Benchmark) -> None:
        with pytest.raises(InputError, match=message):
            clusterea.align(pair, "fast", device="cpu", decisions=rows)  # type: ignore[arg-type]

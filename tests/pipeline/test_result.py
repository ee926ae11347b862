"""`AlignmentResult`: what can be done with it in Python, with names and without."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import small_runs
import torch
from small_runs import CPU, in_rounds

import clusterea
from clusterea.data.synthetic import SHAPES, generate
from clusterea.errors import InputError
from clusterea.pipeline import align
from clusterea.pipeline.store import Made
from clusterea.report.explanation import Linked, Unlinked
from clusterea.types import Answer, Benchmark, Names, Pair, Texts

SHAPE = replace(
    SHAPES["demo"], entities=Pair(150, 130), triples=Pair(700, 600), relations=Pair(9, 7)
)
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def benchmark() -> Benchmark:
    made = generate(SHAPE, seed=0)
    names = made.names.map(lambda side: Names(f"{name}{HOSTILE}" for name in side))
    links = made.test_links if len(made.test_links) else made.task.seeds
    task = made.task.with_seeds(links[:50])
    return Benchmark(task, links[50:], names, made.relation_names)


@pytest.fixture(scope="module")
def result(benchmark: Benchmark) -> clusterea.AlignmentResult:
    return clusterea.align(benchmark, preset="fast", device="cpu")


@pytest.fixture(scope="module")
def nameless(benchmark: Benchmark) -> clusterea.AlignmentResult:
    return clusterea.align(benchmark.task, preset="fast", device="cpu")


def test_links_by_name(result: clusterea.AlignmentResult, benchmark: Benchmark) -> None:
    pytest.importorskip("pandas")
    table = result.to_pandas()
    source, target = result.alignment.links[0].tolist()
    assert table["source"][0] == benchmark.names.source[source]
    assert table["target"][0] == benchmark.names.target[target]
    assert len(table) == len(result.alignment.links) > 10


def test_links_by_number_where_there_are_no_names(nameless: clusterea.AlignmentResult) -> None:
    pytest.importorskip("pandas")
    table = nameless.to_pandas()
    assert table[["source", "target"]].to_numpy().tolist() == nameless.alignment.links.tolist()
    assert list(nameless.named.names.source[:2]) == ["0", "1"]


def test_evaluation_by_the_benchmarks_test_links(
    result: clusterea.AlignmentResult,
    nameless: clusterea.AlignmentResult,
    benchmark: Benchmark,
) -> None:
    assert result.evaluate() == result.evaluate(benchmark.test_links)
    with pytest.raises(InputError, match="no test links to judge by"):
        nameless.evaluate()


@pytest.mark.parametrize("shape", [(4, 3), (4, 1), (4,), (2, 2, 2), ()])
def test_links_of_another_shape_are_refused(
    shape: tuple[int, ...], result: clusterea.AlignmentResult
) -> None:
    wanted = re.escape(f"must have two columns, source and target entity. Got shape {shape}")
    with pytest.raises(InputError, match=wanted):
        result.evaluate(np.zeros(shape, dtype=np.int64))


def test_no_links_are_said_to_be_none(result: clusterea.AlignmentResult) -> None:
    for none in (np.empty((0, 2), dtype=np.int64), torch.empty(0)):
        with pytest.raises(InputError, match="there are no test links to judge by"):
            result.evaluate(none)


def test_names_by_number_are_made_once_and_only_where_needed(benchmark: Benchmark) -> None:
    nameless = clusterea.align(benchmark.task, preset="fast", device="cpu")
    with (
        patch("clusterea.pipeline.result.Names", side_effect=AssertionError),
        pytest.raises(InputError, match="no test links to judge by"),
    ):
        nameless.evaluate()
    assert nameless.named is nameless.named


def test_exported_links_load_again(
    result: clusterea.AlignmentResult, benchmark: Benchmark, tmp_path: Path
) -> None:
    path = tmp_path / "links.tsv"
    result.export(path, format="tsv")
    result.export(str(tmp_path / "sure.tsv"), "tsv", min_confidence=1.0)
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    assert len(rows) == len(result.alignment.links)
    assert rows[0][0] in set(benchmark.names.source)
    sure = int((result.alignment.confidence >= 1).sum())
    assert len((tmp_path / "sure.tsv").read_text().splitlines()) == 1 + sure
    with pytest.raises(InputError, match="unknown format 'tvs'.*Did you mean 'tsv'"):
        result.export(path, format="tvs")
    with pytest.raises(InputError, match=r"^min_confidence must be a number in \[0, 1\]. Got 60"):
        result.export(path, format="tsv", min_confidence=60)


def test_the_report_is_the_one_of_the_command_line(
    result: clusterea.AlignmentResult, nameless: clusterea.AlignmentResult, tmp_path: Path
) -> None:
    result.report(tmp_path / "mine.html")
    page = (tmp_path / "mine.html").read_text()
    assert "<title>mine" in page
    assert "label-propagation" in page  # the settings
    nameless.report(str(tmp_path / "numbers.html"))
    assert (tmp_path / "numbers.html").stat().st_size


def test_labels_are_exported_and_reported(
    result: clusterea.AlignmentResult, benchmark: Benchmark, tmp_path: Path
) -> None:
    labels = benchmark.names.map(lambda side: Texts.of_lists([f"{name}!"] for name in side))
    labeled = replace(result, benchmark=replace(benchmark, labels=labels))
    for each, name in ((result, "plain"), (labeled, "labeled")):
        each.export(tmp_path / f"{name}.sssom.tsv", format="sssom")
        each.report(tmp_path / f"{name}.html")
    assert "subject_label" not in (tmp_path / "plain.sssom.tsv").read_text()
    source = benchmark.names.source[int(result.alignment.links[0, 0])]
    assert f"\t{source}!\towl:sameAs\t" in (tmp_path / "labeled.sssom.tsv").read_text()
    assert '"labels":{"source":{"' in (tmp_path / "labeled.html").read_text()
    assert '"labels":{' not in (tmp_path / "plain.html").read_text()


def test_a_link_is_explained_by_linked_neighbors(
    result: clusterea.AlignmentResult, benchmark: Benchmark
) -> None:
    source, target = result.alignment.links[0].tolist()
    names = benchmark.names.source[source], benchmark.names.target[target]
    for name in names:
        told = result.explain(name)
        assert repr(told).startswith(f"{names[0]} = {names[1]} (score ")
        (linked,) = told.answers
        assert isinstance(linked, Linked)
        supports = told.supports(linked)
        assert len(supports) == min(12, linked.evidence.total) > 0
        assert repr(told).count("\n") == 2 + len(supports)  # head and note beside
        assert supports[0].neighbors.source in repr(told)
    shown = result.explain(names[0], limit=1)._repr_html_()
    assert shown.count("<tr>") == 2
    assert "<script>" not in shown


@pytest.mark.parametrize(("examples", "measure"), [(0, "score"), (140, "confidence")])
def test_an_explanation_says_what_its_numbers_are(
    examples: int, measure: str, result: clusterea.AlignmentResult, benchmark: Benchmark
) -> None:
    links = replace(result.alignment, examples=examples)
    found = replace(result, made_alignment=Made.of("match-0", links))
    note = links.confidence_note
    source = benchmark.names.source[int(links.links[0, 0])]
    told = found.explain(source)
    assert f" ({measure} " in repr(told)
    assert repr(told).endswith(note)
    assert note in told._repr_html_()
    seed = benchmark.names.source[int(benchmark.task.seeds[0, 0])]
    assert note not in repr(found.explain(seed))
    lone = [benchmark.names.source[each] for each in links.unmatched.source.tolist()]
    assert any(f", {measure} " in repr(found.explain(each)) for each in lone)


def test_evidence_is_not_rounded_to_certainty(
    result: clusterea.AlignmentResult, benchmark: Benchmark
) -> None:
    sure = torch.full_like(result.alignment.confidence, 0.9997)
    links = replace(result.alignment, confidence=sure)
    nearly = replace(result, made_alignment=Made.of("match-0", links))
    names = benchmark.names.source
    told = [nearly.explain(names[source]) for source in result.alignment.links[:20, 0].tolist()]
    shown = " ".join(f"{each!r} {each._repr_html_()}" for each in told)
    assert "1.000" not in shown
    assert "   >0.999" in shown
    assert "<td>&gt;0.999</td>" in shown


def test_an_entity_without_a_link_has_candidates(
    result: clusterea.AlignmentResult, benchmark: Benchmark
) -> None:
    lone = int(result.alignment.unmatched.source[0])
    told = result.explain(benchmark.names.source[lone], limit=3)
    (unlinked,) = told.answers
    assert isinstance(unlinked, Unlinked)
    first, last = result.similarity.row_offsets[lone : lone + 2].tolist()
    best = int(result.similarity.columns[first:last][result.similarity.values[first:last].argmax()])
    assert unlinked.candidates[0].entity == best
    assert "(source) has no link. Its best candidates" in repr(told)
    assert benchmark.names.target[best] in repr(told)


def test_an_entity_that_is_not_there_is_refused(
    result: clusterea.AlignmentResult, nameless: clusterea.AlignmentResult
) -> None:
    with pytest.raises(InputError, match="no entity of either graph is called 'nobody'"):
        result.explain("nobody")
    source, target = nameless.alignment.links[0].tolist()
    assert f"{source} = {target} (score" in repr(nameless.explain(source))


def test_a_notebook_shows_the_surest_links_escaped(
    result: clusterea.AlignmentResult, benchmark: Benchmark
) -> None:
    for value in (result, benchmark):
        shown = value._repr_html_()
        assert "&lt;script&gt;" in shown
        assert "<script>" not in shown
    rows = result._repr_html_().count("<tr>") - 1
    assert rows == 10
    surest = int(result.alignment.confidence.argmax())
    name = benchmark.names.source[int(result.alignment.links[surest, 0])]
    assert name.removesuffix(HOSTILE) in result._repr_html_()


def test_reprs_are_short(result: clusterea.AlignmentResult) -> None:
    assert repr(result).startswith(f"AlignmentResult(Alignment({len(result.alignment.links):,} li")
    assert "models: label-propagation; samplers: none" in repr(result)
    assert len(repr(result)) < 300
    assert len(repr(result.config)) < 150


class TestSuggestions:
    def test_a_table_of_named_pairs(
        self, result: clusterea.AlignmentResult, benchmark: Benchmark
    ) -> None:
        pytest.importorskip("pandas")
        found = result.suggest(20)
        table = found.to_pandas()
        assert [*table] == ["source", "target", "score", "asked", "linked"]
        assert len(table) == len(found) == 20
        assert table["asked"].tolist() == (["chosen"] * 3 + ["random"]) * 5
        links = {(s, t): c for (s, t), c in zip(*links_of(result), strict=True)}
        for question, row in zip(found, table.itertuples(), strict=True):
            assert row.source == benchmark.names.source[question.source]
            assert row.target == benchmark.names.target[question.target]
            assert row.linked == ((question.source, question.target) in links)
            if row.linked:
                assert row.score == pytest.approx(links[question.source, question.target])
            else:
                assert question.source in result.alignment.unmatched.source

    def test_labels(self, result: clusterea.AlignmentResult, benchmark: Benchmark) -> None:
        labels = Pair(
            Texts.of_lists([f"label {each}"] for each in range(len(benchmark.names.source))),
            Texts.of_lists([] for _ in benchmark.names.target),
        )
        found = replace(result, benchmark=replace(benchmark, labels=labels)).suggest(3)
        first = found[0]
        columns = found.columns()
        assert columns["source_label"][0] == f"label {first.source}"
        assert columns["target_label"] == [None] * 3
        name = benchmark.names.source[first.source]
        assert f"  label {first.source} ({name})   " in repr(found)

    def test_it_is_shown(self, result: clusterea.AlignmentResult) -> None:
        found = result.suggest(8)
        title, header, *rows, note = repr(found).splitlines()
        assert title == "Suggestions(8 pairs, 2 of them at random)"
        assert header.split("   ")[-2:] == ["score", "why it is asked"]
        assert [row.endswith("   a link, drawn at random") for row in rows] == (
            [False, False, False, True] * 2
        )
        assert note == result.alignment.confidence_note
        shown = found._repr_html_()
        assert shown.count("<tr>") == 1 + 8
        assert "<script>" not in shown

    def test_what_was_answered_is_not_asked_again(
        self, nameless: clusterea.AlignmentResult
    ) -> None:
        asked = nameless.suggest(8)
        answers = [Answer(each.source, each.target, "different") for each in asked]
        sources = {each.source for each in nameless.suggest(1000, answers)}
        assert sources
        assert not sources & {each.source for each in asked}

    def test_no_pair_is_too_few(self, result: clusterea.AlignmentResult) -> None:
        with pytest.raises(InputError, match=r"^count must be an int in \[1, inf\). Got 0"):
            result.suggest(0)


def links_of(result: clusterea.AlignmentResult) -> tuple[list[list[int]], list[float]]:
    return result.alignment.links.tolist(), result.alignment.confidence.tolist()


class TestBounds:
    """`min_confidence` and `top` leave links out of `alignment`, and of what is made of it."""

    def test_links(self, result: clusterea.AlignmentResult, tmp_path: Path) -> None:
        few = replace(result, top=7)
        assert torch.equal(few.alignment.links, result.alignment.top(7).links)
        assert few.all_links is result.all_links
        few.export(tmp_path / "few.tsv", format="tsv")
        assert len((tmp_path / "few.tsv").read_text().splitlines()) == 1 + 7
        least = float(result.alignment.confidence.median())
        sure = replace(result, min_confidence=least)
        assert 0 < len(sure.alignment.links) < len(result.alignment.links)
        assert float(sure.alignment.confidence.min()) >= least

    def test_a_link_that_was_left_out_is_still_explained(
        self, result: clusterea.AlignmentResult, benchmark: Benchmark
    ) -> None:
        last = int(result.alignment.links[-1, 0])
        few = replace(result, top=1)
        assert last in few.alignment.unmatched.source
        assert "top: score" in repr(few.explain(benchmark.names.source[last]))
        assert "top: score" not in repr(result.explain(benchmark.names.source[last]))


class TestStoppedEarly:
    def test_what_is_not_there_is_named(self, benchmark: Benchmark) -> None:
        config = small_runs.quick(samplers=[])
        trained = align(benchmark.task, config, CPU, until="train")
        assert len(trained.encodings) == 1
        for stage, ask in (
            ("fuse", lambda: trained.similarity),
            ("match", lambda: trained.alignment),
            ("fuse", lambda: trained.evaluate(benchmark.test_links)),
        ):
            with pytest.raises(InputError, match=f"the run was stopped before `{stage}`"):
                ask()

    def test_a_similarity_alone_is_judged_by_its_ranks(self, benchmark: Benchmark) -> None:
        config = small_runs.quick(samplers=[])
        fused = align(benchmark.task, config, CPU, until="fuse").evaluate(benchmark.test_links)
        whole = align(benchmark.task, config, CPU).evaluate(benchmark.test_links)
        assert fused.matching is None
        assert whole.matching is not None
        assert fused.test_candidates == whole.test_candidates


def test_two_graphs_in_one_call(benchmark: Benchmark) -> None:
    def rows(side: str) -> list[tuple[str, str, str]]:
        graph = getattr(benchmark.task.graphs, side)
        names, relations = getattr(benchmark.names, side), getattr(benchmark.relation_names, side)
        return [(names[h], relations[r], names[t]) for h, r, t in graph.triples.tolist()]

    def pairs(links: clusterea.types.IntArray) -> list[tuple[str, str]]:
        return [(benchmark.names.source[s], benchmark.names.target[t]) for s, t in links.tolist()]

    found = clusterea.align(
        rows("source"),
        rows("target"),
        seeds=pairs(benchmark.task.seeds),
        test_links=pairs(benchmark.test_links),
        preset="fast",
        device="cpu",
    )
    assert found.benchmark is not None
    assert len(found.benchmark.test_links) == len(benchmark.test_links)
    assert found.evaluate().test_links == len(benchmark.test_links)


def test_a_benchmark_and_more_data_is_refused(benchmark: Benchmark) -> None:
    refused = pytest.raises(InputError, match="^a Benchmark has its graphs and links: .* by name")
    with refused:
        clusterea.align(benchmark, links={})  # type: ignore[call-overload]
    with refused:
        clusterea.align(benchmark, [("a", "r", "b")])  # type: ignore[call-overload]


def test_the_preset_may_come_second(benchmark: Benchmark) -> None:
    with pytest.raises(InputError, match="unknown preset 'fsat'.*'fast'"):
        clusterea.align(benchmark, "fsat")
    with pytest.raises(InputError, match="unknown preset 'fsat'.*'fast'"):
        clusterea.align(benchmark.task, "fsat")


def test_only_what_was_cut_is_said_to_be_below_the_cut() -> None:
    """Those are the links that the same run has without abstaining, and no others."""
    made = small_runs.benchmark(share=0.6)
    cut, uncut = (
        align(made.task, in_rounds(f"matching.abstain={abstain}"), CPU)
        for abstain in ("true", "false")
    )
    links = set(map(tuple, cut.alignment.links.tolist()))
    left_out = {tuple(link) for link in uncut.alignment.links.tolist()} - links
    assert left_out
    assert links

    def below_cut(result: clusterea.AlignmentResult) -> set[tuple[int, int]]:
        return {
            (source, each.entity)
            for source in result.alignment.unmatched.source.tolist()
            for answer in result.explain(source, limit=1000).answers
            if isinstance(answer, Unlinked) and answer.side == "source"
            for each in answer.candidates
            if each.reason == "unsure"
        }

    assert below_cut(cut) == left_out
    assert below_cut(uncut) == set()

"""`clusterea explain`: the evidence for a match, in the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from tiny_runs import (
    ONLY_SCORED,
    ROUNDS,
    SHARE,
    Command,
    aligned,
    command,
    entities_of,
    rows,
    write_pair,
)

from clusterea.pipeline import AlignmentResult, load_run
from clusterea.pipeline.store import Made
from clusterea.types import Texts
from clusterea.types.alignment import BY_NAMES, BY_STRUCTURE, NOT_CALIBRATED


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_pair(tmp_path_factory.mktemp("data") / "pair")


@pytest.fixture(scope="module")
def run(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explained") / "run"
    aligned(pair, folder)
    return folder


def test_a_match_from_either_side(run: Path, clusterea_command: Command) -> None:
    source, target, score = rows(run / "alignment.tsv")[1]
    for name in (source, target):
        ran = clusterea_command("explain", run, name)
        assert ran.code == 0, ran.err
        first = ran.out.splitlines()[0]
        assert first == f"{source}  =  {target}   (score {float(score):.2f})"


def test_a_seed(run: Path, pair: Path, clusterea_command: Command) -> None:
    source, target = rows(pair / "ent_links")[0]
    ran = clusterea_command("explain", run, source)
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == f"{source}  =  {target}   (a seed)"


def test_its_evidence_is_true(run: Path, pair: Path, clusterea_command: Command) -> None:
    """Each line: two neighbours, matched to each other, by relations the triples have."""
    source, target = rows(pair / "ent_links")[0]
    shown = clusterea_command("explain", run, source, "--limit", "1000").out.splitlines()
    assert shown[1].split() == [*("Source", "neighbor", "by", "Target", "neighbor", "by", "Linked")]
    links = {(row[0], row[1]): row[2] for row in rows(run / "alignment.tsv")[1:]}
    seeds = {(row[0], row[1]) for row in rows(pair / "ent_links")[:63]}
    graphs = [{tuple(row) for row in rows(pair / f"rel_triples_{number}")} for number in (1, 2)]
    spaces = "http://source.example", "http://target.example"
    found = [re.split(r"\s{2,}", line.strip()) for line in shown[2:] if "E000" in line]
    assert found
    for near, by_source, other, by_target, sure in found:
        neighbors = f"{spaces[0]}/resource/{near}", f"{spaces[1]}/resource/{other}"
        if sure == "seed":
            assert neighbors in seeds
        else:
            assert float(links[neighbors]) == pytest.approx(float(sure), abs=0.006)
        ends = (source, target)
        for side, step in enumerate((by_source, by_target)):
            relation = f"{spaces[side]}/property/{step.strip('←→ ')}"
            triple = (
                (ends[side], relation, neighbors[side])
                if step.endswith("→")
                else (neighbors[side], relation, ends[side])
            )
            assert triple in graphs[side]


def test_the_rest_is_counted(run: Path, pair: Path, clusterea_command: Command) -> None:
    source = rows(pair / "ent_links")[0][0]
    everything = clusterea_command("explain", run, source, "--limit", "1000").out
    few = clusterea_command("explain", run, source, "--limit", "2").out
    total = sum("E000" in line for line in everything.splitlines()[2:])
    assert few.splitlines()[-1] == f"and {total - 2} more."


def test_one_that_was_matched_to_nothing(run: Path, clusterea_command: Command) -> None:
    (name,) = rows(run / "unmatched_source.tsv")[1]
    ran = clusterea_command("explain", run, name, "--limit", "3")
    assert ran.code == 0
    opening, titles, *candidates = ran.out.splitlines()
    assert opening == f"{name} (source) has no link. Its best candidates:"
    assert titles.split() == ["Candidate", "Similarity", "Why", "it", "was", "not", "chosen"]
    assert candidates.pop() == NOT_CALIBRATED
    assert len(candidates) == 3
    rivals = {row[1]: row for row in rows(run / "alignment.tsv")[1:]}
    for line in candidates:
        found = re.fullmatch(r" (E\d+) +0\.\d{3} +linked to (E\d+), score (\S+) *", line)
        assert found, line
        rival, _, sure = rivals[f"http://target.example/resource/{found[1]}"]
        assert rival == f"http://source.example/resource/{found[2]}"
        assert float(found[3]) == pytest.approx(float(sure), abs=0.006)


def test_everything_as_json(run: Path, clusterea_command: Command) -> None:
    source, target, score = rows(run / "alignment.tsv")[1]
    told = json.loads(clusterea_command("explain", run, target, "--json").out)
    (link,) = told["links"]
    assert (link["source"], link["target"], link["is_seed"]) == (source, target, False)
    assert link["score"] == pytest.approx(float(score))
    assert "confidence" not in link
    assert 0 < len(link["evidence"]) <= link["num_evidence"]
    assert all("score" in each and "confidence" not in each for each in link["evidence"])
    assert told["confidence"] == ONLY_SCORED
    (lone,) = rows(run / "unmatched_source.tsv")[1]
    told = json.loads(clusterea_command("explain", run, lone, "--json", "--limit", "4").out)
    assert told["links"] == []
    (answer,) = told["unmatched"]
    assert answer["side"] == "source"
    similarities = [each["similarity"] for each in answer["candidates"]]
    assert similarities == sorted(similarities, reverse=True)
    linked = {row[1]: row for row in rows(run / "alignment.tsv")[1:]}
    for each in answer["candidates"]:
        assert each["reason"] == "linked"
        source, _, score = linked[each["entity"]]
        assert each["linked_to"] == source
        assert each["linked_score"] == pytest.approx(float(score))


def test_an_error_as_json(run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("explain", run, "Atlantis", "--json")
    assert (ran.code, ran.out) == (2, "")
    message = "no entity of either graph is called 'Atlantis'."
    assert json.loads(ran.err) == {"event": "error", "message": message}


def test_an_unknown_name(run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("explain", run, "Atlantis")
    assert ran.code == 2
    assert ran.err == "error: no entity of either graph is called 'Atlantis'.\n"
    assert clusterea_command("explain", run, "").err == (
        "error: no entity of either graph is called ''.\n"
    )


def test_part_of_a_name_is_answered_with_names(
    run: Path, pair: Path, clusterea_command: Command
) -> None:
    ran = clusterea_command("explain", run, "e00001")
    assert ran.code == 2
    offered = re.findall("'(http[^']*)'", ran.err)
    assert len(offered) == 5
    known = [entities_of(pair / f"rel_triples_{number}") for number in (1, 2)]
    assert all("E00001" in each for each in offered)
    assert all(set(offered) & names for names in known)  # of both sides
    assert set(offered) <= known[0] | known[1]


@pytest.mark.parametrize("limit", ["0", "-1", "all"])
def test_a_limit_that_is_none(limit: str, run: Path, clusterea_command: Command) -> None:
    ran = clusterea_command("explain", run, "x", "--limit", limit)
    assert ran.code == 2
    assert "Invalid value for '--limit'" in ran.err


def test_one_name_in_both_graphs(tmp_path: Path, clusterea_command: Command) -> None:
    """Twenty people whose names are the same on both sides, and one of either side alone."""
    people = [f"[red]{n}" for n in range(20)]  # a name that would be markup, if nobody took care
    triples = [f"{a}\tknows\t{b}\n" for a, b in pairwise(people)]
    (tmp_path / "source.tsv").write_text("".join(triples))
    (tmp_path / "target.tsv").write_text("".join(triples))
    (tmp_path / "links.tsv").write_text("".join(f"{name}\t{name}\n" for name in people[:12]))
    files = [tmp_path / name for name in ("source.tsv", "target.tsv", "links.tsv")]
    quick = ["--preset", "fast", "--set", "training.dimension=16", "--device", "cpu", *SHARE]
    ran = command("align", *files[:2], "--links", files[2], "--out", tmp_path / "run", *quick)
    assert ran.code == 0, ran.err
    seed = clusterea_command("explain", tmp_path / "run", people[0])
    assert seed.out.splitlines()[0] == f"{people[0]}  =  {people[0]}   (a seed)"
    assert seed.out.count("(a seed)") == 1  # once, though both sides have it
    other = clusterea_command("explain", tmp_path / "run", people[-1]).out
    answers = [line for line in other.splitlines() if "  =  " in line or "has no link" in line]
    matched = {tuple(row[:2]) for row in rows(tmp_path / "run" / "alignment.tsv")[1:]}
    of_it = {link for link in matched if people[-1] in link}
    assert len(answers) == len(of_it) + 2 - sum(link.count(people[-1]) for link in of_it)


def test_links_that_no_file_has_are_left_out(
    run: Path, pair: Path, tmp_path: Path, clusterea_command: Command
) -> None:
    aligned(pair, tmp_path / "run", "--top", "0")
    links = {row[1]: row[0] for row in rows(run / "alignment.tsv")[1:]}
    name = rows(tmp_path / "run" / "unmatched_source.tsv")[1][0]
    (answer,) = json.loads(clusterea_command("explain", tmp_path / "run", name, "--json").out)[
        "unmatched"
    ]
    for each in answer["candidates"]:
        assert (each["reason"], each["linked_to"]) == ("left_out", links[each["entity"]])
    shown = clusterea_command("explain", tmp_path / "run", name).out
    assert "was left out by --min-confidence or --top: score" in " ".join(shown.split())


def test_a_pair_below_the_cut(pair: Path, tmp_path: Path) -> None:
    """It is a link of the same run without abstaining; then nothing is below a cut."""
    aligned(pair, tmp_path, how=ROUNDS)

    def links() -> dict[str, str]:
        return {row[0]: row[1] for row in rows(tmp_path / "alignment.tsv")[1:]}

    def below_cut(name: str) -> list[str]:
        told = json.loads(command("explain", tmp_path, name, "--json", "--limit", "100").out)
        (answer,) = told["unmatched"]
        return [each["entity"] for each in answer["candidates"] if each["reason"] == "unsure"]

    given = links()
    told = {row[0]: below_cut(row[0]) for row in rows(tmp_path / "unmatched_source.tsv")[1:9]}
    assert command("match", tmp_path, "--no-abstain", "--device", "cpu").code == 0
    every = links()
    assert told == {name: [every[name]] if name in every else [] for name in told}
    assert any(told.values())
    assert given.keys() < every.keys()
    assert below_cut(rows(tmp_path / "unmatched_source.tsv")[1][0]) == []


def short(name: str) -> str:
    return name.rpartition("/")[2]


def label_of(name: str) -> str:
    """A label that its entity shares with no other, with characters that a terminal obeys."""
    side = "[b]source" if "source.example" in name else "[b]target"
    return f"{side}\n\x1b[31mThing {short(name)}"


def shown_label(name: str) -> str:
    return label_of(name).replace("\n\x1b", " ")


@pytest.fixture(scope="module")
def labeled(run: Path) -> AlignmentResult:
    """All entities have two labels, but the last of each side has none."""
    result = load_run(run, need="match")
    labels = result.named.names.map(
        lambda side: Texts.of_lists(
            [[label_of(name), "twin" if name == side[0] else short(name)] for name in side[:-1]]
            + [[]]
        )
    )
    grounds = torch.full((len(result.all_links.links),), BY_STRUCTURE | BY_NAMES)
    grounds[1] = 0
    links = replace(result.all_links, grounds=grounds.to(torch.uint8))
    return replace(
        result,
        benchmark=replace(result.named, labels=labels),
        made_alignment=Made.of("match-0", links),
    )


class TestLabels:
    @pytest.fixture
    def explained(
        self,
        labeled: AlignmentResult,
        run: Path,
        monkeypatch: pytest.MonkeyPatch,
        clusterea_command: Command,
    ) -> Callable[..., str]:
        monkeypatch.setattr("clusterea.pipeline.load_run", lambda *_args, **_options: labeled)

        def explain(*arguments: str) -> str:
            ran = clusterea_command("explain", run, *arguments)
            assert ran.code == 0, ran.err
            return ran.out

        return explain

    def ends(self, labeled: AlignmentResult, row: int) -> tuple[str, str]:
        source, target = labeled.alignment.links[row].tolist()
        return labeled.named.names.source[source], labeled.named.names.target[target]

    def test_a_link(self, labeled: AlignmentResult, explained: Callable[..., str]) -> None:
        source, target = self.ends(labeled, 0)
        first, _, *rows = explained(source, "--limit", "3").splitlines()
        sure = float(labeled.alignment.confidence[0])
        assert first == (
            f"{shown_label(source)} ({source})  =  {shown_label(target)} ({target})   "
            f"(score {sure:.2f}; by structure and names)"
        )
        assert "\x1b" not in "".join(rows)
        text = " ".join("".join(rows).split())
        near = labeled.explain(source, 1)
        assert near.answers
        assert re.search(r"\[b\]source", text)
        assert repr(near).startswith(f"{shown_label(source)} ({source}) = ")
        assert "; by structure and names; pairs of linked neighbors" in repr(near)
        other = explained(self.ends(labeled, 1)[0]).splitlines()[0]
        assert re.search(r"\(score [0-9.>]+\)$", other)

    def test_as_json(self, labeled: AlignmentResult, explained: Callable[..., str]) -> None:
        source, target = self.ends(labeled, 0)
        told = json.loads(explained(source, "--json"))
        (link,) = told["links"]
        assert (link["source"], link["source_label"]) == (source, label_of(source))
        assert (link["target"], link["target_label"]) == (target, label_of(target))
        assert link["grounds"] == ["structure", "names"]
        assert link["evidence"]
        last = labeled.named.names.map(lambda side: side[len(side) - 1])
        for each in link["evidence"]:
            for side, end in (("source", last.source), ("target", last.target)):
                name = each[side]
                assert each[f"{side}_label"] == (None if name == end else label_of(name))

    def test_a_seed_has_no_grounds(
        self, labeled: AlignmentResult, explained: Callable[..., str]
    ) -> None:
        seed = labeled.named.names.source[int(labeled.task.seeds[0, 0])]
        (link,) = json.loads(explained(seed, "--json"))["links"]
        assert (link["is_seed"], link["grounds"]) == (True, None)

    def test_one_without_a_link(
        self, labeled: AlignmentResult, explained: Callable[..., str]
    ) -> None:
        lone = labeled.named.names.source[int(labeled.alignment.unmatched.source[0])]
        shown = explained(lone, "--limit", "3")
        assert shown.startswith(f"{shown_label(lone)} ({lone}) (source) has no link.")
        (answer,) = json.loads(explained(lone, "--json", "--limit", "3"))["unmatched"]
        assert (answer["entity"], answer["label"]) == (lone, label_of(lone))
        for each in answer["candidates"]:
            assert each["label"] == label_of(each["entity"])
            assert each["linked_to_label"] == label_of(each["linked_to"])
            rival = each["linked_to"]
            assert f"linked to {shown_label(rival)} ({rival})," in repr(labeled.explain(lone, 3))
        assert "[b]target" in shown

    @pytest.mark.parametrize("change", [str, str.upper, lambda text: f" {text}\t"])
    def test_a_label_stands_for_its_entity(
        self,
        change: Callable[[str], str],
        labeled: AlignmentResult,
        explained: Callable[..., str],
    ) -> None:
        source, target = self.ends(labeled, 0)
        for name in (source, target):
            assert explained(change(label_of(name))) == explained(name)

    def test_a_label_of_both_graphs_stands_for_both(
        self, labeled: AlignmentResult, explained: Callable[..., str]
    ) -> None:
        names = labeled.named.names.map(lambda side: side[0])
        both = json.loads(explained("twin", "--json"))
        found = {each[side] for each in both["links"] for side in ("source", "target")}
        found |= {each["entity"] for each in both["unmatched"]}
        assert set(names) <= found

    def test_a_label_of_several_is_answered_with_ids(
        self,
        labeled: AlignmentResult,
        run: Path,
        monkeypatch: pytest.MonkeyPatch,
        clusterea_command: Command,
    ) -> None:
        names = labeled.named.names
        labels = names.map(
            lambda side: Texts.of_lists([["Paris"]] * 2 + [[]] * (len(side) - 3) + [["paris, TX"]])
        )
        labels = replace(
            labels, target=Texts.of_lists([["PARIS"]] + [[]] * (len(names.target) - 1))
        )
        found = replace(labeled, benchmark=replace(labeled.named, labels=labels))
        monkeypatch.setattr("clusterea.pipeline.load_run", lambda *_args, **_options: found)
        ran = clusterea_command("explain", run, "paris")
        assert ran.code == 2
        assert ran.err == (
            f"error: 3 entities have the label 'paris'. Did you mean Paris ({names.source[0]!r}), "
            f"PARIS ({names.target[0]!r}), Paris ({names.source[1]!r})?\n"
        )
        ran = clusterea_command("explain", run, "aris, T")
        last = names.source[len(names.source) - 1]
        assert ran.err == (
            "error: no entity of either graph is called 'aris, T'. "
            f"Did you mean paris, TX ({last!r})?\n"
        )
        ran = clusterea_command("explain", run, " ")
        assert ran.err == "error: no entity of either graph is called ' '.\n"

    def test_a_name_goes_before_a_label(
        self,
        labeled: AlignmentResult,
        explained: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        source, _ = self.ends(labeled, 0)
        labels = labeled.named.names.map(lambda side: Texts.of_lists([[source]] * len(side)))
        found = replace(labeled, benchmark=replace(labeled.named, labels=labels))
        monkeypatch.setattr("clusterea.pipeline.load_run", lambda *_args, **_options: found)
        (link,) = json.loads(explained(source, "--json"))["links"]
        assert link["source"] == source
        assert explained(source).startswith(f"{source}  =  {source} (")

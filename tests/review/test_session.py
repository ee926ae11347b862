from __future__ import annotations

import json
from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from paired_towns import (
    FRANCE,
    LYON,
    NILE,
    PARIS,
    QUESTIONS,
    RHONE,
    SEINE,
    Memory,
    session_on,
    towns,
)

from clusterea.errors import InputError
from clusterea.review.session import Precision
from clusterea.types import Answer, Question


def pair_of(view: dict[str, Any] | None) -> tuple[int, int] | None:
    return None if view is None else (view["source"]["number"], view["target"]["number"])


def said(log: Memory) -> list[tuple[int | None, int | None, str, bool]]:
    return [(each.source, each.target, each.verdict, each.is_random) for each in log.answers]


def test_a_view_shows_both_entities_and_the_evidence() -> None:
    view = session_on(towns(), Memory()).next()
    assert view is not None
    assert json.loads(json.dumps(view)) == view
    assert (view["source"]["label"], view["target"]["label"]) == ("Seine", "Rodano")
    assert view["source"]["id"] == "http://fr.example/Seine"
    assert view["source"]["short"] == "Seine"
    # France is a seed and a neighbor of both; Paris and Lyon are linked to other neighbors.
    assert view["for"]["total"] == 1
    (row,) = view["for"]["pairs"]
    assert (row["source"]["number"], row["target"]["number"]) == (FRANCE, FRANCE)
    assert (row["origin"], row["sure"]) == ("seed", None)
    assert [step["relation"] for step in row["by"][0]] == ["country"]
    against = {
        (each["side"], each["neighbor"]["number"]): each["partner"]["number"]
        for each in view["against"]["neighbors"]
    }
    assert against == {("source", PARIS): PARIS, ("target", LYON): LYON}
    assert view["found"] == {
        "link": True,
        "measure": "confidence",
        "value": "40.0%",
        "note": "Confidence is the probability that a link is right, calibrated on "
        "100 links of held-out seeds.",
    }


def test_neighbors_are_marked_and_relations_correspond() -> None:
    view = session_on(towns(), Memory()).look(PARIS, PARIS)
    groups = {group["relation"]: group for group in view["source"]["groups"]}
    (france,) = groups["country"]["neighbors"]
    assert (france["state"], france["partner"]["label"]) == ("for", "Francia")
    (seine,) = groups["river"]["neighbors"]
    assert (seine["state"], seine["partner"]["label"]) == ("against", "Rodano")
    match = groups["country"]["match"]
    # Paris, Lyon and Seine are linked, and so is France; all three have both relations.
    assert (match["relation"], match["outward"], match["count"], match["of"]) == (
        "paese",
        True,
        3,
        3,
    )
    # Neither Parigi nor Lione has the river that the run says.
    assert groups["river"]["match"] is None
    assert view["source"]["labels"] == ["Lutetia"]


def test_many_neighbors_are_cut() -> None:
    view = session_on(towns(hub=500), Memory()).look(PARIS, PARIS)
    twins = next(group for group in view["source"]["groups"] if group["relation"] == "twin")
    assert (len(twins["neighbors"]), twins["more"], twins["total"]) == (12, 488, 500)
    assert view["source"]["neighbors"] == 502


def test_other_candidates_come_by_score() -> None:
    view = session_on(towns(), Memory()).next()
    assert view is not None
    found = [(each["number"], each["score"], each["evidence"]) for each in view["candidates"]]
    # Paris and Parigi, and France and Francia, are neighbors of Seine and Senna.
    assert found == [(PARIS, "0.900", 1), (LYON, "0.500", 1), (SEINE, "0.200", 2)]
    assert view["candidates"][0]["linked"]["label"] == "Paris"
    assert view["candidates"][2]["linked"] is None


def test_blind_views_hide_what_the_run_found() -> None:
    session = session_on(towns(), Memory(), blind=True)
    view = session.next()
    assert view is not None
    assert view["found"] is None
    assert [each["label"] for each in view["candidates"]] == ["Lione", "Parigi", "Senna"]
    text = json.dumps(view)
    assert '"score"' not in text
    assert '"linked"' not in text
    assert "40.0%" not in text
    told = session.answer((SEINE, RHONE), "different")
    assert told["found"]["value"] == "40.0%"


def test_questions_come_in_order_and_end() -> None:
    log = Memory()
    session = session_on(towns(), log)
    asked = []
    while (view := session.next()) is not None:
        asked.append(pair_of(view))
        session.answer((view["source"]["number"], view["target"]["number"]), "different")
    assert asked == [(each.source, each.target) for each in QUESTIONS]
    assert said(log) == [(*pair, "different", pair == (PARIS, PARIS)) for pair in asked if pair]
    assert {each.author for each in log.answers} == {"ada"}


def test_a_question_can_be_left_out() -> None:
    session = session_on(towns(), Memory())
    first = pair_of(session.next())
    assert first == (SEINE, RHONE)
    assert pair_of(session.next(after=first)) == (PARIS, PARIS)


def test_answers_of_others_are_not_asked_again() -> None:
    log = Memory()
    session = session_on(towns(), log)
    assert pair_of(session.next()) == (SEINE, RHONE)
    log.append(Answer(SEINE, RHONE, "unsure", "bob"))  # in another tab or process
    assert pair_of(session.next()) == (PARIS, PARIS)
    log.append(Answer(PARIS, SEINE, "same", "bob"))  # so Paris is decided
    assert pair_of(session.next()) == (LYON, LYON)
    log.append(Answer(None, LYON, "none", "bob"))
    # Senna is the counterpart of Paris, so no question about it is left.
    assert session.next() is None


class Asker:
    """Chooses from the questions. What is chosen ahead comes when `may_go` is set."""

    def __init__(self) -> None:
        self.may_go = Event()
        self.calls: list[tuple[int, int]] = []  # answers, and pending questions

    def __call__(
        self, count: int, answers: Sequence[Answer], pending: Sequence[Question]
    ) -> list[Question]:
        self.calls.append((len(answers), len(pending)))
        if pending:
            assert self.may_go.wait(60)
        done = {(each.source, each.target) for each in answers}
        done |= {(each.source, each.target) for each in pending}
        return [each for each in QUESTIONS if (each.source, each.target) not in done][:count]


def test_nobody_waits_for_the_next_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterea.review.session.BLOCK", 2)
    monkeypatch.setattr("clusterea.review.session.AHEAD", 1)
    ask = Asker()
    session = session_on(towns(), Memory(), ask=ask)
    assert pair_of(session.next()) == (SEINE, RHONE)
    session.answer((SEINE, RHONE), "different")
    assert pair_of(session.next()) == (PARIS, PARIS)  # the block that begins here is not chosen yet
    assert pair_of(session.next()) == (PARIS, PARIS)
    ask.may_go.set()
    session.answer((PARIS, PARIS), "different")
    assert pair_of(session.next()) == (LYON, LYON)
    assert ask.calls == [(0, 0), (1, 1)]


def test_what_was_chosen_ahead_may_be_answered_by_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterea.review.session.BLOCK", 1)
    ask, log = Asker(), Memory()
    ask.may_go.set()
    session = session_on(towns(), log, ask=ask)
    assert pair_of(session.next()) == (SEINE, RHONE)  # and Paris is chosen ahead
    log.append(Answer(SEINE, RHONE, "unsure", "bob"), Answer(PARIS, PARIS, "different", "bob"))
    assert pair_of(session.next()) == (LYON, LYON)
    assert ask.calls[:3] == [(0, 0), (0, 1), (2, 0)]


def test_a_failed_choice_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clusterea.review.session.BLOCK", 1)

    def ask(count: int, answers: Sequence[Answer], pending: Sequence[Question]) -> list[Question]:
        if pending:
            raise RuntimeError("no memory")
        return QUESTIONS[:count]

    session = session_on(towns(), Memory(), ask=ask)
    session.next()
    session.answer((SEINE, RHONE), "unsure")
    with pytest.raises(RuntimeError, match="no memory"):
        session.next()


def test_another_candidate_also_rejects_the_pair() -> None:
    log = Memory()
    session = session_on(towns(), log)
    session.next(after=(SEINE, RHONE))
    session.answer((PARIS, PARIS), "same", SEINE)
    # The precision is estimated from the pair that was drawn.
    assert said(log) == [(PARIS, PARIS, "different", True), (PARIS, SEINE, "same", False)]
    assert log.decisions.accepted.tolist() == [[PARIS, SEINE]]


def test_rejecting_a_candidate_leaves_the_question_open() -> None:
    log = Memory()
    session = session_on(towns(), log)
    session.next()
    session.answer((SEINE, RHONE), "different", LYON)
    assert said(log) == [(SEINE, LYON, "different", False)]
    assert pair_of(session.next()) == (SEINE, RHONE)


def test_an_entity_without_a_counterpart() -> None:
    log = Memory()
    session = session_on(towns(), log)
    session.answer((PARIS, PARIS), "none-source", is_random=True)
    session.answer((SEINE, RHONE), "none-target")
    assert said(log) == [
        (PARIS, PARIS, "different", True),
        (PARIS, None, "none", False),
        (SEINE, RHONE, "different", False),
        (None, RHONE, "none", False),
    ]


def test_an_answer_that_is_sent_twice_is_kept_once() -> None:
    log = Memory()
    session = session_on(towns(), log)
    session.answer((SEINE, RHONE), "same", comment="a  b\n")
    session.answer((SEINE, RHONE), "same", comment="a b")
    assert [each.comment for each in log.answers] == ["a b"]
    session.answer((SEINE, RHONE), "different")
    assert log.decisions.accepted.tolist() == []


def test_undo_takes_back_and_asks_again() -> None:
    log = Memory()
    session = session_on(towns(), log)
    assert session.undo() is None
    session.answer((SEINE, RHONE), "different")
    session.answer((PARIS, PARIS), "same", LYON)
    view = session.undo()
    assert pair_of(view) == (PARIS, PARIS)
    assert log.decisions.rejected.tolist() == [[SEINE, RHONE]]
    assert not len(log.decisions.accepted)
    assert pair_of(session.next()) == (PARIS, PARIS)
    assert pair_of(session.undo()) == (SEINE, RHONE)
    assert log.decisions.count == 0
    assert session.undo() is None


def test_undo_restores_the_pair_that_an_answer_replaced() -> None:
    log = Memory()
    log.append(Answer(NILE, LYON, "same", "bob"))
    session = session_on(towns(), log)
    session.answer((LYON, LYON), "same")
    assert log.decisions.accepted.tolist() == [[LYON, LYON]]
    session.undo()
    assert log.decisions.accepted.tolist() == [[NILE, LYON]]
    assert log.answers[-1].author == "bob"


def test_decisions_change_the_evidence() -> None:
    log = Memory()
    session = session_on(towns(), log)
    assert session.look(PARIS, PARIS)["for"]["total"] == 1  # France
    session.answer((SEINE, RHONE), "same", SEINE)
    view = session.look(PARIS, PARIS)
    assert view["against"]["total"] == 0
    origins = {row["source"]["label"]: row["origin"] for row in view["for"]["pairs"]}
    assert origins == {"France": "seed", "Seine": "person"}
    session.undo()
    session.answer((SEINE, RHONE), "different")
    view = session.look(PARIS, PARIS)
    assert (view["for"]["total"], view["against"]["total"]) == (1, 0)


def test_progress_counts_and_tells_when_to_stop() -> None:
    log = Memory()
    session = session_on(towns(), log)
    before = session.progress()
    assert before["rest"] == pytest.approx((0.9 + 0.8 + 0.4) / 3)
    assert before["precision"] is None
    assert "20 more are needed" in before["advice"]
    session.answer((PARIS, PARIS), "same")
    session.answer((SEINE, RHONE), "different")
    session.answer((LYON, LYON), "unsure")
    session.answer((RHONE, SEINE), "none-source")
    after = session.progress()
    counted = {
        name: after[name] for name in ("answered", "accepted", "rejected", "unsure", "alone")
    }
    assert counted == {"answered": 4, "accepted": 1, "rejected": 2, "unsure": 1, "alone": 1}
    assert after["rest"] is None
    assert after["can_undo"]


@pytest.mark.parametrize(("later", "stops"), [(0.02, False), (0.045, True)])
def test_the_advice_is_to_stop_when_answers_hardly_help(later: float, stops: bool) -> None:
    precision = Precision(0.9, 0.85, 0.95, 40, later)
    told = session_on(towns(), Memory(), precision=precision).progress()
    assert "narrow ±5.0% to ±" in told["advice"]
    assert ("you can stop" in told["advice"]) == stops
    assert told["precision"]["value"] == 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (((99, 0), "same"), r"source must be an entity in \[0, 6\). Got 99"),
        (((0, -1), "same"), r"target must be"),
        (((0, 0), "same", 6), r"target must be"),
        (((0, 0), "maybe"), r"verdict must be one of same"),
        (((0, 0), "none-source", 1), r"no other candidate"),
        (((0, 0), "same", None, "x" * 2001), r"at most 2,000 characters"),
    ],
)
def test_wrong_answers_are_refused(arguments: Any, message: str) -> None:
    log = Memory()
    with pytest.raises(InputError, match=message):
        session_on(towns(), log).answer(*arguments)
    assert log.answers == []

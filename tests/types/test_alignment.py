import re
from dataclasses import replace

import pytest
import torch

from clusterea.types import Alignment, Names, Pair
from clusterea.types.alignment import ENOUGH_EXAMPLES, ENOUGH_SEEDS

NOBODY = Pair(torch.tensor([2]), torch.tensor([], dtype=torch.int64))


def test_swap_turns_links_and_unmatched() -> None:
    alignment = Alignment(torch.tensor([[0, 5]]), torch.tensor([0.9]), NOBODY)
    assert alignment.swap().links.tolist() == [[5, 0]]
    assert alignment.swap().unmatched.target.tolist() == [2]
    assert repr(alignment) == "Alignment(1 links; 1 source and 0 target entities unmatched)"


@pytest.mark.parametrize(
    ("links", "confidence", "message"),
    [
        ([[0, 5]], [1.1], r"confidence must lie in \[0, 1\]"),
        ([[0, 5]], [float("nan")], r"confidence must lie in \[0, 1\]"),
        ([[0, 5]], [0.1, 0.2], r"confidence must have shape \(1,\)"),
        ([[0, 5, 1]], [0.1], r"links must have shape \(n, 2\)"),
    ],
)
def test_wrong_links_are_refused(
    links: list[list[int]], confidence: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Alignment(torch.tensor(links), torch.tensor(confidence), NOBODY)


def test_a_notebook_shows_the_surest_links() -> None:
    links = torch.arange(24).reshape(12, 2)
    alignment = Alignment(links, torch.linspace(0, 1, 12), NOBODY)
    shown = alignment._repr_html_()
    assert "2 of them not shown" in shown
    assert "<td>22</td><td>23</td><td>1.000</td></tr><tr><td>20</td>" in shown
    assert "<td>0</td>" not in shown
    names = Pair(Names(f"<{i}>" for i in range(24)), Names(f"&{i}" for i in range(24)))
    assert "<td>&lt;22&gt;</td><td>&amp;23</td>" in alignment.to_html(names)
    empty = Alignment(links[:0], torch.empty(0), NOBODY)
    assert "0 links" in empty._repr_html_()
    assert "it is not a probability" in shown
    assert "<th>target</th><th>score</th>" in shown
    assert "onfidence" not in shown


def test_a_notebook_shows_no_certainty_that_is_none() -> None:
    sure = torch.tensor([0.9997, 0.99999, 1.0, 0.0002], dtype=torch.float64)
    shown = Alignment(torch.arange(8).reshape(4, 2), sure, NOBODY)._repr_html_()
    cells = re.findall(r"<td>([^<]*)</td></tr>", shown)
    assert cells == ["1.000", "&gt;0.9999", "0.9997", "0.0002"]


SURE = Alignment(
    torch.tensor([[0, 5], [1, 4], [3, 4]]),
    torch.tensor([0.5, 0.9, 0.7]),
    Pair(torch.tensor([2]), torch.tensor([6])),
    examples=140,
)


@pytest.mark.parametrize(
    ("kept", "links", "unmatched"),
    [
        (SURE.at_least(0.7), [[1, 4], [3, 4]], Pair([0, 2], [5, 6])),
        (SURE.at_least(0.8), [[1, 4]], Pair([0, 2, 3], [5, 6])),  # 4 has a link still
        (SURE.top(1), [[1, 4]], Pair([0, 2, 3], [5, 6])),
        (SURE.top(2), [[1, 4], [3, 4]], Pair([0, 2], [5, 6])),
        (SURE.top(9), SURE.links.tolist(), Pair([2], [6])),
        (SURE.top(0), [], Pair([0, 1, 2, 3], [4, 5, 6])),
        (SURE.bounded(), SURE.links.tolist(), Pair([2], [6])),
        (SURE.bounded(0.6, 1), [[1, 4]], Pair([0, 2, 3], [5, 6])),
    ],
)
def test_some_of_the_links(
    kept: Alignment, links: list[list[int]], unmatched: Pair[list[int]]
) -> None:
    assert kept.links.tolist() == links
    assert kept.unmatched.map(torch.Tensor.tolist) == unmatched
    assert kept.examples == 140


def test_equally_sure_links_are_taken_in_order() -> None:
    ids = torch.arange(50)
    even = Alignment(torch.stack([ids, ids], 1), torch.full((50,), 0.5), NOBODY)
    assert even.top(7).links[:, 0].tolist() == list(range(7))


def test_it_says_what_its_confidence_was_calibrated_on() -> None:
    for each in (SURE, SURE.to("cpu"), SURE.swap(), SURE.top(0)):
        assert each.is_calibrated
        assert each.measure == "confidence"
        assert each.confidence_note == (
            "Confidence is the probability that a link is right, "
            "calibrated on 140 links of held-out seeds."
        )
    assert "<th>target</th><th>confidence</th>" in SURE.to_html()
    assert SURE.confidence_note in SURE.to_html()


def test_what_is_not_calibrated_is_a_score() -> None:
    plain, few = replace(SURE, examples=0), replace(SURE, examples=ENOUGH_EXAMPLES - 1)
    for each in (few, plain, plain.to("cpu"), plain.swap(), plain.top(0)):
        assert not each.is_calibrated
        assert each.measure == "score"
        assert "only orders the links; it is not a probability" in each.confidence_note
        assert f" {ENOUGH_SEEDS:,} seeds " in each.confidence_note
        assert "onfidence" not in each.confidence_note

import pytest
import torch

from clusterea.types import Alignment, Pair

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

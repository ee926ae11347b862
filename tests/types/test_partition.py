import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.types import Pair, Partition


@given(
    st.lists(st.integers(0, 4), max_size=30),
    st.lists(st.integers(0, 4), max_size=30),
)
def test_every_entity_is_in_exactly_one_mini_batch(source: list[int], target: list[int]) -> None:
    labels = Pair(source, target).map(lambda side: torch.tensor(side, dtype=torch.int64))
    partition = Partition(labels, 5)
    batches = list(partition.mini_batches())
    assert len(batches) == 5
    for side, entities in (("source", source), ("target", target)):
        parts = [getattr(batch, side).tolist() for batch in batches]
        assert parts == [[i for i, of in enumerate(entities) if of == b] for b in range(5)]


def test_swap_and_sizes() -> None:
    partition = Partition(Pair(torch.tensor([0, 1, 1]), torch.tensor([1])), 2)
    assert partition.sizes() == Pair([1, 2], [0, 1])
    assert partition.swap().sizes() == Pair([0, 1], [1, 2])
    assert "2 mini-batches of 3 and 1 entities, the largest 2 × 1" in repr(partition)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (torch.tensor([2]), r"source labels must lie in \[0, 2\). Got values from 2 to 2"),
        (torch.tensor([-1]), r"source labels must lie in \[0, 2\)"),
        (torch.tensor([0.0]), "source labels must be integers"),
        (torch.tensor([[0]]), r"of shape \(1, 1\) instead"),
    ],
)
def test_wrong_labels_are_refused(labels: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Partition(Pair(labels, torch.tensor([0])), 2)


def test_no_mini_batch_at_all_is_refused() -> None:
    with pytest.raises(ValueError, match=r"num_batches must be an int in \[1, inf\)"):
        Partition(Pair(torch.tensor([0]), torch.tensor([0])), 0)

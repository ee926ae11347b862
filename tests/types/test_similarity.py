from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.types import Pair, Similarity


def from_cells(cells: dict[tuple[int, int], float], rows: int, columns: int) -> Similarity:
    """The slow obvious way to make one."""
    ordered = sorted(cells)
    counts = torch.tensor([sum(row == r for r, _ in ordered) for row in range(rows)])
    return Similarity(
        torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)]),
        torch.tensor([column for _, column in ordered], dtype=torch.int64),
        torch.tensor([cells[cell] for cell in ordered], dtype=torch.float32),
        Pair(rows, columns),
    )


def to_cells(similarity: Similarity) -> dict[tuple[int, int], float]:
    keys = zip(similarity.rows().tolist(), similarity.columns.tolist(), strict=True)
    return dict(zip(keys, similarity.values.tolist(), strict=True))


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 5), st.integers(0, 3)),
        st.floats(-1, 1, width=32),
        max_size=20,
    )
)
def test_swap_is_the_transpose(cells: dict[tuple[int, int], float]) -> None:
    similarity = from_cells(cells, 6, 4)
    assert to_cells(similarity) == cells
    assert to_cells(similarity.swap()) == {(t, s): value for (s, t), value in cells.items()}
    assert similarity.swap().num_entities == Pair(4, 6)


def make(
    offsets: list[int], columns: list[int], values: list[float], size: tuple[int, int] = (2, 3)
) -> Similarity:
    return Similarity(
        torch.tensor(offsets), torch.tensor(columns), torch.tensor(values), Pair(*size)
    )


@pytest.mark.parametrize(
    ("offsets", "columns", "values", "message"),
    [
        ([0, 1], [0], [0.5], r"row_offsets must have shape \(3,\)"),
        ([0, 1, 1], [0, 1], [0.5, 0.5], "row_offsets must run from 0 to 2"),
        ([0, 2, 1], [0], [0.5], "row_offsets must not decrease"),
        ([0, 1, 1], [3], [0.5], r"columns must lie in \[0, 3\)"),
        ([0, 1, 2], [0], [0.5, 0.1], "columns and values must have the same length"),
        ([0, 2, 2], [1, 1], [0.5, 0.1], "columns must increase"),
        ([0, 2, 2], [2, 1], [0.5, 0.1], "columns must increase within each row"),
        ([0, 1, 1], [0], [float("nan")], "values must be finite"),
    ],
)
def test_what_is_no_matrix_is_refused(
    offsets: list[int], columns: list[int], values: list[float], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(offsets, columns, values)


def test_columns_may_fall_where_a_row_begins() -> None:
    assert make([0, 2, 3], [1, 2, 0], [0.1, 0.2, 0.3]).num_cells == 3


def test_repr_tells_sizes() -> None:
    text = repr(make([0, 2, 3], [1, 2, 0], [0.1, 0.2, 0.3]))
    assert text == "Similarity(2 × 3, 3 cells, 1.5 per row)"


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_as_a_scipy_array(kind: torch.dtype) -> None:
    similarity = make([0, 2, 3], [1, 2, 0], [0.5, 0.0, 0.25])
    array = replace(similarity, values=similarity.values.to(kind)).to_scipy()
    assert array.shape == (2, 3)
    assert array.toarray().tolist() == [[0, 0.5, 0], [0.25, 0, 0]]
    assert array.nnz == 3  # a candidate that scores zero is still one

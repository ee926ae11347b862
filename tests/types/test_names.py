import numpy as np
import pyarrow as pa
import pytest

from clusterea.types import Names

NAMES = Names(["Bob", "Ann", "Zoë"])


def test_names_and_ids_are_inverse() -> None:
    assert [NAMES[i] for i in range(3)] == ["Bob", "Ann", "Zoë"]
    assert NAMES.ids_of(["Zoë", "nobody", "Bob"]).tolist() == [2, -1, 0]
    assert NAMES.take(np.array([2, 0])) == ["Zoë", "Bob"]


def test_ids_of_chunked_columns() -> None:
    assert NAMES.ids_of(pa.chunked_array([["Ann"], ["Bob", "x"]])).tolist() == [1, 0, -1]


def test_twice_the_same_name_is_refused() -> None:
    with pytest.raises(ValueError, match="2 of them distinct"):
        Names(["a", "b", "a"])


def test_a_missing_name_is_refused() -> None:
    with pytest.raises(ValueError, match="Got 1 missing"):
        Names(pa.array(["a", None]))


def test_it_is_a_sequence() -> None:
    assert list(NAMES[1:]) == ["Ann", "Zoë"]
    assert NAMES.index("Zoë") == 2
    assert repr(Names("abcd")) == "Names(4: 'a', 'b', 'c', …)"

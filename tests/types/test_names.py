import numpy as np
import pyarrow as pa
import pytest

from clusterea.types import Names

NAMES = Names(["Bob", "Ann", "Zoë"])
KEYS = [-1742600003268488430, 6815783469026767838, -7311049096717426824]  # blake2b, 8 bytes


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


class TestKeys:
    def test_depend_on_the_name_alone(self) -> None:
        keys = dict(zip(NAMES, NAMES.keys().tolist(), strict=True))
        turned = Names(["x", "Zoë", "Ann", "Bob"])
        assert turned.keys().tolist()[1:] == [keys["Zoë"], keys["Ann"], keys["Bob"]]
        assert NAMES[1:].keys().tolist() == [keys["Ann"], keys["Zoë"]]

    def test_are_the_same_in_every_process(self) -> None:
        assert NAMES.keys().dtype == np.int64
        assert NAMES.keys().tolist() == KEYS

    def test_are_distinct_and_spread(self) -> None:
        keys = Names([str(i) for i in range(2000)]).keys()
        assert len(set(keys.tolist())) == 2000
        assert 900 < int((keys < 0).sum()) < 1100

    def test_of_nobody(self) -> None:
        assert Names([]).keys().tolist() == []

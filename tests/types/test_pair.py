from clusterea.types import Pair


def test_swap_exchanges_the_sides_and_twice_is_nothing() -> None:
    pair = Pair("a", "b")
    assert pair.swap() == Pair("b", "a")
    assert pair.swap().swap() == pair


def test_map_and_zip_keep_sides_apart() -> None:
    assert Pair(1, 2).map(str) == Pair("1", "2")
    assert Pair(1, 2).zip(Pair("a", "b")) == Pair((1, "a"), (2, "b"))
    assert list(Pair(1, 2)) == [1, 2]

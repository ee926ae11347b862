from __future__ import annotations

from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

from clusterea.data import load
from clusterea.data.synthetic import SHAPES, LabelShape, PairShape, generate, write_openea
from clusterea.errors import InputError
from clusterea.types import AlignmentTask, Benchmark, KnowledgeGraph, Names, Pair, Texts

SHAPE = PairShape(Pair(304, 257), Pair(1_200, 900), Pair(20, 15), 0.8, Pair(0.9, 0.8))
PARTS = ("train", "valid", "test")


@pytest.fixture(scope="module")
def benchmark_() -> Benchmark:
    return generate(SHAPE, seed=5)


@pytest.fixture(scope="module")
def folder(benchmark_: Benchmark, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("written") / "new" / "pair"
    write_openea(benchmark_, place)
    return place


def lines(path: Path) -> list[str]:
    text = path.read_bytes().decode()
    assert not text or text.endswith("\n")
    return text.split("\n")[:-1]


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_triples_are_the_benchmarks_in_their_order(benchmark_: Benchmark, folder: Path) -> None:
    for number, graph, entities, relations in zip(
        (1, 2),
        benchmark_.task.graphs,
        benchmark_.names,
        benchmark_.relation_names,
        strict=True,
    ):
        assert lines(folder / f"rel_triples_{number}") == [
            f"{entities[head]}\t{relations[relation]}\t{entities[tail]}"
            for head, relation, tail in graph.triples.tolist()
        ]


def test_links_are_the_benchmarks_in_their_order(benchmark_: Benchmark, folder: Path) -> None:
    source, target = benchmark_.names
    assert lines(folder / "ent_links") == [
        f"{source[one]}\t{target[other]}" for one, other in benchmark_.task.seeds.tolist()
    ]


def test_dangling_entities_are_sorted_and_the_ones_without_link(
    benchmark_: Benchmark, folder: Path
) -> None:
    linked = list(zip(*(line.split("\t") for line in lines(folder / "ent_links")), strict=True))
    for number, names, ours in zip((1, 2), benchmark_.names, linked, strict=True):
        dangling = lines(folder / f"dangling_{number}")
        assert dangling == sorted(dangling)
        assert set(dangling) == set(names) - set(ours)


def test_every_fold_covers_all_links_once(folder: Path) -> None:
    links = lines(folder / "ent_links")
    assert len(links) == 206
    for fold in range(1, 6):
        parts = [lines(folder / "721_5fold" / str(fold) / f"{part}_links") for part in PARTS]
        assert sorted(chain(*parts)) == sorted(links)
        assert [len(part) for part in parts] in ([41, 21, 144], [42, 21, 143])


def test_train_parts_are_disjoint_fifths(folder: Path) -> None:
    train = [lines(folder / "721_5fold" / str(fold) / "train_links") for fold in range(1, 6)]
    assert sorted(chain(*train)) == sorted(lines(folder / "ent_links"))


def test_validation_parts_differ_from_fold_to_fold(folder: Path) -> None:
    valid = [set(lines(folder / "721_5fold" / str(fold) / "valid_links")) for fold in range(1, 6)]
    assert all(len(one & other) < 15 for one, other in combinations(valid, 2))


def test_folds_are_drawn_from_all_links(folder: Path) -> None:
    place = {link: position for position, link in enumerate(lines(folder / "ent_links"))}
    for fold in range(1, 6):
        for part in PARTS:
            links = lines(folder / "721_5fold" / str(fold) / f"{part}_links")
            positions = [place[link] for link in links]
            # A uniform sample of 21 or more has its median within a quarter of the middle.
            assert 206 / 4 < np.median(positions) < 206 * 3 / 4
            assert positions != sorted(positions)


def test_the_same_seed_writes_the_same_bytes(folder: Path, tmp_path: Path) -> None:
    write_openea(generate(SHAPE, seed=5), tmp_path / "again")
    assert contents(tmp_path / "again") == contents(folder)
    assert len(contents(folder)) == 20
    write_openea(generate(SHAPE, seed=6), tmp_path / "other")
    other = contents(tmp_path / "other")
    assert all(other[name] != text for name, text in contents(folder).items())


def test_a_folder_with_something_in_it_is_refused(benchmark_: Benchmark, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InputError, match="folder must be new or empty"):
        write_openea(benchmark_, tmp_path)
    with pytest.raises(InputError, match="folder must be new or empty. Got the file .*mine inst"):
        write_openea(benchmark_, tmp_path / "mine")
    assert contents(tmp_path) == {"mine": b"precious"}


def test_an_empty_folder_is_filled(benchmark_: Benchmark, tmp_path: Path) -> None:
    place = tmp_path / "empty"
    place.mkdir()
    write_openea(benchmark_, place)
    assert "ent_links" in contents(place)
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]


def tiny(names: list[str], **others: object) -> Benchmark:
    graph = KnowledgeGraph(np.array([[0, 0, 1], [1, 0, 2]]), 3, 1)
    return Benchmark(
        AlignmentTask(Pair(graph, graph), np.array([[0, 2]])),
        np.array([[1, 0]]),
        Pair(Names(names), Names(["x", "y", "z"])),
        Pair(Names(["r"]), Names(["s"])),
        **others,  # type: ignore[arg-type]
    )


def test_test_links_are_written_with_the_seeds_and_no_dangling_if_unknown(tmp_path: Path) -> None:
    write_openea(tiny(["a", 'b "quoted", Ünïcode', "c"]), tmp_path / "out")
    assert lines(tmp_path / "out" / "ent_links") == ["a\tz", 'b "quoted", Ünïcode\tx']
    assert lines(tmp_path / "out" / "rel_triples_1")[0] == 'a\tr\tb "quoted", Ünïcode'
    assert not (tmp_path / "out" / "dangling_1").exists()


@pytest.mark.parametrize("name", ["b\tb", "b\nb", "b\rb"])
def test_names_that_would_break_a_line_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="free of tabs and line breaks"):
        write_openea(tiny(["a", name, "c"]), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_labels_are_written_in_another_order_and_change_no_other_file(
    folder: Path, tmp_path: Path
) -> None:
    labeled = generate(SHAPE, 5, LabelShape(missing=0.25))
    write_openea(labeled, tmp_path / "out")
    assert labeled.labels is not None
    for number, names, labels in zip((1, 2), labeled.names, labeled.labels, strict=True):
        written = lines(tmp_path / "out" / f"labels_{number}")
        expected = [
            f"{names[entity]}\t{text}" for entity in range(len(names)) for text in labels.of(entity)
        ]
        assert len(expected) == pytest.approx(0.75 * len(names), abs=1)
        assert sorted(written) == sorted(expected)
        places = [expected.index(line) for line in written]
        assert abs(np.corrcoef(places, np.arange(len(places)))[0, 1]) < 4 / np.sqrt(len(places))
    others = contents(tmp_path / "out")
    del others["labels_1"], others["labels_2"]
    assert others == contents(folder)


def test_several_labels_of_an_entity_keep_their_order(tmp_path: Path) -> None:
    many = [f"Z{number}" for number in (3, 1, 2)]
    labels = Pair(Texts.of_lists([["A"], [], many]), Texts.of_lists([[], [], []]))
    write_openea(tiny(["a", "b", "c"], labels=labels), tmp_path / "out")
    written = lines(tmp_path / "out" / "labels_1")
    assert [line for line in written if line.startswith("c")] == [f"c\t{text}" for text in many]
    assert len(written) == 4
    assert lines(tmp_path / "out" / "labels_2") == []


def test_labels_that_would_break_a_line_are_refused(tmp_path: Path) -> None:
    labels = Pair(Texts.of_lists([["A"], [], []]), Texts.of_lists([["B"], ["C\tD"], []]))
    with pytest.raises(InputError, match="labels must be free of tabs and line breaks"):
        write_openea(tiny(["a", "b", "c"], labels=labels), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_failed_writing(
    benchmark_: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("pyarrow.compute.array_sort_indices", full)
    with pytest.raises(InputError, match="can't write .*out: no space"):
        write_openea(benchmark_, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("seed", [0, 1])
def test_numbers_tell_nothing(seed: int, tmp_path: Path) -> None:
    write_openea(generate(SHAPES["demo"], seed), tmp_path / "pair")
    loaded = load(tmp_path / "pair")
    ranks = [np.argsort(np.argsort(ids)) for ids in loaded.task.seeds.T]
    centered = [rank - rank.mean() for rank in ranks]
    correlation = (centered[0] * centered[1]).mean() / (ranks[0].std() * ranks[1].std())
    assert abs(correlation) < 0.08

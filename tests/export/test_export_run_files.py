from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from named_alignments import aligned

from clusterea.export import export, write_alignment, write_candidates, write_unmatched
from clusterea.numerics.ties import pair_hash
from clusterea.types import Names, Pair, Similarity

NAMED = aligned(("a", "x", 0.5), ("b", "y", 0.75), source="c é", target="z")


def similarity(scores: list[list[float | None]]) -> Similarity:
    """Of a dense table in which None is no candidate."""
    cells = [(column, value) for row in scores for column, value in enumerate(row)]
    there = [(column, value) for column, value in cells if value is not None]
    counts = [sum(value is not None for value in row) for row in scores]
    return Similarity(
        torch.tensor([0, *np.cumsum(counts)]),
        torch.tensor([column for column, _ in there], dtype=torch.int64),
        torch.tensor([value for _, value in there], dtype=torch.float32),
        Pair(len(scores), len(scores[0])),
    )


def candidates(
    path: Path, scores: list[list[float | None]], seeds: list[list[int]], top: int = 10
) -> list[tuple[str, str, float, int]]:
    """The rows of the file, with names a0, a1, … and b0, b1, …"""
    matrix = similarity(scores)
    names = Pair("a", "b").zip(matrix.num_entities).map(lambda side: _numbered(*side))
    ties = names.map(lambda side: torch.from_numpy(side.keys()))
    pairs = np.array(seeds, dtype=np.int64).reshape(-1, 2)
    write_candidates(path, matrix, names, ties, pairs, seed=3, top=top)
    table = pq.read_table(path)
    assert table.schema.names == ["source", "target", "score", "rank"]
    return [tuple(row.values()) for row in table.to_pylist()]


def _numbered(letter: str, count: int) -> Names:
    return Names([f"{letter}{i}" for i in range(count)])


class TestAlignment:
    def test_it_is_the_exported_tsv(self, tmp_path: Path) -> None:
        write_alignment(tmp_path / "alignment.tsv", *NAMED)
        export(*NAMED, "tsv", tmp_path / "out.tsv")
        assert (tmp_path / "alignment.tsv").read_bytes() == (tmp_path / "out.tsv").read_bytes()


class TestUnmatched:
    def test_one_file_a_side(self, tmp_path: Path) -> None:
        write_unmatched(tmp_path, *NAMED)
        assert (tmp_path / "unmatched_source.tsv").read_text() == "entity\nc\né\n"
        assert (tmp_path / "unmatched_target.tsv").read_text() == "entity\nz\n"
        assert len(list(tmp_path.iterdir())) == 2

    def test_nobody(self, tmp_path: Path) -> None:
        write_unmatched(tmp_path, *aligned(("a", "x", 1.0)))
        assert (tmp_path / "unmatched_source.tsv").read_text() == "entity\n"

    def test_a_name_that_would_break_a_line(self, tmp_path: Path) -> None:
        alignment, names = NAMED
        broken = Pair(Names(["a", "b", "c\nd", "e\t"]), names.target)
        write_unmatched(tmp_path, alignment, broken)
        text = (tmp_path / "unmatched_source.tsv").read_text()
        assert text == "entity\nurn:clusterea:source:c%0Ad\nurn:clusterea:source:e%09\n"


class TestCandidates:
    def test_ranks_without_seeds_and_empty_rows(self, tmp_path: Path) -> None:
        scores: list[list[float | None]] = [
            [0.5, None, 0.75],
            [None, None, None],
            [1.0, 0.5, 0.25],
            [-1.0, None, None],
        ]
        assert candidates(tmp_path / "c.parquet", scores, [[2, 1]]) == [
            ("a0", "b2", 0.75, 1),
            ("a0", "b0", 0.5, 2),
            ("a3", "b0", -1.0, 1),
        ]

    @pytest.mark.parametrize("scores", [[[None, None]], [[1.0, None]]])
    def test_none(self, tmp_path: Path, scores: list[list[float | None]]) -> None:
        assert candidates(tmp_path / "c.parquet", scores, [[0, 0]]) == []

    @given(
        scores=st.integers(1, 6).flatmap(
            lambda width: st.lists(
                st.lists(
                    st.none() | st.sampled_from([0.0, 0.25, 0.5]), min_size=width, max_size=width
                ),
                min_size=1,
                max_size=5,
            )
        ),
        top=st.integers(1, 4),
    )
    def test_a_loop_finds_the_same(
        self, tmp_path_factory: pytest.TempPathFactory, scores: list[list[float | None]], top: int
    ) -> None:
        path = tmp_path_factory.mktemp("loop") / "c.parquet"
        keys = Pair("a", "b").map(lambda letter: torch.from_numpy(_numbered(letter, 9).keys()))
        expected = []
        for i, row in enumerate(scores):
            cells = [(value, j) for j, value in enumerate(row) if value is not None]
            ties = [int(pair_hash(keys.source[i], keys.target[j], 3)) for _, j in cells]
            ordered = sorted(
                zip(cells, ties, strict=True), key=lambda cell: (-cell[0][0], -cell[1])
            )
            expected += [
                (f"a{i}", f"b{j}", value, rank)
                for rank, ((value, j), _) in enumerate(ordered[:top], start=1)
            ]
        assert candidates(path, scores, [], top) == expected

    def test_in_more_than_one_piece(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        scores: list[list[float | None]] = [[j / 8 for j in range(8)] for _ in range(5)]
        whole = candidates(tmp_path / "whole.parquet", scores, [])
        monkeypatch.setattr("clusterea.export.run_files.CELLS", 3)
        assert candidates(tmp_path / "pieces.parquet", scores, []) == whole

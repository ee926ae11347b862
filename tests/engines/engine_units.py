"""Units for tests. Workers import them from here."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from clusterea.errors import DataError, InputError
from clusterea.numerics.knn import Neighbors
from clusterea.types import Pair, Similarity


def double(rows: Tensor) -> Tensor:
    return rows * 2


def total(parts: Sequence[Tensor], sides: Pair[Tensor], deep: tuple[list[Tensor], int]) -> Tensor:
    values, number = deep
    return sum(parts, torch.zeros(1)) + sides.source - sides.target + values[0] * number


def halves(rows: Tensor) -> tuple[Tensor, Tensor]:
    middle = len(rows) // 2
    return rows[:middle], rows[middle:]


def single(rows: Tensor) -> tuple[Tensor]:
    return (rows + 1,)


def neighbors(rows: Tensor) -> Pair[Neighbors]:
    found = rows.topk(2, dim=1)
    one = Neighbors(found.indices, found.values)
    return Pair(one, one.first(1))  # the second is not contiguous


def transposed(similarity: Similarity) -> Similarity:
    return similarity.swap()


def same(value: object) -> object:
    return value


def refuse(message: str) -> None:
    raise InputError(message)


def refuse_file(path: Path) -> None:
    raise DataError(path, "is empty.", line=3)


def divide_by_zero() -> float:
    return 1 / 0


def slowly(seconds: float, value: int) -> int:
    time.sleep(seconds)
    return value


def die_once(flag: Path, rows: Tensor) -> Tensor:
    """Kills its own worker the first time."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return rows * 3
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


def num_threads() -> int:
    torch.ones(500, 500) @ torch.ones(500, 500)
    return torch.get_num_threads()

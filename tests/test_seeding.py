"""Derived seeds: one for each purpose."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from clusterea.seeding import derived_seed, generator


def test_the_same_purpose_has_the_same_seed() -> None:
    assert derived_seed(3, "steps", 4) == derived_seed(3, "steps", 4)
    assert derived_seed(0, "initial") == derived_seed(0, "initial")


def test_no_two_purposes_share_a_seed() -> None:
    purposes: list[tuple[int, str, tuple[int, ...]]] = [
        (seed, word, numbers)
        for seed, word, numbers in product(
            range(3),
            ("initial", "steps", "expand", "dropout"),
            list(product(range(3), repeat=2)),  # a purpose always has as many parts
        )
    ]
    seeds = {derived_seed(seed, word, *numbers) for seed, word, numbers in purposes}
    assert len(seeds) == len(purposes)


@given(st.integers(0, 2**63 - 1), st.text(max_size=5), st.integers(0, 2**31))
def test_every_seed_suits_every_generator(seed: int, word: str, number: int) -> None:
    derived = derived_seed(seed, word, number)
    assert 0 <= derived < 2**63
    torch.Generator().manual_seed(derived)
    np.random.default_rng(derived)


def test_generators_draw_alike_and_apart() -> None:
    def draws(*purpose: str | int) -> list[float]:
        return torch.rand(5, generator=generator(1, *purpose)).tolist()

    assert draws("expand", 0, 1) == draws("expand", 0, 1)
    assert draws("expand", 0, 1) != draws("expand", 1, 0)
    assert draws("expand", 0, 1) != draws("dropout", 0, 1)


def test_global_state_is_left_alone() -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3).tolist()
    torch.manual_seed(5)
    generator(1, "expand").manual_seed(9)
    assert torch.rand(3).tolist() == wanted


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_a_generator_on_the_gpu() -> None:
    draws = [
        torch.rand(5, device="cuda", generator=generator(1, "expand", device="cuda")).tolist()
        for _ in range(2)
    ]
    assert draws[0] == draws[1]

"""Where memory is short: one sentence that says what to do."""

from __future__ import annotations

import pytest
import torch

from clusterea.errors import InputError
from clusterea.fusion.shortage import explained

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB."),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes."),
    ],
)
def test_a_shortage_is_explained(error: BaseException) -> None:
    advice = r"memory of cpu.*--set sampling\.max_batch=\d+.*fusion\.candidates"
    with pytest.raises(InputError, match=advice), explained(CPU):
        raise error


def test_what_an_allocator_really_says() -> None:
    with pytest.raises(InputError, match="memory of cpu"), explained(CPU):
        torch.empty(1 << 58)


@pytest.mark.parametrize(
    "error", [RuntimeError("shapes do not match"), ValueError("no"), KeyboardInterrupt()]
)
def test_other_errors_are_left_alone(error: BaseException) -> None:
    with pytest.raises(type(error)) as raised, explained(CPU):
        raise error
    assert raised.value is error

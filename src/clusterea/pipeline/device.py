"""`choose_device`: the CPU or a GPU, which it makes ready."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from clusterea.errors import InputError

if TYPE_CHECKING:
    import torch


def choose_device(name: str, engine: str = "local") -> torch.device:
    """The torch device of this name; `auto` is the GPU if there is one.

    Units on a Ray cluster run on CPUs, and so does the rest of the run. A GPU is used for the first
    time in another thread: to load CUDA's libraries takes a second.
    """
    import torch

    if engine == "ray":
        if name.startswith("cuda"):
            raise InputError(
                f"--engine=ray computes on CPUs, but got --device={name}. Leave out --device, or "
                "compute on the GPU of this machine with --engine=local."
            )
        name = "cpu" if name == "auto" else name

    # Blocks of varying sizes fragment fixed segments, which would take half as much memory again.
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")  # CUDA knows the first since 2.11
    if not any(name in os.environ for name in names):
        is_new = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 11)
        os.environ[names[0 if is_new else 1]] = "expandable_segments:True"
    if name == "auto":
        return _started(_indexed("cuda" if torch.cuda.is_available() else "cpu"))
    if name not in ("cpu", "cuda") and not name.startswith("cuda:"):
        raise InputError(f"--device must be auto, cpu or cuda. Got {name!r} instead.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("--device=cuda: torch sees no GPU here. Try --device=cpu.")
    return _started(_indexed(name))


def _started(device: torch.device) -> torch.device:
    """The device, which gets ready beside other work."""
    if device.type == "cuda":
        threading.Thread(target=_try_use, args=(device,), name="gpu").start()
    return device


def _try_use(device: torch.device) -> None:
    with suppress(Exception):  # it is told where the GPU is needed
        _use(device)


def _use(device: torch.device) -> None:
    import torch

    from clusterea.numerics.products import has_triton

    numbers = torch.ones(256, 256, device=device)
    for some in (numbers, numbers.half()):
        (some @ some).sum()
    torch.arange(1 << 16, device=device).flip(0).sort().values.cumsum(0)
    torch.empty(1 << 20, dtype=torch.uint8, pin_memory=True).to(device, non_blocking=True)
    if has_triton(device):
        _compile(device)
    torch.cuda.synchronize(device)


def _compile(device: torch.device) -> None:
    """Compiles the largest kernel of the search, which takes some seconds on a new machine."""
    import torch

    from clusterea.numerics.offer_kernel import Buckets, offer
    from clusterea.types import Pair

    names = torch.arange(16, dtype=torch.int32, device=device)
    cells = torch.ones(16, 16, device=device)
    offer(cells, Pair(names, names), Pair(*(Buckets.of(cells[0].clone(), 16) for _ in range(2))))


def _indexed(name: str) -> torch.device:
    """The device with the number of the current GPU, which some functions of torch need."""
    import torch

    return (
        torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    )

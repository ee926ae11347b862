"""`choose_device`: the CPU or a GPU."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clusterea.errors import InputError

if TYPE_CHECKING:
    import torch


def choose_device(name: str, engine: str = "local") -> torch.device:
    """The torch device of this name; `auto` is the GPU if there is one.

    Units on a Ray cluster run on CPUs, and so does the rest of the run.
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
        return _indexed("cuda" if torch.cuda.is_available() else "cpu")
    if name not in ("cpu", "cuda") and not name.startswith("cuda:"):
        raise InputError(f"--device must be auto, cpu or cuda. Got {name!r} instead.")
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise InputError("--device=cuda: torch sees no GPU here. Try --device=cpu.")
    return _indexed(name)


def _indexed(name: str) -> torch.device:
    """The device with the number of the current GPU, which some functions of torch need."""
    import torch

    return (
        torch.device("cuda", torch.cuda.current_device()) if name == "cuda" else torch.device(name)
    )

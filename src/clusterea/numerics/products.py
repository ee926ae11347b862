"""`linear`: a dense matrix product in float32, by the faster of a CPU's two libraries.

And what is known of devices: `vector_type` is what the vectors of many entities are kept in.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

# torch multiplies float32 with MKL, which on a CPU that is not Intel's leaves half of its speed
# unused. oneDNN does not, but torch has no public function that chooses it for float32.
_HAS_ONEDNN = bool(torch._C._has_mkldnn) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


def vector_type(device: torch.device) -> torch.dtype:
    """What vectors that were made on a device, or are compared there, are kept in.

    A GPU multiplies float16 and adds in float32. Cosines of rows of unit length differ from those
    of float32 by about 1e-5, and files and memory are half as large. A CPU multiplies float32.
    """
    return torch.float16 if device.type == "cuda" else torch.float32


def has_triton(device: torch.device) -> bool:
    """Whether kernels written in Triton run on the device: GPUs since Ampere, on Linux.

    The first call for a device compiles a kernel, which may take a second.
    """
    return device.type == "cuda" and _runs_triton(device)


@cache
def _runs_triton(device: torch.device) -> bool:
    """Whether a first kernel runs: Triton compiles with a C compiler and the headers of Python."""
    if find_spec("triton") is None or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    try:
        from clusterea.numerics.dot_kernel import chosen_dots

        one, column = torch.ones(1, 1, device=device), torch.zeros(1, 1, device=device).long()
        return float(chosen_dots(one, one, column)) == 1
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        warnings.warn(
            f"Triton can't compile kernels here, so the GPU is slower: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        return False


def linear(rows: Tensor, weights: Tensor, bias: Tensor | None = None) -> Tensor:
    """(rows, outputs): `rows @ weights.T + bias`, without a gradient.

    Args:
        rows: (rows, dim).
        weights: (outputs, dim).
        bias: (outputs,).
    """
    is_plain = rows.device.type == "cpu" and rows.dtype == weights.dtype == torch.float32
    if _HAS_ONEDNN and is_plain and rows.numel() and weights.numel():
        with torch.no_grad():
            product: Tensor = torch.ops.mkldnn._linear_pointwise(
                rows, weights, bias, "none", [], ""
            )
        return product
    return torch.nn.functional.linear(rows, weights, bias)

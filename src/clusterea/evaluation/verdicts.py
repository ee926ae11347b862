"""`verdicts`: which links are judged by known pairs, and which are right."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from clusterea.numerics import lookup
from clusterea.types import IntArray


def verdicts(links: IntArray, known: IntArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """`numerics.lookup.verdicts` for arrays."""
    is_judged, is_right = lookup.verdicts(torch.tensor(links), torch.tensor(known))
    return is_judged.numpy(), is_right.numpy()

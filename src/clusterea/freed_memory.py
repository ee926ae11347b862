"""`give_back`: free memory of this process goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def give_back() -> None:
    """Gives free memory back to the system: glibc keeps much of what was freed."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # not every Linux has glibc
        if trim is not None:
            trim(0)

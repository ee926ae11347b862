"""`give_back`: free memory of this process goes back to the system."""

from __future__ import annotations

import ctypes
import sys

LARGE = 1 << 22  # bytes
_MMAP_THRESHOLD = -3  # the number of this parameter of glibc's mallopt


def give_back() -> None:
    """Gives free memory back to the system, and large tensors as soon as they are freed.

    glibc keeps much of what was freed. After a large tensor was freed, it puts those of the same
    size among small ones, and can't give them back while these are in use.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):  # not every Linux has glibc
            library.mallopt(_MMAP_THRESHOLD, LARGE)
            library.malloc_trim(0)

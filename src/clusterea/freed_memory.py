"""`give_back`: free memory of this process goes back to the system."""

from __future__ import annotations

import ctypes
import sys

LARGE = 1 << 24  # bytes; with 4 MB, blocks of the search would cost a quarter more CPU time
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # the numbers of these parameters of glibc's mallopt


def give_back() -> None:
    """Gives free memory back to the system, and large tensors as soon as they are freed.

    glibc keeps much of what was freed. After a large tensor was freed, it puts those of the same
    size among small ones, and can't give them back while these are in use.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):  # not every Linux has glibc
            library.mallopt(_MMAP_THRESHOLD, LARGE)
            library.mallopt(_TRIM_THRESHOLD, LARGE)  # or it would fall to 128 KB
            library.malloc_trim(0)

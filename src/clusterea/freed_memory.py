"""What happens to memory that this process has freed."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LARGE = 1 << 24  # bytes; with 4 MB, blocks of the search would cost a quarter more CPU time
# The numbers of these parameters of glibc's mallopt, and the usual value of the last
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _USUAL_MMAP_MAX = -1, -3, -4, 65536


def give_back() -> None:
    """Gives free memory back to the system, and large tensors as soon as they are freed.

    glibc keeps much of what was freed. After a large tensor was freed, it puts those of the same
    size among small ones, and can't give them back while these are in use.
    """
    if (library := _glibc()) is not None:
        library.mallopt(_MMAP_MAX, _USUAL_MMAP_MAX)
        library.mallopt(_MMAP_THRESHOLD, LARGE)
        library.mallopt(_TRIM_THRESHOLD, LARGE)  # or it would fall to 128 KB
        library.malloc_trim(0)


@contextmanager
def keep_freed() -> Iterator[None]:
    """Inside, what was freed stays for the next tensors, however large; afterwards it goes back.

    For thousands of steps that need the same memory again. Taking it from the system each time,
    page by page, would add half to the time of training.
    """
    if (library := _glibc()) is not None:
        library.mallopt(_MMAP_MAX, 0)  # all tensors in the heap
        library.mallopt(_TRIM_THRESHOLD, 2**30)
    try:
        yield
    finally:
        give_back()


def _glibc() -> ctypes.CDLL | None:
    """The C library, if it is glibc: not every Linux has it."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") else None

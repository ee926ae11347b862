"""How many threads compute, and how they wait for each other.

torch, MKL, OpenBLAS and Arrow read environment variables once, when they are loaded, so the package
sets them when it is imported. This module imports only what Python itself has loaded by then.
"""

from __future__ import annotations

import os
import sys

# A user who set one of these has chosen.
COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")

SPINS = "1000"  # some microseconds, in which most waits end

_NO_LIMIT = float("inf")


def set_thread_defaults() -> None:
    """Sets the variables that the user has not set, unless torch is loaded already.

    By default a thread that waits for others spins for milliseconds. If other processes need the
    CPU, these others do not run meanwhile. PASSIVE lets it sleep, in libgomp after a short spin.
    The number of threads is set only if a quota allows fewer CPUs than there are: torch counts
    CPUs, but knows no quota.
    """
    if "torch" in sys.modules:
        return
    if not _is_set(WAITING):
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ["GOMP_SPINCOUNT"] = SPINS
    if not _is_set(COUNTS) and available_cpus() < len(_own_cpus()):
        os.environ["OMP_NUM_THREADS"] = str(available_cpus())


def are_excessive(threads: int) -> bool:
    """Whether a quota allows fewer threads than torch has, and the user did not choose them.

    A number that is not torch's default is a choice, and so is a variable.
    """
    cpus = _own_cpus()
    is_default = threads in (len(cpus), _num_cores(cpus))  # MKL has a thread for each core
    return is_default and threads > available_cpus() and not _is_set(COUNTS)


def available_cpus() -> int:
    """The number of CPUs that this process may use, by its affinity and quota; at least 1."""
    allowed, quota = len(_own_cpus()), cpu_quota()
    return allowed if quota >= allowed else max(1, -int(-quota // 1))


def cpu_quota(groups: str = "/proc/self/cgroup", mount: str = "/sys/fs/cgroup") -> float:
    """The CPUs that control groups, version 1 or 2, allow this process; infinite without a limit.

    The lowest limit on the path from the process's group to the root counts. In a container,
    the path may be that of the host. Then only the root exists here, and it is the container's.
    """
    quota = _NO_LIMIT
    for line in _read(groups).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        root = f"{mount}/cpu" if controllers else mount  # version 2 has no list of controllers
        path = path.rstrip("/")
        quota = min(quota, _limit(root))
        while path:
            quota = min(quota, _limit(root + path))
            path = path.rpartition("/")[0]
    return quota


def _limit(group: str) -> float:
    """The CPUs that one group allows."""
    given = _read(f"{group}/cpu.max") or " ".join(
        _read(f"{group}/cpu.cfs_{name}_us") for name in ("quota", "period")
    )
    try:
        quota, period = map(int, given.split())
    except ValueError:  # "max 100000", or no such file
        return _NO_LIMIT
    return quota / period if quota > 0 and period > 0 else _NO_LIMIT  # version 1: -1 is no limit


def _own_cpus() -> set[int]:
    """The CPUs on which this process may run."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def _num_cores(cpus: set[int]) -> int:
    """The number of cores that have these CPUs; a core may have two."""
    folder = "/sys/devices/system/cpu"
    return len({_read(f"{folder}/cpu{cpu}/topology/thread_siblings_list") for cpu in cpus})


def _is_set(names: tuple[str, ...]) -> bool:
    return any(name in os.environ for name in names)


def _read(path: str) -> str:
    """The text of a small file; empty if it can't be read."""
    try:
        with open(path, errors="surrogateescape") as file:  # noqa: PTH123  # pathlib is not loaded
            return file.read()
    except OSError:
        return ""

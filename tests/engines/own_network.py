"""Programs in a network of their own, which has only loopback."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

# `test_ray_cluster.py` sets it where it runs the tests of engines again, on Ray.
ON_RAY = "CLUSTEREA_TESTS_ON_RAY"
_SET_FLAGS, _GET_FLAGS, _UP = 0x8914, 0x8913, 1


def in_own_network(*command: str | Path) -> list[str]:
    """The command in a network namespace; where that is not allowed, the command itself.

    Ray that `RayCluster` starts listens on loopback only, so this is but a second precaution.
    """
    whole = [sys.executable, __file__, *map(str, command)]
    for unshare in (["unshare", "-n"], ["unshare", "-rn"]):
        if (
            shutil.which("unshare")
            and not subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode
        ):
            return [*unshare, *whole]
    return [*map(str, command)]


def _raise_loopback() -> None:
    """What `ip link set lo up` does; a bare machine has no `ip`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sH14s", b"lo", 0, bytes(14))
        _, flags, _ = struct.unpack("16sH14s", fcntl.ioctl(any_socket, _GET_FLAGS, asked))
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sH14s", b"lo", flags | _UP, bytes(14)))


if __name__ == "__main__":
    _raise_loopback()
    os.execvp(sys.argv[1], sys.argv[1:])

"""The start of the command line. It handles signals first, and imports the rest later.

At any time, Ctrl-C or SIGTERM ends a command with one line and exit code 130 or 143.
"""

from __future__ import annotations

import gc
import os
import sys

try:
    import signal
except KeyboardInterrupt:  # no handler is installed yet
    os.write(2, b"Stopped.\n")
    os._exit(130)

TYPE_CHECKING = False  # `typing` is slow to import, and signals are not handled yet
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

RARELY = 1000  # instead of 10: how often the younger objects are looked through before all are
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Runs the command line."""
    _handle(_leave)  # nothing is written during imports, so there is nothing to clean up
    # Looking through all objects for garbage takes long after an import, which makes none.
    gc.set_threshold(*gc.get_threshold()[:2], RARELY)
    from clusterea.cli import main as run

    is_stopped = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        """Raises in the main thread, so that temporary files are removed."""
        from clusterea.errors import Stopped

        nonlocal is_stopped
        is_stopped = True
        _handle(_leave)  # a second signal ends the process at once
        raise Stopped(128 + number)

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        """Ends the command if Python could not raise, as in a finalizer or a callback."""
        if is_stopped:
            _leave(signal.SIGINT, None)
        sys.__unraisablehook__(unraisable)

    sys.unraisablehook = lost
    _handle(interrupt)
    try:
        run()
    finally:
        _handle(signal.SIG_IGN)  # a signal during shutdown would print a traceback
        gc.freeze()  # or Python would look through all objects once more before it ends


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in SIGNALS:
        if (
            signal.getsignal(number) is not signal.SIG_IGN
        ):  # ignored by nohup, or by `&` in a script
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process at once."""
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar hides it
    line = b'{"event": "stopped"}\n' if "--json" in sys.argv else b"Stopped.\n"
    os.write(2, show_cursor + line)
    os._exit(128 + number)

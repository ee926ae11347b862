"""Where the command line starts: signals are handled first, everything else is imported later.

Ctrl-C or SIGTERM ends a command with one line and exit code 130 or 143 at any moment.
"""

from __future__ import annotations

import os
import sys

try:
    import signal
except KeyboardInterrupt:  # until there are handlers, Python raises it wherever it is
    os.write(2, b"Stopped.\n")
    os._exit(130)

TYPE_CHECKING = False  # `typing` takes long to import, and until then nothing answers a signal
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def main() -> None:
    """Runs the command line."""
    _handle(_leave)  # nothing has been written while imports run: there is nothing to clean up
    from clusterea.cli import main as run

    is_stopped = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        """Raises in the main thread, so that files half written are removed on the way out."""
        from clusterea.errors import Stopped

        nonlocal is_stopped
        is_stopped = True
        _handle(_leave)  # a second signal does not wait
        raise Stopped(128 + number)

    def lost(unraisable: sys.UnraisableHookArgs) -> None:
        """Python can't raise in a finalizer or a callback; then the command ends here."""
        if is_stopped:
            _leave(signal.SIGINT, None)
        sys.__unraisablehook__(unraisable)

    sys.unraisablehook = lost
    _handle(interrupt)
    try:
        run()
    finally:
        _handle(signal.SIG_IGN)  # Python would print a traceback if it came while it shuts down


def _handle(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and `&` in a script have it
            signal.signal(number, handler)


def _leave(number: int, frame: FrameType | None) -> None:
    """Ends the process without returning to what it was doing."""
    show_cursor = b"\x1b[?25h" if os.isatty(2) else b""  # a progress bar hides it
    line = b'{"event": "stopped"}\n' if "--json" in sys.argv else b"Stopped.\n"
    os.write(2, show_cursor + line)
    os._exit(128 + number)

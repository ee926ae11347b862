"""Slow imports beside the first stages."""

from __future__ import annotations

import importlib
import subprocess
import sys
import threading

import pytest

from clusterea.pipeline.outputs import SLOW_IMPORTS, import_ahead


def test_all_are_imported() -> None:
    program = (
        "import sys; from clusterea.pipeline.outputs import SLOW_IMPORTS, import_ahead\n"
        "assert not sys.modules.keys() & set(SLOW_IMPORTS)\n"
        "import_ahead().join()\n"
        "print(*sorted(sys.modules.keys() & set(SLOW_IMPORTS)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == sorted(SLOW_IMPORTS), done.stderr


def test_an_error_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told where the library is used."""
    told: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    for name in SLOW_IMPORTS:
        monkeypatch.setitem(sys.modules, name, None)
    import_ahead().join()
    assert not told
    with pytest.raises(ImportError):
        importlib.import_module(SLOW_IMPORTS[0])

"""A headless Chromium to look at a page with, driven over its own protocol through two pipes.

No driver program has to fit the browser's version, and no package has to be installed: the
protocol is JSON messages that end with a zero byte.
https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 60  # seconds until a browser that says nothing counts as broken; never a measurement


def find_program() -> str:
    """The browser's path. Without one the test is skipped, but where CI is set it fails."""
    for name in PROGRAMS:
        if path := shutil.which(name):
            return path
    message = f"no browser: none of {', '.join(PROGRAMS)} is installed"
    if os.environ.get("CI"):
        pytest.fail(message)
    pytest.skip(message)


class Browser:
    """One running Chromium."""

    def __init__(self, program: str, profile: Path) -> None:
        # The browser reads from descriptor 3 and writes to 4; ours lie above, out of their way.
        to_browser, from_browser = _pipe(), _pipe()
        flags = [
            "--headless=new",
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "--no-first-run",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--hide-scrollbars",
            *(["--no-sandbox"] if os.geteuid() == 0 else []),
        ]
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}',
                "bash",
                program,
                *flags,
            ],
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        self._input, self._output = to_browser[1], from_browser[0]
        self._rest = b""
        self._last_id = 0
        self._events: dict[str, list[dict[str, Any]]] = {}  # of each session, in order

    def open(
        self,
        path: Path | str,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        before: str = "",
    ) -> Page:
        """The file or address in a new tab, loaded; `before` runs before the page's scripts."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        return Page(self, session, path, width=width, height=height, dark=dark, before=before)

    def call(self, method: str, session: str | None = None, /, **params: Any) -> dict[str, Any]:
        """The browser's answer. Events that come meanwhile are kept."""
        self._last_id += 1
        message: dict[str, Any] = {"id": self._last_id, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._input, data) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._last_id:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: dict[str, Any] = answer["result"]
                return result
            self._events.setdefault(answer.get("sessionId", ""), []).append(answer)

    def events(self, session: str) -> list[dict[str, Any]]:
        return self._events.setdefault(session, [])

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._output], [], [], PATIENCE)
            chunk = os.read(self._output, 1 << 16) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer")
            self._rest += chunk
        message, self._rest = self._rest.split(b"\0", 1)
        answer: dict[str, Any] = json.loads(message)
        return answer

    def close(self) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(PATIENCE)
        except (RuntimeError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._input)
        os.close(self._output)


class Page:
    """One tab, and all that went wrong in it."""

    def __init__(
        self,
        browser: Browser,
        session: str,
        path: Path | str,
        *,
        width: int,
        height: int,
        dark: bool,
        before: str,
    ) -> None:
        self._browser = browser
        self._session = session
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")
        self.resize(width, height)
        self.set_dark(dark)
        self._call("Page.addScriptToEvaluateOnNewDocument", source=before)
        url = path if isinstance(path, str) else path.resolve().as_uri()
        self._call("Page.navigate", url=url)
        scheme = json.dumps(url.partition(":")[0] + ":")
        self.wait_for(f"document.readyState === 'complete' && location.protocol === {scheme}")

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def set_dark(self, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; a promise's when it is kept."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def text(self, selector: str) -> str:
        return str(self.evaluate(f"document.querySelector({json.dumps(selector)}).innerText"))

    def texts(self, selector: str) -> list[str]:
        found = f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.innerText)"
        return [str(each) for each in self.evaluate(found)]

    def wait_for(self, condition: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise AssertionError(f"never came true: {condition}")
            time.sleep(0.02)

    def click(self, selector: str, *, at: tuple[float, float] = (0.5, 0.5)) -> None:
        """With a real mouse event; `at` in shares of the element's width and height."""
        box = self.evaluate(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
            "const b = e.getBoundingClientRect(); "
            f"return [b.x + b.width * {at[0]}, b.y + b.height * {at[1]}]; }})"
            f"(document.querySelector({json.dumps(selector)}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._call(
                "Input.dispatchMouseEvent",
                type=kind,
                x=box[0],
                y=box[1],
                button="left",
                clickCount=1,
            )

    def type(self, selector: str, text: str) -> None:
        """Into a field, in place of what it held."""
        field = json.dumps(selector)
        self.evaluate(f"(e => {{ e.focus(); e.select(); }})(document.querySelector({field}))")
        self._call("Input.insertText", text=text)

    def press(self, key: str) -> None:
        """`Enter`, `Tab`, `Backspace`, a letter or a digit, wherever the focus is."""
        known = {"Enter": (13, "\r"), "Tab": (9, ""), "Backspace": (8, ""), "Escape": (27, "")}
        code, text = known.get(key) or (ord(key.upper()), key)
        for kind in ("keyDown", "keyUp"):
            self._call(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=code,
                text=text if kind == "keyDown" else "",
            )

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        image = self._call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(image["data"]))

    def errors(self) -> list[str]:
        """What the console shows in red or yellow, and what no one caught."""
        self.evaluate("0")  # what happened before now has arrived once this is answered
        found = []
        for event in self._browser.events(self._session):
            method, params = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                found.append(str(params["args"]))
            elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                found.append(str(params["entry"]))
        return found

    def requests(self) -> list[str]:
        """Every address that was asked for."""
        self.evaluate("0")
        return [
            str(event["params"]["request"]["url"])
            for event in self._browser.events(self._session)
            if event["method"] == "Network.requestWillBeSent"
        ]

    def _call(self, method: str, **params: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **params)


def _pipe() -> tuple[int, int]:
    """Reading and writing end, both above descriptor 9."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends[0], ends[1]


@contextmanager
def running_browser() -> Iterator[Browser]:
    """A browser with a profile of its own, gone afterwards."""
    program = find_program()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Browser(program, Path(profile))
        try:
            yield browser
        finally:
            browser.close()

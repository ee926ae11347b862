"""The pictures of the documentation that show a page.

.venv/bin/python docs/screenshots.py      (or `make screenshots`)

It needs Chromium, and the extra `review`.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tests"))

from chromium import Page, running_browser  # noqa: E402

IMAGES = ROOT / "docs" / "images"
READY = "document.documentElement.dataset.state === 'ready'"
SAMPLE = 24  # answers, so that the progress has numbers
# A link with neighbors that are matched to each other, and that fit.
GOOD = (
    "document.querySelector('#summary').innerText.includes('links the two')"
    " && document.querySelectorAll('#neighbors .chip.for').length >= 6"
    " && document.querySelectorAll('#neighbors .chip').length <= 24"
)


def clusterea(*arguments: str | Path) -> list[str]:
    """The command of `clusterea` with these arguments."""
    return [sys.executable, "-m", "clusterea", *map(str, arguments)]


@contextmanager
def review(folder: Path) -> Iterator[str]:
    """The address of the review of an aligned demo pair."""
    pair, run = folder / "pair", folder / "run"
    options = ("--seeds-share", "0.3", "--names", "labels", "--preset", "fast")
    for command in (
        clusterea("generate", pair, "--like", "demo", "--labels"),
        clusterea("align", pair, *options, "--out", run, "--device", "cpu"),
    ):
        subprocess.run(command, check=True, capture_output=True)
    command = clusterea("review", run, "--no-browser", "--author", "ada")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def answer(page: Page, truth: set[tuple[str, str]], count: int) -> None:
    """Answers questions as the true links say."""
    for _ in range(count):
        source, target = page.texts("#cards .id")
        before = page.evaluate("document.getElementById('cards').dataset.pair")
        page.press("s" if (source, target) in truth else "d")
        page.wait_for(f"{READY} && document.getElementById('cards').dataset.pair !== {before!r}")


def main() -> None:
    """Writes `review.png`."""
    with tempfile.TemporaryDirectory() as name, review(Path(name)) as address:
        lines = (Path(name) / "pair" / "ent_links").read_text().splitlines()
        truth = {(source, target) for source, target in (line.split("\t") for line in lines)}
        with running_browser() as browser:
            page = browser.open(address, width=1280, height=800)
            page.wait_for(READY)
            answer(page, truth, SAMPLE)
            while not page.evaluate(GOOD):
                answer(page, truth, 1)
            page.screenshot(IMAGES / "review.png", whole=False)


if __name__ == "__main__":
    main()

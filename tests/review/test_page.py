"""The page in a real browser, with a real server on a real run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from paired_towns import HOSTILE

from chromium import PATIENCE, Browser, Page, running_browser
from clusterea.pipeline import load_run
from clusterea.review.log import DecisionLog
from clusterea.types import Answer

READY = "document.documentElement.dataset.state === 'ready'"
ALIGN = ["--seeds-share", "0.3", "--preset", "fast", "--device", "cpu"]
NARROW = 360

pytestmark = pytest.mark.slow


def clusterea(*arguments: str | Path) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "clusterea", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@dataclass
class Server:
    """`clusterea review` in a process of its own."""

    run: Path
    options: tuple[str, ...] = ()
    address: str = ""
    process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        command = [sys.executable, "-m", "clusterea", "review", str(self.run), "--no-browser"]
        self.process = subprocess.Popen(
            [*command, *self.options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{43}", self.address)

    def end(self, number: signal.Signals) -> tuple[int, str]:
        """The exit code and standard error."""
        assert self.process is not None
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE)
        code = self.process.returncode
        self.process = None
        return code, err


@contextmanager
def serving(run: Path, *options: str) -> Iterator[Server]:
    server = Server(run, options)
    server.start()
    try:
        yield server
    finally:
        if server.process is not None:
            server.end(signal.SIGKILL)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running_browser() as running:
        yield running


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graphs with labels; every label of the first is followed by HTML."""
    folder = tmp_path_factory.mktemp("review") / "pair"
    clusterea("generate", folder, "--entities", "400", "--relations", "12", "--labels")
    labels = folder / "labels_1"
    labels.write_text("".join(f"{line} {HOSTILE}\n" for line in labels.read_text().splitlines()))
    return folder


def aligned(pair: Path, run: Path) -> Path:
    clusterea("align", pair, "--out", run, *ALIGN)
    return run


@pytest.fixture(scope="module")
def untouched(pair: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return aligned(pair, tmp_path_factory.mktemp("runs") / "untouched")


def answers_of(run: Path) -> list[Answer]:
    named = load_run(run).named
    return DecisionLog(run / "decisions.sssom.tsv", named.names, named.labels).answers


def opened(browser: Browser, server: Server, width: int = 1280, *, dark: bool = False) -> Page:
    page = browser.open(server.address, width=width, dark=dark)
    page.wait_for(READY)
    return page


def shown(page: Page) -> tuple[str, str]:
    """The ids of the two entities."""
    source, target = page.texts("#cards .id")
    return source, target


def press(page: Page, key: str) -> None:
    """Presses a key, and waits until the page shows another pair, or the end."""
    before = page.evaluate("document.getElementById('cards').dataset.pair")
    page.press(key)
    page.wait_for(
        f"{READY} && (document.getElementById('cards').dataset.pair !== {before!r}"
        " || document.getElementById('cards').hidden)"
    )


def links_of(path: Path) -> set[tuple[str, str]]:
    rows = (line.split("\t") for line in path.read_text().splitlines())
    return {(row[0], row[1]) for row in rows}


def test_thirty_answers_survive_a_killed_server(
    browser: Browser, pair: Path, tmp_path: Path
) -> None:
    """SIGKILL between answers: none is lost, and the page goes on by itself."""
    run = aligned(pair, tmp_path / "run")
    before = links_of(run / "alignment.tsv")
    truth = links_of(pair / "ent_links")
    given: dict[tuple[str, str], bool] = {}
    with serving(run) as server:
        page = opened(browser, server)
        for number in range(30):
            asked = shown(page)
            assert asked not in given
            given[asked] = asked in truth
            if number % 10 == 4:  # while nothing happens
                server.end(signal.SIGKILL)
                server.start()
            if number % 10 == 9:  # the server comes back after the answer
                server.end(signal.SIGKILL)
                page.press("s" if given[asked] else "d")
                page.wait_for("!document.getElementById('trouble').hidden")
                assert "Your answer is kept" in page.text("#trouble")
                assert shown(page) == asked
                server.start()
                page.wait_for(f"{READY} && document.getElementById('trouble').hidden")
                assert shown(page) != asked
            else:
                press(page, "s" if given[asked] else "d")
        assert page.text("#progress").startswith("30 answered")
        assert page.evaluate("document.title") != "hacked"
        code, err = server.end(signal.SIGINT)
    assert code == 130
    assert "Traceback" not in err
    assert "decisions.sssom.tsv: 30." in err
    names = load_run(run).named.names
    kept = {
        (names.source[each.source], names.target[each.target]): each.verdict == "same"
        for each in answers_of(run)
        if each.source is not None and each.target is not None
    }
    assert kept == given
    assert set(given.values()) == {True, False}

    aligned(pair, run)
    again = load_run(run)
    seeds = {
        (again.named.names.source[source], again.named.names.target[target])
        for source, target in again.task.seeds.tolist()
    }
    found = links_of(run / "alignment.tsv") | seeds
    accepted = {each for each, same in given.items() if same}
    rejected = given.keys() - accepted
    assert accepted <= found
    assert not rejected & found
    assert rejected & before  # so the answers made the difference


def test_keys_for_candidates_and_back(browser: Browser, untouched: Path) -> None:
    with serving(untouched, "--author", "ada") as server:
        page = opened(browser, server)
        first = shown(page)
        assert page.evaluate("document.querySelector('#actions .back').disabled")
        press(page, "1")  # look at a candidate
        other = shown(page)
        assert other[0] == first[0]
        assert other[1] != first[1]
        assert "candidate 1" in page.text("#looking")
        press(page, "z")
        assert shown(page) == first
        press(page, "1")
        press(page, "s")
        names = load_run(untouched).named.names
        rejected, accepted = answers_of(untouched)[-2:]
        assert (rejected.verdict, accepted.verdict) == ("different", "same")
        assert accepted.target is not None
        assert names.target[accepted.target] == other[1]
        assert accepted.author == "ada"
        press(page, "Backspace")
        assert shown(page) == first
        press(page, "u")
        press(page, "n")
        assert answers_of(untouched)[-1].verdict == "none"
        page.press("c")
        page.evaluate("0")
        for letter in "sd":  # letters, not answers
            page.press(letter)
        assert page.evaluate("document.getElementById('comment').value") == "sd"
        page.press("Enter")
        press(page, "d")
        assert answers_of(untouched)[-1].comment == "sd"
        assert page.errors() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, NARROW])
def test_the_page_fits_and_asks_only_this_machine(
    width: int, dark: bool, browser: Browser, untouched: Path
) -> None:
    with serving(untouched) as server:
        page = opened(browser, server, width, dark=dark)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        boxes = page.evaluate(
            "[...document.querySelectorAll('#cards article')].map(e => e.getBoundingClientRect().y)"
        )
        assert (boxes[0] == boxes[1]) == (width > NARROW)  # side by side, or one below the other
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(14, 17, 22)" if dark else "rgb(246, 247, 249)")
        assert HOSTILE.partition(" ")[0] in page.text("#cards h2")
        assert page.evaluate("document.images.length") == 0
        assert all(
            url.startswith((server.address.partition("?")[0], "data:")) for url in page.requests()
        )
        assert page.errors() == []


def test_blind_shows_the_verdict_after_the_answer(browser: Browser, untouched: Path) -> None:
    told = re.compile(r"The run (links|does not link)")
    with serving(untouched, "--blind") as server:
        page = opened(browser, server)
        assert not told.search(page.text("main"))
        press(page, "d")
        assert told.search(page.text("#last"))
        assert not told.search(page.text("#summary"))


def test_two_tabs_do_not_overwrite_each_other(browser: Browser, untouched: Path) -> None:
    with serving(untouched) as server:
        one, two = opened(browser, server), opened(browser, server)
        first = shown(one)
        assert shown(two) == first
        press(one, "s")
        second = shown(one)
        press(two, "u")  # about the first, as its tab shows
        assert shown(two) == second
        names = load_run(untouched).named.names
        last = answers_of(untouched)[-1]
        assert last.source is not None
        assert (names.source[last.source], last.verdict) == (first[0], "unsure")


def test_the_end_says_what_to_run(browser: Browser, untouched: Path) -> None:
    with serving(untouched) as server:
        page = opened(browser, server)
        page.evaluate(
            "window.fetch = async () => new Response(JSON.stringify({question: null, last: "
            "{pair: '', verdict: 'same', found: {link: true}}, progress: {answered: 1, accepted: 1,"
            " rejected: 0, rest: null, precision: null, advice: '', links: 1, can_undo: true}}))"
        )
        page.press("s")
        page.wait_for("!document.getElementById('done').hidden")
        assert f"clusterea align … --out {untouched}" in page.text("#done")


def test_without_the_extra_one_message_says_what_to_install(untouched: Path) -> None:
    hide = "import sys; sys.modules['uvicorn'] = None; from clusterea.entry import main; main()"
    ran = subprocess.run(
        [sys.executable, "-c", hide, "review", str(untouched)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ,
    )
    assert ran.returncode == 2
    assert ran.stderr.count("\n") == 1
    assert "pip install 'clusterea[review]'" in ran.stderr


def test_a_signal_ends_it_quietly(untouched: Path) -> None:
    with serving(untouched) as server:
        with urllib.request.urlopen(server.address, timeout=PATIENCE) as page:
            assert page.status == 200
        code, err = server.end(signal.SIGTERM)
    assert code == 143
    started, ended = err.splitlines()
    assert "Ctrl-C" in started
    assert "decisions.sssom.tsv" in ended

from __future__ import annotations

import contextlib
import hashlib
import itertools
import re
import socket
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clusterea.data.datasets.download import download
from clusterea.errors import DownloadError

CONTENT = bytes(range(256)) * 1200 + b"an odd end"  # more than one piece of the network's
CUT = 100_001


def sum_of(content: bytes) -> str:
    return hashlib.sha512(content).hexdigest()


@dataclass
class Server:
    """A web server that behaves as told, and writes down what it was asked."""

    url: str = ""
    content: bytes = CONTENT
    etag: str | None = '"first"'
    last_modified: str | None = None
    ranges: bool = True
    heeds_if_range: bool = True
    cut_after: int | None = None  # bytes of the body, then the connection is closed
    stall_s: float = 0.0  # before the body
    status: int | None = None  # answered instead of the file
    claimed_length: int | None = None  # instead of the truth
    shift_range: int = 0  # a 206 that begins elsewhere than asked
    redirect: bool = False
    requests: list[tuple[str | None, str | None]] = field(default_factory=list)  # Range, If-Range

    def validator(self) -> str | None:
        return self.etag or self.last_modified


class Handler(BaseHTTPRequestHandler):
    server_behavior: Server

    def do_GET(self) -> None:
        told = self.server_behavior
        if told.redirect and self.path != "/moved":
            self.send_response(302)
            self.send_header("Location", "/moved")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked, if_range = self.headers.get("Range"), self.headers.get("If-Range")
        told.requests.append((asked, if_range))
        if told.status is not None:
            self.send_error(told.status)
            return
        start = 0
        if told.ranges and asked and self._validates(if_range):
            found = re.fullmatch(r"bytes=(\d+)-", asked)
            assert found is not None
            start = int(found[1])
            if start >= len(told.content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(told.content)}")
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            start += told.shift_range
            self.send_response(206)
            last, whole = len(told.content) - 1, len(told.content)
            self.send_header("Content-Range", f"bytes {start}-{last}/{whole}")
        else:
            self.send_response(200)
        self._send_body(told.content[start:])

    def _validates(self, if_range: str | None) -> bool:
        told = self.server_behavior
        return not told.heeds_if_range or if_range in (None, told.validator())

    def _send_body(self, body: bytes) -> None:
        told = self.server_behavior
        if told.etag is not None:
            self.send_header("ETag", told.etag)
        if told.last_modified is not None:
            self.send_header("Last-Modified", told.last_modified)
        length = len(body) if told.claimed_length is None else told.claimed_length
        self.send_header("Content-Length", str(length))
        self.end_headers()
        time.sleep(told.stall_s)
        with contextlib.suppress(OSError):  # the client may have given up first
            self.wfile.write(body if told.cut_after is None else body[: told.cut_after])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture(autouse=True)
def _plain_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    # Reading the certificates takes longer than all else here, and nothing here is encrypted.
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))


@pytest.fixture
def server() -> Iterator[Server]:
    behavior = Server()
    handler = type("ToldHandler", (Handler,), {"server_behavior": behavior})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        behavior.url = f"http://127.0.0.1:{http.server_address[1]}/file"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield behavior
        http.shutdown()
        thread.join()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "folder" / "file.zip"


def part_of(target: Path) -> Path:
    return target.with_name("file.zip.part")


def leftovers(target: Path) -> list[str]:
    return sorted(path.name for path in target.parent.iterdir() if path.suffix != ".lock")


def get(server: Server, target: Path, content: bytes = CONTENT) -> Path:
    return download(server.url, target, sha512=sum_of(content))


def cut_once(server: Server, target: Path) -> None:
    """Leaves the first CUT bytes in the part, and a server that works again."""
    server.cut_after = CUT
    with pytest.raises(DownloadError):
        get(server, target)
    server.cut_after = None
    assert part_of(target).read_bytes() == CONTENT[:CUT]


def test_the_file_arrives_whole_and_nothing_else_stays(server: Server, target: Path) -> None:
    assert get(server, target) == target
    assert target.read_bytes() == CONTENT
    assert leftovers(target) == ["file.zip"]
    assert server.requests == [(None, None)]


def test_redirects_are_followed(server: Server, target: Path) -> None:
    server.redirect = True
    assert get(server, target).read_bytes() == CONTENT


def test_the_sum_may_be_in_capitals(server: Server, target: Path) -> None:
    download(server.url, target, sha512=sum_of(CONTENT).upper())
    assert target.read_bytes() == CONTENT


def test_a_right_target_is_not_downloaded_again(server: Server, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(CONTENT)
    assert get(server, target) == target
    assert server.requests == []
    assert list(target.parent.iterdir()) == [target]  # no lock either: it may be read-only


def test_a_wrong_target_is_replaced(server: Server, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"something old")
    get(server, target)
    assert target.read_bytes() == CONTENT


def test_progress_rises_to_the_whole(server: Server, target: Path) -> None:
    calls: list[tuple[int, int | None]] = []
    download(
        server.url,
        target,
        sha512=sum_of(CONTENT),
        progress=lambda received, total: calls.append((received, total)),
    )
    counts = [received for received, _ in calls]
    assert counts[0] == 0
    assert counts[-1] == len(CONTENT)
    assert len(counts) > 2
    assert all(before < after for before, after in itertools.pairwise(counts))
    assert {total for _, total in calls} == {len(CONTENT)}


def test_progress_of_a_resumed_download_counts_what_was_there(server: Server, target: Path) -> None:
    cut_once(server, target)
    calls: list[tuple[int, int | None]] = []
    download(
        server.url,
        target,
        sha512=sum_of(CONTENT),
        progress=lambda received, total: calls.append((received, total)),
    )
    assert calls[0] == (CUT, len(CONTENT))
    assert calls[-1] == (len(CONTENT), len(CONTENT))


def test_a_cut_keeps_what_came_and_says_so(server: Server, target: Path) -> None:
    server.cut_after = CUT
    with pytest.raises(
        DownloadError, match=r"was cut.*100,001 bytes are kept in .*\.part; run .* again to resume"
    ):
        get(server, target)
    assert part_of(target).read_bytes() == CONTENT[:CUT]
    assert not target.exists()


def test_after_a_cut_only_the_rest_is_requested(server: Server, target: Path) -> None:
    cut_once(server, target)
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert server.requests == [(None, None), (f"bytes={CUT}-", '"first"')]
    assert leftovers(target) == ["file.zip"]


def test_cuts_add_up(server: Server, target: Path) -> None:
    server.cut_after = CUT
    for kept in (CUT, 2 * CUT, 3 * CUT):
        with pytest.raises(DownloadError):
            get(server, target)
        assert part_of(target).read_bytes() == CONTENT[:kept]
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert [asked for asked, _ in server.requests[1:]] == [
        f"bytes={kept}-" for kept in (CUT, 2 * CUT, 3 * CUT)
    ]


@pytest.mark.parametrize(
    ("etag", "last_modified", "if_range"),
    [
        ('"strong"', "Wed, 01 Jun 2022 00:00:00 GMT", '"strong"'),
        (None, "Wed, 01 Jun 2022 00:00:00 GMT", "Wed, 01 Jun 2022 00:00:00 GMT"),
        ('W/"weak"', None, None),  # RFC 9110 13.1.5 forbids it in If-Range
        (None, None, None),
    ],
)
def test_resuming_sends_the_validator_the_server_gave(
    server: Server, target: Path, etag: str | None, last_modified: str | None, if_range: str | None
) -> None:
    server.etag, server.last_modified = etag, last_modified
    cut_once(server, target)
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert server.requests[1] == (f"bytes={CUT}-", if_range)


def test_another_mirror_resumes_without_the_first_ones_validator(
    server: Server, target: Path
) -> None:
    cut_once(server, target)
    server.etag = '"mirror"'
    download(server.url + "-mirror", target, sha512=sum_of(CONTENT))
    assert target.read_bytes() == CONTENT
    assert server.requests[1] == (f"bytes={CUT}-", None)


def test_an_unreadable_note_does_not_stop_resuming(server: Server, target: Path) -> None:
    cut_once(server, target)
    target.with_name("file.zip.part.json").write_text("[not json")
    get(server, target)
    assert server.requests[1] == (f"bytes={CUT}-", None)


def test_a_server_without_ranges_starts_over(server: Server, target: Path) -> None:
    server.ranges = False
    cut_once(server, target)
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert server.requests[1][0] == f"bytes={CUT}-"
    assert len(server.requests) == 2


@pytest.mark.parametrize("heeds_if_range", [True, False])
def test_content_that_changed_meanwhile_is_not_mixed(
    server: Server, target: Path, heeds_if_range: bool
) -> None:
    cut_once(server, target)
    server.heeds_if_range = heeds_if_range
    server.content, server.etag = CONTENT[::-1], '"second"'
    get(server, target, content=CONTENT[::-1])
    assert target.read_bytes() == CONTENT[::-1]
    assert leftovers(target) == ["file.zip"]


def test_the_new_validator_replaces_the_old(server: Server, target: Path) -> None:
    cut_once(server, target)
    server.content, server.etag, server.cut_after = CONTENT[::-1], '"second"', CUT
    with pytest.raises(DownloadError):
        get(server, target, content=CONTENT[::-1])
    server.cut_after = None
    get(server, target, content=CONTENT[::-1])
    assert server.requests[1:] == [(f"bytes={CUT}-", '"first"'), (f"bytes={CUT}-", '"second"')]


def test_a_range_that_begins_elsewhere_starts_over(server: Server, target: Path) -> None:
    cut_once(server, target)
    server.shift_range = 7
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert [asked for asked, _ in server.requests] == [None, f"bytes={CUT}-", None]


def test_a_part_that_is_whole_needs_no_network(server: Server, target: Path) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(CONTENT)
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert server.requests == []
    assert leftovers(target) == ["file.zip"]


@pytest.mark.parametrize("extra", [b"", b"and more"])
def test_a_part_with_nothing_left_to_ask_for_starts_over(
    server: Server, target: Path, extra: bytes
) -> None:
    target.parent.mkdir()
    part_of(target).write_bytes(b"\0" * len(CONTENT) + extra)  # answered with 416
    get(server, target)
    assert target.read_bytes() == CONTENT
    assert [asked for asked, _ in server.requests] == [f"bytes={len(CONTENT + extra)}-", None]


def test_a_wrong_sum_deletes_the_part_and_names_both(server: Server, target: Path) -> None:
    with pytest.raises(DownloadError) as caught:
        get(server, target, content=b"what was wanted")
    assert sum_of(CONTENT)[:12] in str(caught.value)
    assert sum_of(b"what was wanted")[:12] in str(caught.value)
    assert sum_of(CONTENT) not in str(caught.value)
    assert leftovers(target) == []


def test_a_wrong_sum_leaves_an_old_target_alone(server: Server, target: Path) -> None:
    target.parent.mkdir()
    target.write_bytes(b"something old")
    with pytest.raises(DownloadError, match="SHA-512"):
        get(server, target, content=b"what was wanted")
    assert target.read_bytes() == b"something old"


def test_a_server_that_claims_too_much_is_a_cut(server: Server, target: Path) -> None:
    server.claimed_length = len(CONTENT) + 5
    with pytest.raises(DownloadError, match="was cut"):
        get(server, target)
    assert part_of(target).read_bytes() == CONTENT
    server.claimed_length = None
    get(server, target)  # the part was whole after all
    assert target.read_bytes() == CONTENT


def test_a_server_that_claims_too_little_is_not_believed(server: Server, target: Path) -> None:
    server.claimed_length = CUT
    with pytest.raises(DownloadError, match="not the expected one"):
        get(server, target)
    assert leftovers(target) == []


def test_a_range_shorter_than_asked_for_is_kept(server: Server, target: Path) -> None:
    cut_once(server, target)
    server.claimed_length = 10
    with pytest.raises(DownloadError, match=r"100,011 of 307,210 bytes.*again to resume"):
        get(server, target)
    assert part_of(target).read_bytes() == CONTENT[: CUT + 10]


@pytest.mark.parametrize(
    ("status", "words"), [(404, "404 Not Found"), (500, "500 Internal"), (202, "202 Accepted")]
)
def test_an_answer_that_is_not_the_file_is_told(
    server: Server, target: Path, status: int, words: str
) -> None:
    cut_once(server, target)
    server.status = status
    with pytest.raises(DownloadError, match=f"{words}.*100,001 bytes are kept"):
        get(server, target)
    assert part_of(target).read_bytes() == CONTENT[:CUT]
    server.status = None
    get(server, target)
    assert target.read_bytes() == CONTENT


def test_nobody_listening_asks_whether_one_is_offline(target: Path) -> None:
    with socket.socket() as reserved:  # bound but not listening: refuses
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=r"could not reach http://127.*are you offline\?"):
            download(url, target, sha512=sum_of(CONTENT))
    assert leftovers(target) == []


def test_offline_keeps_the_part(server: Server, target: Path) -> None:
    cut_once(server, target)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}/file"
        with pytest.raises(DownloadError, match=r"offline\? 100,001 bytes are kept"):
            download(url, target, sha512=sum_of(CONTENT))
    assert part_of(target).read_bytes() == CONTENT[:CUT]


def test_a_host_without_an_address_asks_whether_one_is_offline(
    target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(*args: object, **kwargs: object) -> object:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(DownloadError, match=r"could not reach .*not known.*are you offline\?"):
        download("http://nowhere.invalid/file", target, sha512=sum_of(CONTENT))


def test_silence_is_a_timeout(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[download.__module__], "TIMEOUT_S", 0.1)
    server.stall_s = 0.4
    with pytest.raises(DownloadError, match=r"sent nothing for 0\.1 seconds"):
        get(server, target)
    server.stall_s = 0.0
    get(server, target)
    assert target.read_bytes() == CONTENT


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/file", "file", "http://127.0.0.1:port/file"])
def test_an_address_that_is_not_http_is_told(target: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="is not an http or https address"):
        download(url, target, sha512=sum_of(CONTENT))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told(server: Server, target: Path) -> None:
    target.parent.mkdir()
    part_of(target).symlink_to("/dev/full")
    with pytest.raises(DownloadError, match=r"the disk of .*folder is full"):
        get(server, target)
    assert not target.exists()


def test_a_folder_that_cannot_be_made_is_told(server: Server, tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file in the way")
    with pytest.raises(DownloadError, match="could not save"):
        get(server, tmp_path / "folder" / "file.zip")


def test_without_httpx_the_message_says_what_to_install(
    server: Server, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)
    with pytest.raises(DownloadError, match="pip install httpx"):
        get(server, target)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_two_at_once_download_once(server: Server, target: Path) -> None:
    server.stall_s = 0.2  # the second comes while the first is in the body
    failures: list[Exception] = []

    def worker() -> None:
        try:
            get(server, target)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=worker) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert target.read_bytes() == CONTENT
    assert len(server.requests) == 1

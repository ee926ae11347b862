from __future__ import annotations

import gc
import hashlib
import io
import stat
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pooch
import pytest

from clusterea.data.datasets import DATASETS, Archive, Dataset, fetch, is_fetched
from clusterea.errors import DownloadError, InputError

NAME, SIBLING = "ids15k-en-fr", "ids15k-en-de"


def archive_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for name in (NAME, SIBLING):
            zipped.writestr(f"{DATASETS[name].folder}/ent_links", f"links of {name}")
        for hostile in ("../../../../escaped", "/../escaped"):
            zipped.writestr(f"{DATASETS[SIBLING].folder}/{hostile}", "escaped")
        link = zipfile.ZipInfo(f"{DATASETS[SIBLING].folder}/link")
        link.create_system, link.external_attr = 3, (stat.S_IFLNK | 0o777) << 16  # Unix
        zipped.writestr(link, "/etc/passwd")
    return buffer.getvalue()


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The paths asked for, of a server that publishes a small archive in place of OpenEA's."""
    monkeypatch.setenv("NO_PROXY", "*")
    content = archive_bytes()
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b"a mirror's mistake" if self.path == "/wrong" else content
            self.send_response(404 if self.path == "/missing" else 200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:50] if self.path == "/cut" else body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        host = f"http://127.0.0.1:{http.server_address[1]}"
        archive = Archive("small.zip", f"{host}/official", hashlib.sha512(content).hexdigest())
        for name in (NAME, SIBLING):
            known = DATASETS[name]
            small = Dataset(name, archive, known.folder, known.description)
            monkeypatch.setitem(DATASETS, name, small)
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield asked
        http.shutdown()
        thread.join()


def mirror(path: str) -> str:
    return DATASETS[NAME].archive.url.replace("/official", path)


def test_a_fetched_dataset_is_a_folder_of_its_files(served: list[str], tmp_path: Path) -> None:
    assert not is_fetched(NAME, tmp_path)
    folder = fetch(NAME, cache=tmp_path)
    assert (folder / "ent_links").read_text() == f"links of {NAME}"
    assert [path.name for path in folder.iterdir()] == ["ent_links"]
    assert is_fetched(NAME, tmp_path)
    assert served == ["/official"]


def test_a_second_fetch_needs_neither_network_nor_archive(
    served: list[str], tmp_path: Path
) -> None:
    first = fetch(NAME, cache=tmp_path)
    (tmp_path / "archives" / "small.zip").unlink()
    assert fetch(NAME, cache=tmp_path) == first
    assert len(served) == 1


def test_a_sibling_in_the_same_archive_needs_no_network(served: list[str], tmp_path: Path) -> None:
    fetch(NAME, cache=tmp_path)
    assert not is_fetched(SIBLING, tmp_path)
    folder = fetch(SIBLING, cache=tmp_path)
    assert (folder / "ent_links").read_text() == f"links of {SIBLING}"
    assert len(served) == 1


def test_an_interrupted_unpacking_is_not_a_fetched_dataset(
    served: list[str], tmp_path: Path
) -> None:
    (tmp_path / "datasets" / NAME).mkdir(parents=True)  # empty
    assert not is_fetched(NAME, tmp_path)
    assert (fetch(NAME, cache=tmp_path) / "ent_links").is_file()


def test_a_mirror_is_asked_instead(served: list[str], tmp_path: Path) -> None:
    fetch(NAME, cache=tmp_path, url=mirror("/mirror"))
    assert served == ["/mirror"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    ("path", "message"),
    [("/wrong", "SHA-512"), ("/missing", "404"), ("/cut", "could not (download|reach)")],
)
def test_a_failure_is_one_line_and_leaves_nothing(
    served: list[str], tmp_path: Path, path: str, message: str
) -> None:
    with pytest.raises(DownloadError, match=message) as raised:
        fetch(NAME, cache=tmp_path, url=mirror(path))
    assert "\n" not in str(raised.value)
    del raised
    gc.collect()  # pooch leaves the socket of a broken download to the garbage collector
    assert not is_fetched(NAME, tmp_path)
    assert not [each for each in tmp_path.rglob("*") if each.is_file()]
    fetch(NAME, cache=tmp_path)  # and the next attempt succeeds


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/x.zip", "http://no-such-host.invalid/x.zip"])
def test_offline_is_one_line(tmp_path: Path, url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        DownloadError, match=r"could not reach http://.*are you offline\?"
    ) as raised:
        fetch(NAME, cache=tmp_path, url=url)
    assert "\n" not in str(raised.value)
    assert str(tmp_path / "archives" / DATASETS[NAME].archive.name) in str(raised.value)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("url", ["ftp.example.org/x.zip", "gopher://example.org/x.zip"])
def test_an_address_that_is_not_http_is_refused(tmp_path: Path, url: str) -> None:
    with pytest.raises(DownloadError, match="could not download"):
        fetch(NAME, cache=tmp_path, url=url)


def test_a_cache_that_cannot_be_written_is_one_line(served: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DownloadError, match="could not write"):
        fetch(NAME, cache=tmp_path / "file" / "cache")


def test_a_hostile_archive_writes_nothing_elsewhere(served: list[str], tmp_path: Path) -> None:
    folder = fetch(SIBLING, cache=tmp_path / "a" / "b" / "cache")
    found = [each for each in tmp_path.rglob("*escaped*") if folder not in each.parents]
    assert not found
    assert not any(each.is_symlink() for each in folder.rglob("*"))


def test_a_damaged_archive_is_downloaded_again(served: list[str], tmp_path: Path) -> None:
    (tmp_path / "archives").mkdir()
    (tmp_path / "archives" / "small.zip").write_bytes(b"half")
    assert (fetch(NAME, cache=tmp_path) / "ent_links").is_file()
    assert len(served) == 1


def test_progress_is_passed_on(served: list[str], tmp_path: Path) -> None:
    calls: list[tuple[int, int | None]] = []
    fetch(NAME, cache=tmp_path, progress=lambda received, total: calls.append((received, total)))
    size = len(archive_bytes())
    assert calls[-1] == (size, size)
    assert [received for received, _ in calls] == sorted(received for received, _ in calls)


def test_an_unknown_name_is_told_before_anything_is_asked(
    served: list[str], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="unknown dataset 'ids15k'"):
        fetch("ids15k", cache=tmp_path)
    with pytest.raises(InputError, match="unknown dataset 'ids15k'"):
        is_fetched("ids15k", tmp_path)
    assert served == []
    assert list(tmp_path.iterdir()) == []


def test_the_environment_names_the_cache(
    served: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTEREA_CACHE", str(tmp_path / "chosen"))
    assert (tmp_path / "chosen") in fetch(NAME).parents
    assert is_fetched(NAME)
    assert not is_fetched(NAME, tmp_path / "argument")  # the argument goes first


def test_the_default_cache_is_the_users(
    served: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLUSTEREA_CACHE", "")
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / f"user-{name}")
    assert (tmp_path / "user-clusterea") in fetch(NAME).parents


def test_importing_needs_no_pooch() -> None:
    code = (
        "import sys, clusterea.data.datasets as d; d.DATASETS\n"
        "sys.exit(bool({'pooch', 'requests'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_many_at_once_get_the_same_whole_folder(served: list[str], tmp_path: Path) -> None:
    results: list[object] = []

    def worker() -> None:
        try:
            results.append(fetch(NAME, cache=tmp_path))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [tmp_path / "datasets" / NAME] * 4
    assert [path.name for path in (tmp_path / "datasets").iterdir()] == [NAME]

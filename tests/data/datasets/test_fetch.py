from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from clusterea.data.datasets import DATASETS, Archive, Dataset, fetch, is_fetched
from clusterea.errors import DownloadError, InputError

NAME, SIBLING = "ids15k-en-fr", "ids15k-en-de"


def archive_bytes() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for name in (NAME, SIBLING):
            zipped.writestr(f"{DATASETS[name].folder}/ent_links", f"links of {name}")
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
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        host = f"http://127.0.0.1:{http.server_address[1]}"
        archive = Archive(
            "small.zip", f"{host}/official", hashlib.sha512(content).hexdigest(), len(content)
        )
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


def test_a_mirror_must_have_the_same_sum(served: list[str], tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="SHA-512"):
        fetch(NAME, cache=tmp_path, url=mirror("/wrong"))
    assert not is_fetched(NAME, tmp_path)


def test_progress_is_passed_on(served: list[str], tmp_path: Path) -> None:
    calls: list[tuple[int, int | None]] = []
    fetch(NAME, cache=tmp_path, progress=lambda received, total: calls.append((received, total)))
    size = DATASETS[NAME].archive.size
    assert calls[-1] == (size, size)


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
    import platformdirs

    monkeypatch.setenv("CLUSTEREA_CACHE", "")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / f"user-{name}")
    assert (tmp_path / "user-clusterea") in fetch(NAME).parents


def test_without_platformdirs_the_message_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("CLUSTEREA_CACHE", raising=False)
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    with pytest.raises(DownloadError, match="set CLUSTEREA_CACHE"):
        is_fetched(NAME)


def test_importing_needs_neither_httpx_nor_platformdirs() -> None:
    code = (
        "import sys, clusterea.data.datasets as d; d.DATASETS\n"
        "sys.exit(bool({'httpx', 'platformdirs'} & set(sys.modules)))"
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

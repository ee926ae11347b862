from __future__ import annotations

import io
import stat
import tarfile
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clusterea.data.datasets.unpack import is_unpacked, unpack
from clusterea.errors import DownloadError

FILES = {
    "set/a/rel_triples_1": b"x\ty\tz\n" * 500,
    "set/a/folds/1/train_links": b"x\tx\n",
    "set/b/rel_triples_1": b"",
    "set/ab": b"not under set/a",
}


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.filename = name  # as it is, without ZipInfo's tidying
            zipped.writestr(info, content)
    return path


def tar_of(path: Path, files: dict[str, bytes], mode: str) -> Path:
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def tar_gz_of(path: Path, files: dict[str, bytes]) -> Path:
    return tar_of(path, files, "w:gz")


def tar_xz_of(path: Path, files: dict[str, bytes]) -> Path:
    return tar_of(path, files, "w:xz")


Packer = Callable[[Path, dict[str, bytes]], Path]
every_kind = pytest.mark.parametrize("pack", [zip_of, tar_gz_of, tar_xz_of])


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def everything(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def refused(archive: Path, tmp_path: Path) -> str:
    """The message of the refusal, after a look that it changed nothing anywhere near."""
    before = everything(tmp_path)
    with pytest.raises(DownloadError) as caught:
        unpack(archive, tmp_path / "x" / "y" / "folder")
    assert everything(tmp_path) == before
    return str(caught.value)


@every_kind
def test_every_file_arrives(pack: Packer, tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive", FILES)
    folder = tmp_path / "new" / "folder"
    assert unpack(archive, folder) == folder
    assert tree(folder) == FILES
    assert everything(tmp_path / "new")[0] == "folder"
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]


@every_kind
@pytest.mark.parametrize("under", ["set/a", "set/a/"])
def test_members_under_a_path_lose_that_path(pack: Packer, tmp_path: Path, under: str) -> None:
    folder = unpack(pack(tmp_path / "archive", FILES), tmp_path / "folder", members_under=under)
    assert tree(folder) == {
        "rel_triples_1": FILES["set/a/rel_triples_1"],
        "folds/1/train_links": FILES["set/a/folds/1/train_links"],
    }


@every_kind
@pytest.mark.parametrize("under", ["set/c", "set/ab"])
def test_no_file_under_the_path_is_told(pack: Packer, tmp_path: Path, under: str) -> None:
    archive = pack(tmp_path / "archive", FILES)
    with pytest.raises(DownloadError, match=f"holds no file under {under}"):
        unpack(archive, tmp_path / "folder", members_under=under)
    assert everything(tmp_path) == ["archive"]


@every_kind
def test_folders_may_be_members(pack: Packer, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    if pack is zip_of:
        with zipfile.ZipFile(archive, "w") as zipped:
            zipped.writestr("set/", b"")
            zipped.mkdir("set/empty")
            zipped.writestr("./set/file", b"1")
    else:
        with tarfile.open(archive, "w:gz" if pack is tar_gz_of else "w:xz") as tar:
            for name in (".", "set", "set/empty"):
                info = tarfile.TarInfo(name)
                info.type = tarfile.DIRTYPE
                tar.addfile(info)
            info = tarfile.TarInfo("./set/file")
            info.size = 1
            tar.addfile(info, io.BytesIO(b"1"))
    folder = unpack(archive, tmp_path / "folder", members_under="set")
    assert everything(folder) == ["empty", "file"]


def test_an_unpacked_folder_is_open_to_whom_a_new_one_is(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    folder = unpack(zip_of(tmp_path / "archive", FILES), tmp_path / "folder")
    assert folder.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_an_existing_folder_is_returned_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "mine").write_text("kept")
    assert unpack(zip_of(tmp_path / "archive", FILES), folder) == folder
    assert unpack(tmp_path / "no such archive", folder) == folder
    assert everything(folder) == ["mine"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert not is_unpacked(folder)
    unpack(zip_of(tmp_path / "archive", FILES), folder)
    assert tree(folder) == FILES
    assert is_unpacked(folder)


@every_kind
@pytest.mark.parametrize(
    "name",
    [
        "/etc/escaped",
        "//host/escaped",
        "../escaped",
        "../../escaped",
        "set/../../escaped",
        "set/..",
        "C:/escaped",
        "c:escaped",
        "set/C:escaped",
        "..\\escaped",
        "set\\escaped",
        "\\\\host\\escaped",
    ],
)
def test_an_escaping_member_is_named_and_nothing_is_written(
    pack: Packer, tmp_path: Path, name: str
) -> None:
    # The good members come first: they must not be written before the bad one is seen.
    archive = pack(tmp_path / "archive", {**FILES, name: b"escaped"})
    message = refused(archive, tmp_path)
    assert repr(name) in message
    assert "nothing was written" in message


@every_kind
def test_a_bad_member_outside_the_wanted_path_is_refused_too(pack: Packer, tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive", {**FILES, "../escaped": b""})
    with pytest.raises(DownloadError, match=r"'\.\./escaped' leads out"):
        unpack(archive, tmp_path / "folder", members_under="set/a")
    assert everything(tmp_path) == ["archive"]


@pytest.mark.parametrize("name", [b"\0et/file_tail", b"set/file\0tail"])
def test_a_null_byte_in_a_zip_is_refused(tmp_path: Path, name: bytes) -> None:
    archive = zip_of(tmp_path / "archive", {"set/file_tail": b"1"})
    archive.write_bytes(archive.read_bytes().replace(b"set/file_tail", name))
    assert "null byte" in refused(archive, tmp_path)


def test_a_member_that_comes_twice_is_refused(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "archive", {"set/file": b"1", "set/./file": b"2"})
    assert "'set/./file' comes twice" in refused(archive, tmp_path)


def test_a_file_that_is_also_a_folder_leaves_nothing(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "archive", {"set": b"1", "set/file": b"2"})
    folder = tmp_path / "folder"
    with pytest.raises(DownloadError, match="could not unpack"):
        unpack(archive, folder)
    assert everything(tmp_path) == ["archive"]


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO])
def test_a_link_or_device_in_a_zip_is_refused(tmp_path: Path, kind: int) -> None:
    archive = tmp_path / "archive"
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("set/file", b"1")
        info = zipfile.ZipInfo("set/special")
        info.create_system = 3  # Unix
        info.external_attr = (kind | 0o777) << 16
        zipped.writestr(info, b"/etc/passwd")
    assert "'set/special' is a link or a device" in refused(archive, tmp_path)


@pytest.mark.parametrize(
    "kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
)
def test_a_link_or_device_in_a_tar_is_refused(tmp_path: Path, kind: bytes) -> None:
    archive = tmp_path / "archive"
    with tarfile.open(archive, "w:gz") as tar:
        info = tarfile.TarInfo("set/special")
        info.type = kind
        info.linkname = "file"  # even a link that stays inside
        tar.addfile(info)
    assert "'set/special' is a link or a device" in refused(archive, tmp_path)


@every_kind
def test_a_truncated_archive_is_broken(pack: Packer, tmp_path: Path) -> None:
    archive = pack(tmp_path / "archive", FILES)
    whole = archive.read_bytes()
    for length in (7, len(whole) // 2, len(whole) - 1):
        archive.write_bytes(whole[:length])
        assert "is broken" in refused(archive, tmp_path)


@pytest.mark.parametrize("content", [b"", b"<html>Sign in to the hotel</html>"])
def test_what_is_no_archive_is_told(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "archive"
    archive.write_bytes(content)
    assert "is not a zip, tar.gz or tar.xz file" in refused(archive, tmp_path)


def test_an_archive_without_files_is_told(tmp_path: Path) -> None:
    assert "holds no file;" in refused(zip_of(tmp_path / "archive", {}), tmp_path)


def test_a_missing_archive_is_told(tmp_path: Path) -> None:
    assert "No such file" in refused(tmp_path / "archive", tmp_path)


def test_an_encrypted_zip_is_told(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "archive", {"file": b"1"})
    with zipfile.ZipFile(archive) as zipped:
        offset = zipped.start_dir
    content = bytearray(archive.read_bytes())
    content[6] |= 1  # the flags in the local header, and in the directory
    content[offset + 8] |= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(DownloadError, match="encrypted"):
        unpack(archive, tmp_path / "folder")
    assert everything(tmp_path) == ["archive"]


@every_kind
def test_a_flipped_bit_in_the_content_is_seen(pack: Packer, tmp_path: Path) -> None:
    noise = bytes((37 * i * i + 11 * i) % 251 for i in range(4000))
    archive = pack(tmp_path / "archive", {"set/file": noise})
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(bytes(content))
    with pytest.raises(DownloadError, match="is broken"):
        unpack(archive, tmp_path / "folder")
    assert everything(tmp_path) == ["archive"]


@every_kind
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_damage_leaves_all_or_nothing(
    pack: Packer, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    tmp_path = tmp_path_factory.mktemp("damage")
    archive = pack(tmp_path / "archive", FILES)
    content = bytearray(archive.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    archive.write_bytes(bytes(content))
    folder = tmp_path / "folder"
    try:
        unpack(archive, folder)
    except DownloadError:
        assert everything(tmp_path) == ["archive"]
    else:
        assert [path.name for path in tmp_path.iterdir() if path != archive] == ["folder"]
        assert set(tree(folder).values()) <= set(FILES.values())  # names and dates have no sum


def test_many_at_once_end_with_one_whole_folder(tmp_path: Path) -> None:
    archive = zip_of(tmp_path / "archive", FILES)
    folder = tmp_path / "sets" / "folder"
    start = threading.Barrier(6)
    results: list[object] = []

    def worker() -> None:
        start.wait()
        try:
            results.append(unpack(archive, folder))
        except Exception as error:
            results.append(error)

    threads = [threading.Thread(target=worker) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [folder] * 6
    assert tree(folder) == FILES
    assert [path.name for path in folder.parent.iterdir()] == ["folder"]

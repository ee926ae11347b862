"""Outputs: regular files replaced whole, symlinks followed, streams written into."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from clusterea.errors import DataError
from clusterea.files import replacing

TEXT = b"source\ttarget\n"


def write(path: Path, content: bytes = TEXT) -> None:
    with replacing(path) as beside:
        beside.write_bytes(content)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class TestSymlinks:
    def test_the_target_is_replaced_and_the_link_stays(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere/file").write_bytes(b"before")
        (tmp_path / "middle").symlink_to("elsewhere/file")
        (tmp_path / "link").symlink_to(tmp_path / "middle")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "middle").is_symlink()
        assert (tmp_path / "elsewhere/file").read_bytes() == TEXT
        assert names(tmp_path / "elsewhere") == ["file"]

    def test_a_link_to_nothing_gets_its_target(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("deep/file")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "deep/file").read_bytes() == TEXT

    def test_a_loop_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "one").symlink_to("other")
        (tmp_path / "other").symlink_to("one")
        with pytest.raises(DataError, match="one: can't be written: Too many levels"):
            write(tmp_path / "one")
        assert names(tmp_path) == ["one", "other"]


class TestStreams:
    @pytest.mark.parametrize("linked", [False, True])
    def test_a_fifo_gets_the_bytes_and_stays(self, linked: bool, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "link").symlink_to("pipe")
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
        reader.start()
        write(tmp_path / ("link" if linked else "pipe"), TEXT * 100_000)
        reader.join(timeout=20)
        assert read == [TEXT * 100_000]
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        assert names(tmp_path) == ["link", "pipe"]

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a device")
    def test_a_device_stays_a_device(self, tmp_path: Path) -> None:
        device = tmp_path / "null"
        try:
            os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
            with device.open("wb"):
                pass
        except PermissionError:
            pytest.skip("no devices may be made here")
        write(device)
        assert stat.S_ISCHR(device.stat().st_mode)
        assert device.stat().st_rdev == os.makedev(1, 3)

    def test_a_terminal_shows_it(self) -> None:
        control, terminal = os.openpty()
        try:
            path = Path(os.ttyname(terminal))
            write(path, b"shown\n")
            assert os.read(control, 100) == b"shown\r\n"
            assert stat.S_ISCHR(path.stat().st_mode)
        finally:
            os.close(control)
            os.close(terminal)

    def test_an_open_descriptor_is_written_where_it_stands(self, tmp_path: Path) -> None:
        with (tmp_path / "log").open("wb", buffering=0) as log:
            log.write(b"before\n")
            write(Path(f"/proc/self/fd/{log.fileno()}"))
            write(Path(f"/dev/fd/{log.fileno()}"))
            log.write(b"after\n")
        assert (tmp_path / "log").read_bytes() == b"before\n" + TEXT + TEXT + b"after\n"
        assert names(tmp_path) == ["log"]

    def test_a_socket_is_refused_and_stays(self, tmp_path: Path) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(tmp_path / "socket"))
            with pytest.raises(DataError, match="socket: can't be written"):
                write(tmp_path / "socket")
            assert (tmp_path / "socket").is_socket()

    def test_nothing_is_sent_if_writing_fails(self, tmp_path: Path) -> None:
        with (tmp_path / "log").open("wb") as log:
            path = Path(f"/proc/self/fd/{log.fileno()}")
            with pytest.raises(RuntimeError), replacing(path) as beside:
                beside.write_bytes(b"half")
                raise RuntimeError
        assert (tmp_path / "log").read_bytes() == b""


class TestStandardOutput:
    def test_a_dash(self, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
        write(Path("-"))
        assert capfdbinary.readouterr().out == TEXT
        assert not Path("-").exists()

    def test_a_stand_in_without_a_descriptor(self, capsys: pytest.CaptureFixture[str]) -> None:
        write(Path("-"))
        assert capsys.readouterr().out == TEXT.decode()

    def test_a_reader_that_has_gone(self) -> None:
        code = (
            "from pathlib import Path; from clusterea.files import replacing\n"
            "try:\n"
            "    with replacing(Path('-')) as beside: beside.write_bytes(b'x' * 1_000_000)\n"
            "except BrokenPipeError: raise SystemExit(7)"
        )
        reader, writer = os.pipe()
        os.close(reader)
        ran = subprocess.run(
            [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False
        )
        os.close(writer)
        assert (ran.returncode, ran.stderr) == (7, b"")


def test_a_folder_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="folder: can't be written: Is a directory"):
        write(tmp_path / "folder")
    assert names(tmp_path) == ["folder"]


def test_a_full_device_is_no_full_disk(tmp_path: Path) -> None:
    full = tmp_path / "full"
    try:
        os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
        full.open("wb").close()
    except PermissionError:
        pytest.skip("making a device needs rights that this user has not")
    with pytest.raises(DataError) as raised, replacing(full) as beside:
        beside.write_bytes(b"links")
    assert str(raised.value) == f"{full}: can't be written: No space left on device."
    assert full.is_char_device()

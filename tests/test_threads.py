"""Threads: how many, how they wait, and who decides."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import clusterea
from clusterea import threads
from clusterea.library import _within_quota
from clusterea.threads import COUNTS, WAITING, are_excessive, available_cpus, cpu_quota

NO_LIMIT = float("inf")


def quota(place: Path, groups: str, files: dict[str, str]) -> float:
    """The quota of a process in these control groups, whose files are below a temporary folder."""
    own, mount = place / "cgroup", place / "mount"
    own.write_text(groups)
    for name, text in files.items():
        path = mount / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return cpu_quota(str(own), str(mount))


class TestQuota:
    @pytest.mark.parametrize(
        ("text", "cpus"),
        [
            ("150000 100000\n", 1.5),
            ("max 100000\n", NO_LIMIT),
            ("50000 100000\n", 0.5),
            ("200000 50000\n", 4.0),
            ("", NO_LIMIT),
            ("nonsense\n", NO_LIMIT),
            ("100000 0\n", NO_LIMIT),
        ],
    )
    def test_version_2(self, text: str, cpus: float, tmp_path: Path) -> None:
        assert quota(tmp_path, "0::/jobs/one\n", {"jobs/one/cpu.max": text}) == cpus

    @pytest.mark.parametrize(
        ("files", "cpus"),
        [
            ({"cpu.cfs_quota_us": "300000\n", "cpu.cfs_period_us": "100000\n"}, 3.0),
            ({"cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n"}, NO_LIMIT),
            ({"cpu.cfs_quota_us": "300000\n"}, NO_LIMIT),
            ({}, NO_LIMIT),
        ],
    )
    def test_version_1(self, files: dict[str, str], cpus: float, tmp_path: Path) -> None:
        groups = "5:memory:/jobs/two\n3:cpu,cpuacct:/jobs/one\n0::/\n"
        files = {f"cpu/jobs/one/{name}": text for name, text in files.items()}
        files |= {"memory/jobs/two/cpu.cfs_quota_us": "1", "memory/jobs/two/cpu.cfs_period_us": "1"}
        assert quota(tmp_path, groups, files) == cpus

    def test_the_lowest_limit_on_the_path_counts(self, tmp_path: Path) -> None:
        files = {
            "a/b/c/cpu.max": "400000 100000",
            "a/b/cpu.max": "200000 100000",
            "a/cpu.max": "max 100000",
            "a/other/cpu.max": "100000 100000",  # not on the path
        }
        assert quota(tmp_path, "0::/a/b/c\n", files) == 2.0

    def test_a_container_that_sees_only_its_own_group(self, tmp_path: Path) -> None:
        files = {"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}
        assert quota(tmp_path, "4:cpuacct,cpu:/docker/0123\n", files) == 2.0
        assert quota(tmp_path, "0::/\n", {"cpu.max": "100000 100000"}) == 1.0

    def test_a_name_with_a_colon_or_odd_bytes(self, tmp_path: Path) -> None:
        assert quota(tmp_path, "0::/a:b\n", {"a:b/cpu.max": "100000 100000"}) == 1.0
        (tmp_path / "cgroup").write_bytes(b"0::/\xff\n")
        assert cpu_quota(str(tmp_path / "cgroup"), str(tmp_path / "mount")) == NO_LIMIT

    def test_without_control_groups(self, tmp_path: Path) -> None:
        assert cpu_quota(str(tmp_path / "none"), str(tmp_path)) == NO_LIMIT


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Eight CPUs on four cores, a quota of 1.5, and no variable set."""
    for name in (*COUNTS, *WAITING):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(threads, "_own_cpus", lambda: set(range(8)))
    monkeypatch.setattr(threads, "_num_cores", lambda cpus: len(cpus) // 2)
    monkeypatch.setattr(threads, "cpu_quota", lambda: 1.5)
    return monkeypatch


class TestDefaults:
    @pytest.fixture(autouse=True)
    def without_torch(self, machine: pytest.MonkeyPatch) -> None:
        machine.delitem(sys.modules, "torch", raising=False)

    def test_a_quota_is_rounded_up(self) -> None:
        assert available_cpus() == 2
        threads.set_thread_defaults()
        assert os.environ["OMP_NUM_THREADS"] == "2"
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"
        assert os.environ["GOMP_SPINCOUNT"] == threads.SPINS

    @pytest.mark.parametrize(("given", "cpus"), [(0.1, 1), (1.0, 1), (7.01, 8), (8.0, 8), (64, 8)])
    def test_at_least_one_and_at_most_those_there_are(
        self, given: float, cpus: int, machine: pytest.MonkeyPatch
    ) -> None:
        machine.setattr(threads, "cpu_quota", lambda: given)
        assert available_cpus() == cpus

    def test_without_a_quota_the_libraries_count(self, machine: pytest.MonkeyPatch) -> None:
        machine.setattr(threads, "cpu_quota", lambda: NO_LIMIT)
        threads.set_thread_defaults()
        assert "OMP_NUM_THREADS" not in os.environ

    @pytest.mark.parametrize("name", COUNTS)
    def test_a_number_that_the_user_set_stays(self, name: str, machine: pytest.MonkeyPatch) -> None:
        machine.setenv(name, "5")
        threads.set_thread_defaults()
        assert {each: os.environ.get(each) for each in COUNTS} == {
            each: "5" if each == name else None for each in COUNTS
        }
        assert os.environ["OMP_WAIT_POLICY"] == "PASSIVE"

    @pytest.mark.parametrize("name", WAITING)
    def test_a_way_to_wait_that_the_user_set_stays(
        self, name: str, machine: pytest.MonkeyPatch
    ) -> None:
        machine.setenv(name, "ACTIVE")
        threads.set_thread_defaults()
        assert [each for each in WAITING if each in os.environ] == [name]
        assert os.environ[name] == "ACTIVE"
        assert os.environ["OMP_NUM_THREADS"] == "2"

    def test_if_torch_is_loaded_it_is_too_late(self, machine: pytest.MonkeyPatch) -> None:
        machine.setitem(sys.modules, "torch", os)
        threads.set_thread_defaults()
        assert not {*COUNTS, *WAITING} & {*os.environ}


class TestTorchThatWasLoadedBefore:
    @pytest.mark.parametrize("number", [4, 8])  # of cores, of CPUs
    def test_its_default_is_lowered_for_the_call(
        self, number: int, machine: pytest.MonkeyPatch
    ) -> None:
        torch = Torch(number)
        machine.setitem(sys.modules, "torch", torch)
        with pytest.raises(ZeroDivisionError), _within_quota():
            assert torch.threads == 2
            raise ZeroDivisionError
        assert torch.threads == number

    def test_a_number_that_the_user_chose_stays(self, machine: pytest.MonkeyPatch) -> None:
        torch = Torch(3)
        machine.setitem(sys.modules, "torch", torch)
        with _within_quota():
            assert torch.threads == 3
        assert not are_excessive(1)
        machine.setenv("OMP_NUM_THREADS", "8")
        assert not are_excessive(8)

    def test_without_a_quota_nothing_is_lowered(self, machine: pytest.MonkeyPatch) -> None:
        machine.setattr(threads, "cpu_quota", lambda: NO_LIMIT)
        assert not are_excessive(8)


class Torch:
    """A library that has threads, without starting them."""

    def __init__(self, number: int) -> None:
        self.threads = number

    def get_num_threads(self) -> int:
        return self.threads

    def set_num_threads(self, number: int) -> None:
        self.threads = number


# Prints the variables when torch is looked for, and ends there.
AT_TORCH = """
import os, sys
class Watching:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            print(os.environ.get("OMP_WAIT_POLICY"), os.environ.get("OMP_NUM_THREADS"))
            sys.stdout.flush()
            os._exit(0)
sys.meta_path.insert(0, Watching())
{code}
"""
LIBRARY = "import clusterea; clusterea.align({pair!r}, device='cpu')"
MODULE = "import clusterea.numerics.sinkhorn"
COMMAND = "from clusterea.entry import main; main()"


def pair_in(folder: Path) -> Path:
    for name, text in (
        *(("rel_triples_1", "a\tr\tb\n"), ("rel_triples_2", "x\ts\ty\n")),
        ("ent_links", "a\tx\n"),
    ):
        (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("given", [None, "ACTIVE"])
@pytest.mark.parametrize("code", [LIBRARY, MODULE, COMMAND], ids=["library", "module", "command"])
def test_variables_are_set_before_torch_is_loaded(
    code: str, given: str | None, tmp_path: Path
) -> None:
    pair = str(pair_in(tmp_path))
    environment = {name: value for name, value in os.environ.items() if name not in WAITING}
    environment |= {"OMP_NUM_THREADS": "1"} | ({} if given is None else {"OMP_WAIT_POLICY": given})
    ran = subprocess.run(
        [
            *(sys.executable, "-c", AT_TORCH.format(code=code.format(pair=pair))),
            *("align", pair, "--out", str(tmp_path / "run"), "--preset", "fast"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == f"{given or 'PASSIVE'} 1\n"


def test_the_openmp_of_torch_reads_them() -> None:
    """libgomp shows its settings when it is loaded: threads that wait spin for a short time."""
    environment = {name: value for name, value in os.environ.items() if name not in WAITING}
    ran = subprocess.run(
        [sys.executable, "-c", "import clusterea, torch"],
        capture_output=True,
        text=True,
        check=True,
        env=environment | {"OMP_DISPLAY_ENV": "VERBOSE"},
    )
    if "GOMP_SPINCOUNT" not in ran.stderr:
        pytest.skip("torch has another OpenMP than libgomp")
    assert "OMP_WAIT_POLICY = 'PASSIVE'" in ran.stderr
    assert f"GOMP_SPINCOUNT = '{threads.SPINS}'" in ran.stderr


def test_importing_the_package_reads_no_more_than_it_needs() -> None:
    """A signal that comes before it is handled prints a traceback, so this must be quick."""
    code = "import sys; before = {*sys.modules}; import clusterea; print({*sys.modules} - before)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    own = {"clusterea", "clusterea.threads", "clusterea.version", "__future__"}
    assert eval(ran.stdout) <= own
    assert clusterea.__version__

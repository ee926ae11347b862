"""One alignment on several processes and nodes: the same bytes, its cost, and what may fail.

    .venv/bin/python benchmarks/cluster.py ROW … [--pairs demo 150000] [--data FOLDER] [--missing]
    .venv/bin/python benchmarks/cluster.py           # the bars by the records; runs nothing

Rows and their bars, for two cores:

- `short`: a part of the first two rows below, for a test
- `bytes`: `alignment.tsv` and the similarity are the same with 1, 2, 8 and 32 shards, on the
  engines `local` and `ray`; the same with the approximate search of large pairs
- `kills`: the same after a worker was killed in each stage, and after one of three nodes was; at
  most 1.5 times the seconds of a run in peace
- `spill`: the same where each node has 0.4 GB of shared memory; at most 2.5 times the seconds
- `driver`: the same after the command was killed and repeated; no stage runs twice
- `cost`: CPU seconds of all processes are at most 1.5 times those of one process with 4 shards, 1.7
  times with 8; private memory of the largest worker, above that of an idle one, with 8 shards at
  most 0.35 times that with 2; private memory of the driver at most 1 GB
- `size`: `--pairs 1500000 3000000` on Ray within 24 GiB in all

A pair is `demo`, a number of entities (a generated pair of DBP1M's shape) or a folder in `--data`.
All runs have the preset `fast` and one thread per process. They are in a network that has only
loopback. Where a run kills something, it does so when it sees a worker in a unit of that stage.

Private memory is anonymous memory. All memory is that of all processes, with the shared memory of
Ray once; files that are mapped into memory don't count. Bars on seconds and memory are those of the
pair with 150,000 entities. A run replaces its record.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import torch

from clusterea.data.synthetic import SHAPES, generate, write_openea
from common import (
    RESULTS,
    SEEDS_SHARE,
    Record,
    commit,
    costs,
    device_name,
    put_record,
    read_records,
    scaled,
    table,
)

OWN_NETWORK = Path(__file__).parents[1] / "tests/engines/own_network.py"
MARK = "CLUSTEREA_CLUSTER_BENCHMARK"  # in the environment of all processes that are watched
LARGE = "150000"  # entities of the pair whose seconds and memory count
STORE = 2 * 10**9  # bytes of shared memory of each node of a cluster
SMALL_STORE = 4 * 10**8
LISTS = "fusion.search=approximate"
UNITS = {  # those by which the stage of a worker is told
    "propagation": ("spread", "sketched"),
    "search": ("_best_of_shard", "searched"),
    "sinkhorn": ("new_potentials", "row_sums", "column_sums"),
    "support": ("with_evidence", "kinds_met"),
}
SERVICES = ("SpillWorker", "RestoreWorker", "Agent")  # workers of Ray that run no units
TICKS = os.sysconf("SC_CLK_TCK")
IDLE = """
import ray

@ray.remote
def status():
    import torch, clusterea.sharded
    return open("/proc/self/status").read()

ray.init(num_cpus=1, include_dashboard=False, object_store_memory=10**8, log_to_driver=False)
print(ray.get(status.remote()))
"""


# ---- what is run


@dataclass(frozen=True, slots=True)
class Run:
    """One command."""

    pair: str
    engine: str = "local"
    shards: int | None = None
    nodes: int = 0  # of a cluster that is there before; 0: the command starts Ray
    store: int | None = None  # bytes of shared memory of each of its nodes
    lost: str | None = None  # "worker in search": what is killed, and in which stage
    settings: str = ""  # STAGE.FIELD=V

    @property
    def name(self) -> str:
        """What a reader calls it."""
        shards = f", {self.shards} shards" if self.shards else ""
        nodes = f", {self.nodes} node{'s' * (self.nodes > 1)}" if self.nodes else ""
        store = f", a store of {self.store / 1e9:.1f} GB" if self.store else ""
        lost = f", {self.lost} killed" if self.lost else ""
        settings = f", {self.settings}" if self.settings else ""
        return f"{self.pair}: {self.engine}{shards}{nodes}{store}{lost}{settings}"

    @classmethod
    def of(cls, record: Record) -> Run:
        """That of a record."""
        return cls(**{name: record[name] for name in IDENTITY})


IDENTITY = tuple(each.name for each in fields(Run))
Rows = dict[str, Callable[[str], list[Run]]]


def _bytes(pair: str) -> list[Run]:
    every = [Run(pair, engine, shards) for shards in (2, 8, 32) for engine in ("local", "ray")]
    lists = [Run(pair, settings=LISTS), Run(pair, "ray", 8, settings=LISTS)]
    return [Run(pair), *every, *lists]


def _short(pair: str) -> list[Run]:
    one = Run(pair, "ray", 8)
    return [Run(pair), one, replace(one, lost="worker in search")]


def _kills(pair: str) -> list[Run]:
    one, three = Run(pair, "ray", 8), Run(pair, "ray", 8, 3)
    killed = [replace(one, lost=f"worker in {stage}") for stage in UNITS]
    return [Run(pair), one, *killed, three, replace(three, lost="node in search")]


def _spill(pair: str) -> list[Run]:
    one = Run(pair, "ray", 8, 1)
    return [Run(pair), one, replace(one, store=SMALL_STORE)]


def _driver(pair: str) -> list[Run]:
    return [Run(pair), Run(pair, "ray", 8, lost="driver in search")]


def _cost(pair: str) -> list[Run]:
    return [Run(pair), *(Run(pair, "ray", shards) for shards in (2, 4, 8))]


def _size(pair: str) -> list[Run]:
    return [Run(pair, "ray")]


ROWS: Rows = {
    "short": _short,
    "bytes": _bytes,
    "kills": _kills,
    "spill": _spill,
    "driver": _driver,
    "cost": _cost,
    "size": _size,
}


# ---- processes


@dataclass(slots=True)
class Process:
    """A process that was seen."""

    kind: str = "service"
    cpu: float = 0.0  # seconds
    private: int = 0  # bytes, now
    peak: int = 0  # bytes
    unit: str = ""  # that it runs
    units: dict[str, float] = field(default_factory=dict)  # CPU seconds of each
    peaks: dict[str, float] = field(default_factory=dict)  # bytes in each

    def look(self, folder: Path, driver: int) -> None:
        """Takes the figures from `/proc`."""
        numbers = (folder / "stat").read_text().rpartition(")")[2].split()
        spent = (int(numbers[11]) + int(numbers[12])) / TICKS
        title = (folder / "cmdline").read_bytes().split(b"\0")[0].decode()
        if int(folder.name) == driver:
            self.kind = "driver"
        elif title.startswith("ray::") and not any(each in title for each in SERVICES):
            self.kind, self.unit = "worker", title.removeprefix("ray::")
            self.units[self.unit] = self.units.get(self.unit, 0) + spent - self.cpu
        self.cpu = spent
        self.private = private_bytes((folder / "status").read_text())
        self.peak = max(self.peak, self.private)
        if self.unit:
            self.peaks[self.unit] = max(self.peaks.get(self.unit, 0), self.private)


def private_bytes(status: str) -> int:
    """Anonymous memory, by the text of `/proc/PID/status`."""
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return 0


class Watch(threading.Thread):
    """Looks at all processes of a run, ten times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.driver = 0
        self.processes: dict[str, Process] = {}
        self._shared = self.most = self.most_shared = (
            0  # bytes of all processes together, and of Ray's store
        )
        self.kill: Callable[[], bool] | None = None  # called until it returns True
        self._mark = f"{MARK}={os.environ[MARK]}".encode()
        self._others: set[str] = set()
        self._ended = threading.Event()

    def run(self) -> None:
        last = 0.0
        while not self._ended.wait(0.02 if self.kill else 0.1):
            self.look()
            if self.kill is not None and self.kill():
                self.kill = None
            if time.monotonic() - last > 1:
                last = time.monotonic()
                self._shared = sum(map(store_bytes, list(self.processes)))
                self.most_shared = max(self.most_shared, self._shared)
            private = sum(each.private for each in self.processes.values())
            self.most = max(self.most, private + self._shared)

    def end(self) -> None:
        self._ended.set()
        self.join()

    def look(self) -> None:
        """Takes the figures of all processes that live."""
        living = {each.name for each in Path("/proc").glob("[0-9]*")}
        for name in living - self._others:
            folder = Path("/proc", name)
            with suppress(OSError, IndexError):  # it has ended
                if name not in self.processes:
                    environment = (folder / "environ").read_bytes()
                    if not environment:  # of the system, or about to begin another program
                        continue
                    if self._mark not in environment or int(name) == os.getpid():
                        self._others.add(name)
                        continue
                    self.processes[name] = Process()
                self.processes[name].look(folder, self.driver)
        for name in self.processes.keys() - living:
            self.processes[name].private = 0
            self.processes[name].unit = ""

    def in_stage(self, stage: str) -> list[int]:
        """The workers that run a unit of a stage."""
        return [int(name) for name, each in self.processes.items() if each.unit in UNITS[stage]]

    def of(self, kind: str) -> list[Process]:
        return [each for each in self.processes.values() if each.kind == kind]


def store_bytes(process: str) -> int:
    """Shared memory in use by Ray's store, if this is the process that has it."""
    folder = Path("/proc", process)
    with suppress(OSError):
        if b"raylet" not in (folder / "cmdline").read_bytes().split(b"\0")[0]:
            return 0
        found = {}
        for each in (folder / "fd").iterdir():
            with suppress(OSError):
                if "/plasma" in str(each.readlink()):
                    status = each.stat()
                    found[status.st_ino] = status.st_blocks * 512
        return sum(found.values())
    return 0


def wait_for_end(watch: Watch) -> None:
    """Until no process of the run lives; then ends those that do, one by one."""
    for _ in range(100):
        watch.look()
        if not (living := [name for name in watch.processes if Path("/proc", name).exists()]):
            return
        time.sleep(0.1)
    for name in living:
        with suppress(ProcessLookupError):
            os.kill(int(name), signal.SIGKILL)


# ---- a run


@contextmanager
def cluster(run: Run) -> Iterator[tuple[str | None, Callable[[], None]]]:
    """The address of a cluster for a run, and what ends one of its nodes."""
    if not run.nodes:
        yield None, lambda: None
        return
    from ray.cluster_utils import Cluster

    store = run.store or STORE
    nodes: Any = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
    )
    try:
        others = [
            nodes.add_node(
                num_cpus=1 if run.nodes > 1 else 2,
                object_store_memory=store,
                node_ip_address=f"127.0.0.{2 + number}",
            )
            for number in range(run.nodes)
        ]
        yield nodes.address, lambda: nodes.remove_node(others[-1], allow_graceful=False)
    finally:
        nodes.shutdown()


def asked(run: Run, pair: Path, out: Path, address: str | None) -> list[str]:
    """The command line."""
    command = [sys.executable, "-m", "clusterea", "align", str(pair), "--split", "first"]
    command += ["--seeds-share", str(SEEDS_SHARE), "--preset", "fast", "--device", "cpu"]
    command += ["--quiet", "--out", str(out), "--engine", run.engine]
    command += [] if run.shards is None else ["--shards", str(run.shards)]
    command += [] if address is None else ["--address", address]
    return [*command, "--set", run.settings] if run.settings else command


def killer(watch: Watch, lost: str, end_node: Callable[[], None]) -> Callable[[], bool]:
    """What kills a process or a node, as soon as a worker is in the stage."""
    what, stage = lost.split(" in ")

    def attempt() -> bool:
        found = watch.in_stage(stage)
        if not found:
            return False
        if what == "node":
            end_node()
        else:
            with suppress(ProcessLookupError):
                os.kill(watch.driver if what == "driver" else found[0], signal.SIGKILL)
        return True

    return attempt


def measure(run: Run, pair: Path, scratch: Path) -> Record:
    """The record of a run. If its driver is killed, it is that of the command that is repeated."""
    out = scratch / "run"
    shutil.rmtree(out, ignore_errors=True)
    with ExitStack() as stack:
        address, end_node = stack.enter_context(cluster(run))
        watch = Watch()
        if run.lost:
            watch.kill = killer(watch, run.lost, end_node)
        command = asked(run, pair, out, address)
        code, seconds = ran(command, watch)
        is_lost = run.lost is None or watch.kill is None
        if code and run.lost and run.lost.startswith("driver"):
            wait_for_end(watch)
            watch = Watch()
            code, seconds = ran(command, watch)
    wait_for_end(watch)
    if code or not is_lost:
        raise SystemExit(f"{run.name}: exit code {code}, killed: {is_lost}.")
    found = json.loads((out / "run.json").read_text())
    metrics = json.loads((out / "metrics.json").read_text())
    return {
        **asdict(run),
        "seconds": seconds,
        "cpu_seconds": sum(each.cpu for each in watch.processes.values()),
        "cpu_of": {
            f"{kind}s": sum(each.cpu for each in watch.of(kind))
            for kind in ("driver", "worker", "service")
        },
        "cpu_of_units": of_units((each.units for each in watch.of("worker")), sum),
        "bytes_of_units": of_units((each.peaks for each in watch.of("worker")), max),
        "driver_bytes": max(each.peak for each in watch.of("driver")),
        "worker_bytes": max((each.peak for each in watch.of("worker")), default=None),
        "idle_bytes": idle_bytes() if run.engine == "ray" else None,
        "store_bytes": watch.most_shared or None,
        "all_bytes": watch.most,
        "stages": costs(found["stages"])["stages"],
        "reused": [each["stage"] for each in found["stages"] if each["reused"]],
        "entities": found["data"]["entities"],
        "triples": found["data"]["triples"],
        "seeds": found["data"]["seeds"],
        "links": found["links"],
        "hits@1": metrics["test_candidates"]["source_to_target"]["hits@1"],
        "alignment": digest([out / "alignment.tsv"]),
        "similarity": digest(sorted(out.glob("fuse-*/tensors.safetensors"))),
        "device": device_name(torch.device("cpu")),
        "commit": commit(),
    }


def of_units(
    workers: Iterable[dict[str, float]], joined: Callable[[list[float]], float]
) -> dict[str, float]:
    """The figures of each kind of unit, joined over the workers; the largest first."""
    every = list(workers)
    names = dict.fromkeys(name for each in every for name in each)
    found = {name: joined([each.get(name, 0) for each in every]) for name in names}
    return dict(sorted(found.items(), key=lambda each: -each[1]))


def ran(command: Sequence[str], watch: Watch) -> tuple[int, float]:
    """The exit code and the seconds of a command."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        watch.driver = process.pid
        watch.start()
        code = process.wait()
    seconds = time.perf_counter() - start
    watch.end()
    return code, seconds


def digest(files: Iterable[Path]) -> str:
    """Twelve digits that tell the files' bytes."""
    found = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:12]


def idle_bytes() -> int:
    """Private memory of a worker that has imported what units need, and run nothing."""
    done = subprocess.run([sys.executable, "-c", IDLE], check=True, capture_output=True, text=True)
    return private_bytes(done.stdout)


def write_pair(name: str, data: Path | None, scratch: Path) -> Path:
    """The folder of a pair, generated if it is not in `data`."""
    if data is not None and (data / name).is_dir():
        return data / name
    if not (name == "demo" or name.isdigit()):
        raise SystemExit(f"{name}: --data must name the folder that holds it.")
    folder = scratch / f"pair-{name}"
    if not folder.exists():
        write_openea(generate(scaled(int(name)) if name.isdigit() else SHAPES[name], 0), folder)
    return folder


# ---- bars

Bar = tuple[str, float | None, float]  # what, its value (None: not measured), the most it may be


def bars(records: Sequence[Record]) -> Iterator[Bar]:
    """Each bar. That on bytes counts the runs that differ from one process with one shard."""
    by_run = {Run.of(each): each for each in records}
    for alone in [run for run in by_run if run == Run(run.pair, settings=run.settings)]:
        wanted = alone.pair, alone.settings
        others = [run for run in by_run if (run.pair, run.settings) == wanted and run != alone]
        what = f"{alone.name}: of {len(others)} other runs, those with other bytes"
        yield what, sum(not is_same(by_run[run], by_run[alone]) for run in others), 0
    for run, record in by_run.items():
        if run.lost and run.lost.startswith("driver"):
            yield (
                f"{run.name}: stages that run twice",
                int("propagation" not in record["reused"]),
                0,
            )
    yield from _large_bars(by_run)
    for run, record in by_run.items():
        if run in _size(run.pair):
            yield f"{run.name}: GiB in all", record["all_bytes"] / 2**30, 24


def is_same(one: Record, other: Record) -> bool:
    """Whether two runs have the same bytes."""
    return all(one[name] == other[name] for name in ("alignment", "similarity"))


def _large_bars(by_run: dict[Run, Record]) -> Iterator[Bar]:
    """Those on seconds and memory."""
    alone, eight, two = Run(LARGE), Run(LARGE, "ray", 8), Run(LARGE, "ray", 2)

    def ratio(run: Run, to: Run, name: str) -> float | None:
        if run not in by_run or to not in by_run:
            return None
        return float(by_run[run][name] / by_run[to][name])

    for run in by_run:
        in_peace = replace(run, lost=None, store=None)
        is_killed = run.lost is not None and not run.lost.startswith("driver")
        if run.pair == LARGE and (is_killed or run.store):
            most = 1.5 if is_killed else 2.5
            yield f"{run.name}: times the seconds", ratio(run, in_peace, "seconds"), most
    for shards, most in ((4, 1.5), (8, 1.7)):
        run = Run(LARGE, "ray", shards)
        yield f"{run.name}: times the CPU seconds", ratio(run, alone, "cpu_seconds"), most
    if eight in by_run and two in by_run:
        above = [by_run[run]["worker_bytes"] - by_run[run]["idle_bytes"] for run in (eight, two)]
        yield f"{eight.name}: times the memory of a worker", above[0] / above[1], 0.35
        driver = max(by_run[run]["driver_bytes"] for run in (eight, two))
        yield f"{LARGE}: ray: GB of the driver", driver / 1e9, 1


def cost_table(records: Sequence[Record]) -> list[str]:
    """A line for each run of the large pair."""
    by_run = {Run.of(each): each for each in records if each["pair"] == LARGE}
    lines = []
    for run, record in by_run.items():
        alone = by_run.get(Run(LARGE, settings=run.settings))
        bytes_ = "" if alone is None or alone is record else "same"
        if bytes_ and not is_same(record, alone or record):
            bytes_ = "other"
        name = run.name.removeprefix(f"{LARGE}: ")
        times = [f"{record[each]:,.0f}" for each in ("seconds", "cpu_seconds")]
        sizes = [record[f"{each}_bytes"] for each in ("driver", "worker", "all")]
        memory = [f"{each / 1e9:.2f}" if each else "" for each in sizes]
        lines.append([name, *times, *memory, bytes_])
    head = ["run", "seconds", "CPU seconds", "driver, GB", "worker, GB", "all, GB", "bytes"]
    return table(head, lines)


def said(bar: Bar) -> str:
    """A line on a bar."""
    what, value, most = bar
    if value is None:
        return f"- not measured: {what}"
    return f"- {'met' if value <= most else 'missed'}: {what}: {value:.3g}, at most {most}"


def main() -> None:
    """Runs what was asked for, and prints the bars."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("rows", nargs="*", choices=[[], *ROWS], metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=[LARGE], metavar="NAME|ENTITIES")
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--scratch", type=Path, help="keep generated pairs and Ray's files there")
    parser.add_argument("--missing", action="store_true", help="skip runs that have a record")
    parser.add_argument("--only", metavar="TEXT", help="runs that have this in their name")
    parser.add_argument("--out", type=Path, default=RESULTS / "cluster.jsonl")
    arguments = parser.parse_args()
    if arguments.rows and MARK not in os.environ:
        go_to_own_network()
    torch.set_num_threads(1)
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "token"}
    os.environ |= {"RAY_AUTH_TOKEN": secrets.token_hex(32), "OMP_NUM_THREADS": "1"}
    os.environ |= {"RAY_worker_niceness": "0"}  # or other programs would slow workers down
    os.environ |= {"RAY_oom_grace_period_s": "0"}  # as the page on clusters says
    runs = [run for pair in arguments.pairs for row in arguments.rows for run in ROWS[row](pair)]
    kept = set(map(Run.of, read_records(arguments.out)))
    with ExitStack() as stack:
        scratch = arguments.scratch
        if scratch is None:
            scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="clusterea-")))
        os.environ["RAY_TMPDIR"] = str(scratch)
        for run in dict.fromkeys(runs):
            if (arguments.missing and run in kept) or (arguments.only or "") not in run.name:
                continue
            record = measure(run, write_pair(run.pair, arguments.data, scratch), scratch)
            put_record(arguments.out, record, IDENTITY)
            print(told(run, record), flush=True)
    print("\n".join(map(said, bars(read_records(arguments.out)))))


def told(run: Run, record: Record) -> str:
    """A line on a run."""
    sizes = {"driver": "driver_bytes", "worker": "worker_bytes", "all": "all_bytes"}
    memory = ", ".join(
        f"{what} {record[name] / 1e9:.2f} GB" for what, name in sizes.items() if record[name]
    )
    times = f"{record['seconds']:.1f} s, {record['cpu_seconds']:.1f} CPU s"
    return f"{run.name}: {times}, {memory}, {record['alignment']} {record['similarity']}"


def go_to_own_network() -> None:
    """Starts this program again, in a network that has only loopback."""
    sys.path.append(str(OWN_NETWORK.parent))
    own_network: Any = __import__(OWN_NETWORK.stem)
    command = own_network.in_own_network(sys.executable, *sys.argv)
    os.environ[MARK] = secrets.token_hex(8)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main()

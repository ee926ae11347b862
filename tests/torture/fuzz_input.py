"""Feeds `clusterea.load` damaged and hostile files; only a `Benchmark` or an `InputError` may come.

    python tests/torture/fuzz_input.py --inputs 100000 --seed 0

Small valid files of every format and layout are damaged: flipped bits, cuts, splices, tokens that
mean something, other encodings, compressed garbage. Each input runs in a worker process with a
bound on its time and memory. An input that ends otherwise is saved, and the exit code is 1. Input
N of a seed is always the same: `--only N` runs it alone.
"""

from __future__ import annotations

import argparse
import multiprocessing as mp
import os
import random
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from damage import damaged
from valid_inputs import CASES

import clusterea
from clusterea.errors import InputError

LONGEST_MESSAGE = 1_000
RENAMED = 0.1  # the share of files that get a suffix of some other format
SUFFIXES = (
    *(".nt", ".nq", ".ttl", ".n3", ".trig", ".rdf", ".owl", ".xml", ".jsonld", ".json", ".txt"),
    *(
        ".tsv",
        ".csv",
        ".parquet",
        ".sssom.tsv",
        ".gz",
        ".csv.bz2",
        ".nt.xz",
        ".zst",
        ".zip",
        ".obo",
    ),
)
LARGEST = 64 << 20  # bytes of an input, unpacked: damage can make a file of gigabytes
SECONDS = 20.0  # for one input
MEMORY = 4 << 30  # bytes of address space for a worker
READ, REFUSED, FAILED = "read", "refused", "failed"
KINDS = (READ, REFUSED, FAILED)
LINKS = ("links", "seeds", "test_links")  # options that are paths
Load = Callable[..., Any]


def outcome_of(load: Load, folder: Path, arguments: Sequence[str], options: dict[str, Any]) -> str:
    """`READ` or `REFUSED`, or else what went wrong."""
    paths = [folder / name for name in arguments]
    named = {name: folder / value if name in LINKS else value for name, value in options.items()}
    try:
        found = load(*paths, **named)
    except InputError as error:
        message = str(error).replace(str(folder), "")
        if len(message.splitlines()) != 1:
            return f"a message of {len(message.splitlines())} lines: {message[:200]!r}"
        if len(message) > LONGEST_MESSAGE:
            return f"a message of {len(message)} characters: {message[:200]!r}"
        if not message.isprintable():
            return f"a message with control characters: {message!r}"
        return REFUSED
    except BaseException:
        return traceback.format_exc()
    return READ if isinstance(found, clusterea.Benchmark) else f"got {type(found).__name__}"


def run_input(seed: int, number: int, folder: Path) -> tuple[str, str]:
    """The case that the input was made from, and its outcome."""
    rng = random.Random(f"{seed} {number}")
    case = rng.choice(list(CASES))
    files, arguments, options = CASES[case]
    changed = rng.choice(list(files))
    contents = {**files, changed: damaged(rng, files[changed], list(files.values()))}
    if rng.random() < RENAMED and changed in (*arguments, *options.values()):
        renamed = f"renamed{rng.choice(SUFFIXES)}"
        contents[renamed] = contents.pop(changed)
        arguments = [renamed if name == changed else name for name in arguments]
        options = {key: renamed if value == changed else value for key, value in options.items()}
    for name, content in contents.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    bounded = {**options, "max_input_size": LARGEST}
    return case, outcome_of(clusterea.load, folder, arguments, bounded)


def work(pipe: Connection, seed: int, place: str) -> None:
    """A worker: gets numbers of inputs, sends their cases and outcomes."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # nothing waits for a keyboard
    while True:
        number = pipe.recv()
        if number is None:
            return
        folder = Path(place) / str(number)
        folder.mkdir()
        outcome = run_input(seed, number, folder)
        if outcome[1] in (READ, REFUSED):
            _remove(folder)
        pipe.send(outcome)


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


@dataclass
class Worker:
    """A process and what it works on."""

    seed: int
    place: Path
    number: int = -1
    since: float = 0.0
    pipe: Connection = field(init=False)
    process: Any = field(init=False)

    def start(self) -> None:
        context = mp.get_context("spawn")
        self.pipe, other = context.Pipe()
        arguments = (other, self.seed, str(self.place))
        self.process = context.Process(target=work, args=arguments, daemon=True)
        self.process.start()
        other.close()

    def give(self, number: int) -> None:
        self.number, self.since = number, time.monotonic()
        self.pipe.send(number)

    def answer(self) -> tuple[str, str] | None:
        """Case and outcome of the input; None while it is worked on."""
        try:
            if self.pipe.poll():
                got: tuple[str, str] = self.pipe.recv()
                return got
        except EOFError:
            self.process.join()
            return self._again(f"the process ended with {self.process.exitcode}")
        if time.monotonic() - self.since > SECONDS:
            self.process.kill()
            self.process.join()
            return self._again(f"no answer within {SECONDS:.0f} seconds")
        return None

    def _again(self, outcome: str) -> tuple[str, str]:
        self.start()
        return "?", outcome


def fuzz(numbers: Sequence[int], seed: int, processes: int, place: Path) -> dict[int, str]:
    """Prints the counts of outcomes for each case; the inputs that ended badly, and how."""
    counts: Counter[tuple[str, str]] = Counter()
    failures: dict[int, str] = {}
    waiting = list(reversed(numbers))
    workers = [Worker(seed, place) for _ in range(min(processes, len(numbers)))]
    for worker in workers:
        worker.start()
        worker.give(waiting.pop())
    while workers:
        wait([worker.pipe for worker in workers], timeout=1)
        for worker in list(workers):
            answer = worker.answer()
            if answer is None:
                continue
            case, outcome = answer
            kind = outcome if outcome in (READ, REFUSED) else FAILED
            counts[case, kind] += 1
            if kind == FAILED:
                failures[worker.number] = outcome
                (place / str(worker.number) / "outcome.txt").write_text(outcome)
            if waiting:
                worker.give(waiting.pop())
            else:
                worker.pipe.send(None)
                worker.process.join()
                workers.remove(worker)
    for case in sorted({case for case, _ in counts}):
        print(f"{case:28}", *(f"{counts[case, kind]:7,} {kind}" for kind in KINDS))
    whole = {kind: sum(n for (_, each), n in counts.items() if each == kind) for kind in KINDS}
    print(f"{len(numbers):,} inputs:", ", ".join(f"{n:,} {kind}" for kind, n in whole.items()))
    return failures


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=1_000, help="How many inputs to make.")
    parser.add_argument("--seed", type=int, default=0, help="Same seed, same inputs.")
    parser.add_argument("--processes", type=int, default=2, help="How many workers.")
    parser.add_argument("--only", type=int, help="The number of one input to run alone.")
    parser.add_argument("--keep", type=Path, help="Where to save inputs that end badly.")
    given = parser.parse_args(arguments)
    place = given.keep or Path(tempfile.mkdtemp(prefix="clusterea-fuzz-"))
    place.mkdir(parents=True, exist_ok=True)
    numbers = range(given.inputs) if given.only is None else [given.only]
    failures = fuzz(numbers, given.seed, given.processes, place)
    for number, outcome in sorted(failures.items())[:20]:
        print(f"input {number}, saved in {place / str(number)}: {outcome.strip()}")
    if not failures and given.keep is None:
        place.rmdir()
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

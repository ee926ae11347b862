"""Damages one stored file of a run, runs one command, and checks what comes of it.

    python tests/torture/corrupt_runs.py --trials 1000

A run is finished, or was killed half way. Two outcomes are allowed: exit code 0 and the same
result as without the damage, or exit code 2 and one line. `align` must repair: only the first is
allowed there. After the second, `align` is run, and then the command must give its result.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from short_runs import KINDS, LINKS, align_words, is_stored, outputs

from conftest import Ran  # isort: skip  # short_runs says where it is
from forked import FOLDER, Forked  # isort: skip
from tiny_runs import command, rows, write_pair  # isort: skip

CPU = ("--device", "cpu")
COMMANDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # options, and what it writes
    "evaluate": ((), ("metrics.json",)),
    "export": (("--format", "tsv"), ("exported.tsv",)),
    "explain": (("{entity}",), ()),
    "suggest": (("--count", "5"), ()),
    "report": ((), ("metrics.json",)),
    "match": (CPU, LINKS),
    "fuse": (CPU, ()),
    "sample": (("--num-batches", "2", "--set", "classifier=softmax", *CPU), ()),
}
HALVES = {"in training": ("/train-", FOLDER), "before matching": ("/match-", FOLDER)}


@dataclass(frozen=True)
class Result:
    """What a command gave."""

    code: int
    out: str
    files: dict[str, bytes | None]
    err: str = ""

    def is_like(self, other: Result) -> bool:
        """Whether it is the same result."""
        return (self.code, self.out, self.files) == (other.code, other.out, other.files)


class Runs:
    """Runs to be damaged, and what each command gives without damage."""

    def __init__(self, place: Path, kinds: list[str]) -> None:
        self.pair = write_pair(place / "pair")
        self.entity = rows(self.pair / "ent_links")[-1][0]
        self.folders: dict[tuple[str, str], Path] = {}
        self.run = place / "run"
        self._wanted: dict[tuple[str, str, str], Result] = {}
        for kind in kinds:
            self.folders[kind, "finished"] = whole = place / kind
            assert command(*align_words(kind, self.pair, whole)).code == 0
            for half, die_in in HALVES.items():
                folder = place / f"{kind} {half}"
                words = align_words(kind, self.pair, folder)
                code, err = Forked(place, *words, die_in=die_in).finish()
                assert code == -signal.SIGKILL, err
                self.folders[kind, half] = folder

    def fresh(self, kind: str, state: str) -> Path:
        """A copy that may be damaged."""
        shutil.rmtree(self.run, ignore_errors=True)
        shutil.copytree(self.folders[kind, state], self.run)
        return self.run

    def result(self, kind: str, name: str) -> Result:
        """What a command gives with the copy as it is."""
        if name == "align":
            ran = command(*align_words(kind, self.pair, self.run))
            return _result(self.run, ran, (*LINKS, "metrics.json"))
        more, files = COMMANDS[name]
        ran = command(name, self.run, *(word.format(entity=self.entity) for word in more))
        return _result(self.run, ran, files)

    def wanted(self, kind: str, state: str, name: str) -> Result:
        """What a command gives without damage."""
        if (kind, state, name) not in self._wanted:
            self.fresh(kind, state)
            self._wanted[kind, state, name] = self.result(kind, name)
        return self._wanted[kind, state, name]


def _result(run: Path, ran: Ran, files: tuple[str, ...]) -> Result:
    written = outputs(run, files)
    last = Path(ran.out.splitlines()[-1].strip()) if ran.out else run
    if last.suffix == ".safetensors":  # of `fuse` and `sample`
        written[last.name] = last.read_bytes() if last.is_file() else None
    return Result(ran.code, ran.out if ran.code == 0 else "", written, ran.err)


def flip(path: Path, draw: random.Random) -> None:
    """One bit."""
    content = bytearray(path.read_bytes())
    if content:
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def cut(path: Path, draw: random.Random) -> None:
    """What is behind some place."""
    content = path.read_bytes()
    path.write_bytes(content[: draw.randrange(max(len(content), 1))])


def empty(path: Path, draw: random.Random) -> None:
    """All of it."""
    del draw
    path.write_bytes(b"")


def garble(path: Path, draw: random.Random) -> None:
    """Some bytes in the middle, or all."""
    content = path.read_bytes()
    start = draw.choice([0, draw.randrange(max(len(content), 1))])
    count = draw.randrange(1, 200)
    path.write_bytes(content[:start] + draw.randbytes(count) + content[start + count :])


def delete(path: Path, draw: random.Random) -> None:
    """The file."""
    del draw
    path.unlink()


def swap(path: Path, draw: random.Random) -> None:
    """With another file, one of the same name if there is one."""
    run = next(each for each in path.parents if each.name == "run")
    stored = [each for each in run.rglob("*") if each.is_file() and is_stored(each)]
    alike = [each for each in stored if each.suffix == path.suffix and each != path]
    other = draw.choice(alike or stored)
    mine, theirs = path.read_bytes(), other.read_bytes()
    path.write_bytes(theirs)
    other.write_bytes(mine)


def resave(path: Path, draw: random.Random) -> None:
    """The tensors, with a valid checksum: one of them missing, out of range or of another shape."""
    import torch

    from clusterea.workspace import read_tensors, write_tensors

    if path.suffix != ".safetensors":
        flip(path, draw)
        return
    of = path.name if path.parent.name == "checkpoints" else path.parent.name
    tensors = read_tensors(path, of)
    name = draw.choice(sorted(tensors))
    value = tensors[name]
    how = draw.choice(["missing", "beyond", "shorter", "flat"])
    if how == "missing":
        del tensors[name]
    elif how == "beyond" and not value.is_floating_point() and value.numel():
        tensors[name] = torch.full_like(value, 10_000)
    elif how == "shorter" and value.ndim:
        tensors[name] = value[:-1]
    else:
        tensors[name] = torch.cat([value.reshape(-1), value.reshape(-1)])
    write_tensors(path, tensors, of)


DAMAGES: list[Callable[[Path, random.Random], None]] = [
    *(flip, cut, empty, garble, delete, swap, resave)
]


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 where something else came of it than is allowed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--only", type=int, help="this trial alone")
    chosen = parser.parse_args(arguments)
    numbers = range(chosen.trials) if chosen.only is None else [chosen.only]
    found: Counter[str] = Counter(faults=0)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(Path(folder), chosen.kinds)
        for number in numbers:
            found[trial(runs, number, chosen.seed)] += 1
            if number % 100 == 99:
                print(dict(found), flush=True)
    print(f"{len(numbers)} trials: " + ", ".join(f"{n} {what}" for what, n in found.items()))
    return 1 if found["faults"] else 0


def trial(runs: Runs, number: int, seed: int) -> str:
    """What came of one damage."""
    draw = random.Random(f"{seed} {number}")
    kind, state = draw.choice(sorted(runs.folders))
    others = 4 if state == "finished" else 1  # half way, most others have nothing to read
    name = "align" if draw.randrange(8) >= others else draw.choice(sorted(COMMANDS))
    wanted = runs.wanted(kind, state, name)
    run = runs.fresh(kind, state)
    path = draw.choice(sorted(p for p in run.rglob("*") if p.is_file() and is_stored(p)))
    damage = draw.choice(DAMAGES)
    damage(path, draw)
    said = f"trial {number}: {damage.__name__} {path.relative_to(run)} of {kind}, {state}; {name}"
    try:
        result = runs.result(kind, name)
        if result.is_like(wanted) and (result.code == 0 or _is_one_line(result.err)):
            return "same result" if result.code == 0 else "the same refusal"
        if name == "align" or result.code != 2 or not _is_one_line(result.err):
            print(f"{said}: {_short(result)}", flush=True)
            return "faults"
        return repaired(runs, kind, state, name, said)
    except Exception:
        print(f"{said}:\n{traceback.format_exc()}", flush=True)
        return "faults"


def repaired(runs: Runs, kind: str, state: str, name: str, said: str) -> str:
    """Whether `align` brings back what was damaged, as the refusal says."""
    again = runs.result(kind, "align")
    after = runs.result(kind, name)
    wanted = runs.wanted(kind, "finished", name)
    if again.files == runs_of_align(runs, kind).files and after.is_like(wanted):
        return "refused in one line, then repaired"
    print(f"{said}, then align: {_short(again)}, then {_short(after)} {state}", flush=True)
    return "faults"


def runs_of_align(runs: Runs, kind: str) -> Result:
    """What `align` gives of a finished run."""
    here = runs.run.with_name("kept")
    shutil.rmtree(here, ignore_errors=True)
    runs.run.rename(here)
    try:
        return runs.wanted(kind, "finished", "align")
    finally:
        shutil.rmtree(runs.run, ignore_errors=True)
        here.rename(runs.run)


def _is_one_line(err: str) -> bool:
    """Whether it is one error, perhaps after warnings of what was damaged and made again."""
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    return len(lines) == 1 and lines[0].startswith("error: ")


def _short(result: Result) -> str:
    return f"exit code {result.code}, {result.err[-500:]!r}"


if __name__ == "__main__":
    sys.exit(main())

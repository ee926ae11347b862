"""The review loop, with the truth in place of the person who answers.

    .venv/bin/python benchmarks/review.py --data FOLDER [--rows answers precision restart page]
        [--pairs dbp15k-zh-en …] [--seeds 0 1 2] [--preset fast] [--set STAGE.FIELD=VALUE …]
        [--device cpu] [--missing]
    .venv/bin/python benchmarks/review.py --table

A run replaces its record in `results/review.jsonl`. Rows:

- `answers`: 50 random seeds, then 200 answers to our questions, with a restart after every 50; and
  the same 50 seeds with 500 more random ones. Both are judged by the same links: those that are no
  seeds of either, and that no answer was about.
- `precision`: 200 random seeds, one alignment, and 100 answers. Is the true precision of its links
  in the interval that is shown?
- `restart`: 200 random seeds, one alignment, and 20 answers: time and H@1 of a warm restart and of
  a full run. Needs a preset that trains something.
- `page`: how fast the page is with more than 100,000 links. Always a generated pair, whatever the
  pairs, the seeds and the preset: give one of each.

The person says `same` if the pair is a link of the data, or picks the right one among the ten best
candidates; otherwise `different`. Of a pair whose entities are in no link, the person can't tell.

Bars, means over the seeds:

- `answers`: H@1 after the answers is at least that with 500 more seeds.
- `precision`: the interval has the true precision in at least 90 % of 20 runs.
- `restart`: warm takes at most a quarter of the time, and loses at most 0.5 points of H@1.
- `page`: it opens in 2 s, and the next question comes in 100 ms, each of them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import mean, median
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import torch

import clusterea
from alignment_accuracy import Bar, is_met, limit
from clusterea import AlignmentResult, Benchmark, Pair
from clusterea.data.synthetic import SHAPES
from clusterea.evaluation import estimated_precision
from clusterea.types import Answer, Decisions, IntArray, Question
from common import (
    DEVICE,
    GENERATED,
    RESULTS,
    Record,
    commit,
    device_name,
    generated,
    put_record,
    read_pair,
    read_records,
)

PAIRS = ("dbp15k-zh-en", "ids15k-en-fr")
FEW, MORE = 50, 500  # seeds at first, and what answers are compared with
SOME = 200  # seeds of the other rows
ANSWERS, BLOCK = 200, 50  # answers in all, and after how many the alignment is run again
CANDIDATES = 10  # that the page shows
MANY = replace(SHAPES["demo"], entities=Pair(170_000, 160_000), triples=Pair(850_000, 800_000))
QUICKLY = [  # the links need not be good
    *("propagation.dimension=64", "propagation.features=128", "fusion.candidates=10"),
    *("fusion.search=approximate", "fusion.search_compared=2000"),
    *("fusion.sinkhorn_rounds=5", "matching.abstain=false"),
]
QUESTIONS = 150  # that are answered; questions are chosen anew after 100
IDENTITY = ("row", "pair", "seed", "preset", "settings", "on")


@dataclass(frozen=True)
class Person:
    """Someone who knows the links of the data, and nothing else."""

    partner: dict[int, int]  # of source entities
    owner: dict[int, int]  # of target entities

    @classmethod
    def of(cls, links: IntArray) -> Person:
        return cls(dict(links.tolist()), dict(links[:, ::-1].tolist()))

    def answers(self, asked: Question, candidates: Sequence[int]) -> list[Answer]:
        """What the page writes after the person's reply."""
        say = partial(Answer, is_random=asked.is_random)
        right = self.partner.get(asked.source)
        if right == asked.target:
            return [say(asked.source, asked.target, "same")]
        if right is None and asked.target not in self.owner:
            return [say(asked.source, asked.target, "unsure")]
        said = [say(asked.source, asked.target, "different")]
        return [*said, say(asked.source, right, "same")] if right in candidates else said


def best_candidates(result: AlignmentResult, source: int) -> list[int]:
    """The targets that the page offers beside the pair."""
    similarity = result.similarity
    row = slice(*similarity.row_offsets[source : source + 2].tolist())
    order = similarity.values[row].argsort(descending=True)[:CANDIDATES]
    found: list[int] = similarity.columns[row][order].tolist()
    return found


def asked(
    result: AlignmentResult, person: Person, count: int, answers: Sequence[Answer] = ()
) -> list[Answer]:
    """The answers to `count` questions more, after those given."""
    found: list[Answer] = []
    for question in result.suggest(count, answers).questions:
        found += person.answers(question, best_candidates(result, question.source))
    return found


def hits(result: AlignmentResult, links: IntArray) -> float:
    """H@1 on these links, in percent."""
    return 100 * result.evaluate(links).test_candidates.source.hits[1]


def calibration(result: AlignmentResult, person: Person) -> Record:
    """How many links there are, their precision and mean confidence, and the calibration error."""
    links, sure = result.alignment.links.tolist(), result.alignment.confidence.double().numpy()
    can_tell = np.array([s in person.partner or t in person.owner for s, t in links])
    right = np.array([person.partner.get(s) == t for s, t in links])[can_tell]
    sure = sure[can_tell]
    bins = np.minimum((10 * sure).astype(int), 9)
    apart = [abs(float((right - sure)[bins == each].sum())) for each in range(10)]
    return {
        "links": len(links),
        "precision": float(right.mean()),
        "confidence": float(sure.mean()),
        "error": sum(apart) / len(sure),
    }


def undecided(links: IntArray, answers: Sequence[Answer]) -> IntArray:
    """The links of entities that no answer was about."""
    ends = ([each.source for each in answers], [each.target for each in answers])
    is_in = [
        np.isin(side, [e for e in some if e is not None])
        for side, some in zip(links.T, ends, strict=True)
    ]
    return links[~(is_in[0] | is_in[1])]


def read(data: Path | None, pair: str, count: int, seed: int) -> Benchmark:
    """A pair with so many random seeds; a generated one is cut anew."""
    if not pair.endswith(GENERATED):
        return read_pair(data, f"{pair}-{count}s", seed)
    whole = read_pair(data, pair)
    links = np.concatenate([whole.task.seeds, whole.test_links])
    links = links[np.random.default_rng(seed).permutation(len(links))]
    task = whole.task.with_seeds(links[:count])
    return replace(whole, task=task, test_links=links[count:])


# ---- rows


def measure_answers(data: Path | None, own: Record) -> Record:
    """H@1 with 50 seeds, after answers, and with 500 seeds more."""
    few, many = (read(data, own["pair"], count, own["seed"]) for count in (FEW, FEW + MORE))
    person = Person.of(np.concatenate([few.task.seeds, few.test_links]))
    run = aligner(own)
    answers: list[Answer] = []
    path: list[list[float]] = []
    with tempfile.TemporaryDirectory() as scratch:  # each run goes on from the one before
        first = result = run(few, answers, Path(scratch))
        for _ in range(ANSWERS // BLOCK):
            answers += asked(result, person, BLOCK, answers)
            result = run(few, answers, Path(scratch))
            path.append(
                [len(result.task.seeds) - FEW, hits(result, undecided(many.test_links, answers))]
            )
    judges = undecided(many.test_links, answers)
    return {
        "before": hits(first, judges),
        "answered": path[-1][1],
        "seeds": hits(run(many), judges),
        "path": path,
        "answers": counted(answers),
        "judges": len(judges),
        "calibration": calibration(result, person),
    }


def measure_precision(data: Path | None, own: Record) -> Record:
    """The estimated precision after 100 answers, and the true one."""
    given = read(data, own["pair"], SOME, own["seed"])
    truth = np.concatenate([given.task.seeds, given.test_links])
    person = Person.of(truth)
    result = aligner(own)(given)
    answers = asked(result, person, 100)
    found = estimated_precision(result.alignment, answers)
    links = result.alignment.links.tolist()
    can_tell = [s in person.partner or t in person.owner for s, t in links]
    right = [person.partner.get(s) == t for s, t in links]
    true = sum(right) / sum(can_tell)
    return {
        "true": true,
        "estimate": [found.value, found.low, found.high],
        "covered": found.low <= true <= found.high,
        "sampled": found.sampled,
        "answers": counted(answers),
    }


def measure_restart(data: Path | None, own: Record) -> Record:
    """Time and H@1 of a warm restart after 20 answers, and of a full run."""
    given = read(data, own["pair"], SOME, own["seed"])
    person = Person.of(np.concatenate([given.task.seeds, given.test_links]))
    with tempfile.TemporaryDirectory() as scratch:
        run = aligner(own)
        first, _ = timed(run, given, [], Path(scratch) / "run")
        answers = asked(first, person, 20)
        warm, warm_seconds = timed(run, given, answers, Path(scratch) / "run")
        full, full_seconds = timed(run, given, answers, Path(scratch) / "full")
        assert warm.previous is not None
        judges = warm.named.test_links
        return {
            "before": hits(first, judges),
            "warm": hits(warm, judges),
            "full": hits(full, judges),
            "warm_seconds": warm_seconds,
            "full_seconds": full_seconds,
            "answers": counted(answers),
        }


def measure_page(data: Path | None, own: Record) -> Record:
    """Seconds until the command is ready and the page open, and until the next question."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        result = clusterea.align(
            generated(MANY), preset="fast", settings=QUICKLY, device=own["on"], run=folder
        )
        start = time.perf_counter()
        command = [sys.executable, "-m", "clusterea", "review", str(folder), "--no-browser"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            address = urlsplit(server.stdout.readline().strip())
            ready = time.perf_counter() - start
            try:
                return {
                    "links": len(result.alignment.links),
                    "ready_seconds": ready,
                    **asked_by_page(HTTPConnection(address.netloc), address.query),
                }
            finally:
                server.terminate()


def asked_by_page(server: HTTPConnection, query: str) -> Record:
    """What the page asks for when it opens, and after each answer."""
    headers = {"Authorization": f"Bearer {query.removeprefix('token=')}"}

    def sent(method: str, path: str, body: Record | None = None) -> tuple[Any, float]:
        start = time.perf_counter()
        text = None if body is None else json.dumps(body)
        server.request(method, path, text, {**headers, "Content-Type": "application/json"})
        response = server.getresponse()
        answered = response.read()
        assert response.status == 200, answered
        seconds = time.perf_counter() - start
        return (json.loads(answered) if path.startswith("/api") else answered), seconds

    _, page = sent("GET", f"/?{query}")
    told, first = sent("GET", "/api/question")
    seconds = []
    for number in range(QUESTIONS):
        asked = told["question"]
        verdict = ("same", "different", "unsure")[number % 3]
        ends = {side: asked[side]["number"] for side in ("source", "target")}
        told, took = sent("POST", "/api/answer", {**ends, "verdict": verdict})
        seconds.append(took)
    return {
        "open_seconds": page + first,
        "next_seconds": median(seconds),
        "slowest_seconds": max(seconds),
    }


def aligner(own: Record) -> partial[AlignmentResult]:
    """Aligns data with answers, as the record says; in a folder, if there is one."""
    return partial(_aligned, own)


def _aligned(
    own: Record, given: Benchmark, answers: Sequence[Answer] = (), folder: Path | None = None
) -> AlignmentResult:
    return clusterea.align(
        given,
        preset=own["preset"],
        settings=own["settings"],
        seed=own["seed"],
        device=own["on"],
        decisions=Decisions.of(answers),
        run=folder,
    )


def timed(
    run: partial[AlignmentResult], given: Benchmark, answers: Sequence[Answer], folder: Path
) -> tuple[AlignmentResult, float]:
    """The result of a run in a folder, and its seconds, with its files."""
    start = time.perf_counter()
    result = run(given, answers, folder)
    return result, time.perf_counter() - start


def counted(answers: Sequence[Answer]) -> dict[str, int]:
    """How many answers there are of each kind."""
    kinds = [each.verdict for each in answers]
    return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


ROWS = {
    "answers": measure_answers,
    "precision": measure_precision,
    "restart": measure_restart,
    "page": measure_page,
}


# ---- bars


def bars(records: Sequence[Record]) -> Iterator[Bar]:
    """Each bar: what, its value (None: not measured), its bound, whether that is the least."""

    def of(row: str) -> dict[str, list[Record]]:
        """The records of a row, by pair and settings."""
        found: dict[str, list[Record]] = {}
        for each in (each for each in records if each["row"] == row):
            how = " ".join([each["pair"], each["preset"], *each["settings"]])
            found.setdefault(f"{row}, {how}", []).append(each)
        return found

    for what, own in of("answers").items():
        gained = mean(each["answered"] - each["seeds"] for each in own)
        yield f"{what}: H@1 above {MORE} more seeds", gained, 0.0, True
    for what, own in of("restart").items():
        share = mean(each["warm_seconds"] / each["full_seconds"] for each in own)
        yield f"{what}: share of the time", share, 0.25, False
        lost = mean(each["full"] - each["warm"] for each in own)
        yield f"{what}: H@1 lost", lost, 0.5, False
    for what, own in of("page").items():
        yield f"{what}: seconds to open", max(each["open_seconds"] for each in own), 2.0, False
        slowest = max(each["slowest_seconds"] for each in own)
        yield f"{what}: seconds to the next question, slowest", slowest, 0.1, False
    tried = [each["covered"] for each in records if each["row"] == "precision"]
    yield f"precision: covered in {len(tried)} runs", mean(tried) if tried else None, 0.9, True


def main() -> None:
    """Measures what was asked for, and prints the bars."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="the folder of the pairs")
    parser.add_argument("--rows", nargs="*", default=list(ROWS), choices=ROWS, metavar="ROW")
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--set", nargs="*", default=[], dest="settings", metavar="STAGE.FIELD=V")
    parser.add_argument("--device", default=DEVICE, choices=("cpu", "cuda"))
    parser.add_argument("--missing", action="store_true", help="skip runs that have a record")
    parser.add_argument("--out", type=Path, default=RESULTS / "review.jsonl")
    parser.add_argument("--table", action="store_true", help="measure nothing")
    arguments = parser.parse_args()
    kept = {tuple(str(each.get(name)) for name in IDENTITY) for each in read_records(arguments.out)}
    for pair in () if arguments.table else arguments.pairs:
        for seed in arguments.seeds:
            for row in arguments.rows:
                own = {"row": row, "pair": pair, "seed": seed}
                own |= {"preset": arguments.preset, "settings": arguments.settings}
                own |= {"on": arguments.device}
                if arguments.missing and tuple(map(str, own.values())) in kept:
                    continue
                record = own | ROWS[row](arguments.data, own)
                device = device_name(torch.device(arguments.device))
                record |= {"device": device, "commit": commit()}
                put_record(arguments.out, record, IDENTITY)
                print({k: v for k, v in record.items() if k not in ("device", "on")}, flush=True)
    for bar in bars(read_records(arguments.out)):
        what, value, *_ = bar
        if value is not None:
            print(f"- {'met' if is_met(bar) else 'missed'}: {what} {value:.4g}, {limit(bar)}")


if __name__ == "__main__":
    main()

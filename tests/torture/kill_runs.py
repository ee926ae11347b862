"""Kills `clusterea align` at random moments, resumes it, and compares every byte that it leaves.

    python tests/torture/kill_runs.py --kills 200

A run is started and killed until it ends by itself. What it leaves must be what an undisturbed run
leaves: the links, the unmatched entities, the candidates, the metrics and every artifact.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

from short_runs import KINDS, LINKS, align_words

from forked import Forked  # isort: skip  # short_runs says where it is
from tiny_runs import leftovers, write_pair  # isort: skip


def left(run: Path) -> dict[str, bytes]:
    """Every artifact, and every output but those that tell the time."""
    paths = [*run.glob("*-*/*"), *(run / name for name in (*LINKS, "metrics.json"))]
    return {str(path.relative_to(run)): path.read_bytes() for path in paths if path.is_file()}


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 where a resumed run differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        found = torture(Path(folder), chosen.kills, chosen.seed, chosen.kinds)
    print(", ".join(f"{count} {what}" for what, count in sorted(found.items())))
    return 1 if found["faults"] else 0


def torture(place: Path, kills: int, seed: int, kinds: list[str]) -> Counter[str]:
    """How many kills, resumed runs and faults there were."""
    pair = write_pair(place / "pair")
    found: Counter[str] = Counter(kills=0, runs=0, faults=0)
    for number, kind in enumerate(kinds):
        draw = random.Random(f"{seed} {kind}")
        whole = place / f"whole-{kind}"
        for _ in range(2):  # the first also starts the process that the others are forked from
            shutil.rmtree(whole, ignore_errors=True)
            start = time.monotonic()
            code, err = Forked(place, *align_words(kind, pair, whole)).finish()
        if code:
            print(f"{kind}: the undisturbed run ended with {code}: {err}")
            found["faults"] += 1
            continue
        seconds = time.monotonic() - start
        wanted = left(whole)
        share = kills * (number + 1) // len(kinds) - kills * number // len(kinds)
        while share > 0:
            run = place / "run"
            share -= _resumed(place, align_words(kind, pair, run), seconds, share, draw, found)
            if left(run) != wanted or leftovers(run):
                other = {name for name, value in left(run).items() if wanted.get(name) != value}
                lost = wanted.keys() - left(run).keys()
                print(f"{kind}: a resumed run differs: {other or lost or leftovers(run)}")
                found["faults"] += 1
            found["runs"] += 1
            shutil.rmtree(run)
        print(f"{kind}: {dict(found)}", flush=True)
    return found


def _resumed(
    place: Path,
    words: list[str],
    seconds: float,
    most: int,
    draw: random.Random,
    found: Counter[str],
) -> int:
    """Starts the command until it ends by itself; how often it was killed, `most` at most."""
    for kills in range(most + 1):
        process = Forked(place, *words)
        if kills < most:
            time.sleep(draw.uniform(0, seconds))
            with suppress(ProcessLookupError):  # it has ended
                process.send(signal.SIGKILL)
            code = process.wait()
            err = ""
        else:
            code, err = process.finish()
        for pipe in place.glob("err-*"):
            pipe.unlink()
        if code != -signal.SIGKILL:
            if code != 0:
                print(f"exit code {code}: {' '.join(words)}: {err}")
                found["faults"] += 1
            return kills
        found["kills"] += 1
    return most


if __name__ == "__main__":
    sys.exit(main())

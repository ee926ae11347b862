"""Neither reading a similarity nor matching it takes private memory of its size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CELLS = 20_000_000
WATCHED = """
import sys, threading, torch
from pathlib import Path
from clusterea.engines.out_of_core import OutOfCore
from clusterea.sharded import HeldScores, match
from clusterea.types import Pair, Similarity
from clusterea.workspace.tensors import read_tensors, write_tensors

torch.set_num_threads(1)
folder, cells, entities = Path(sys.argv[1]), int(sys.argv[2]), 100_000
engine, sizes = OutOfCore(4, folder), Pair(entities, entities)
width = cells // entities

def private():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))

def made():
    columns, values = engine.empty([cells], torch.int32), engine.empty([cells], torch.float32)
    draw = torch.Generator().manual_seed(0)
    step = entities // width
    first = (torch.arange(width, dtype=torch.int32) * step).repeat(1000)
    for start in range(0, cells, len(first)):
        part = slice(start, start + len(first))
        columns[part] = first + torch.randint(0, step, (len(first),), generator=draw)
        values[part] = torch.rand(len(first), generator=draw)
    return Similarity(torch.arange(0, cells + 1, width), columns, values, sizes)

most, ended = 0, threading.Event()

def watch():
    global most
    while not ended.wait(0.005):
        most = max(most, private())

similarity = made()
thread = threading.Thread(target=watch)
before = private()
thread.start()
write_tensors(folder / "cells", similarity.tensors(), "cells")
del similarity
similarity = Similarity.from_tensors(read_tensors(folder / "cells", "cells"), sizes)
artifact, most = most - before, 0
keys = sizes.map(torch.arange)
before = private()
links = match(HeldScores.of(similarity, engine), keys, torch.empty(0, 2)).links
ended.set()
thread.join()
engine.close()
print(len(links), artifact, most - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux tells memory so")
def test_what_a_large_similarity_takes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(tmp_path), str(CELLS)],
        check=True,
        capture_output=True,
        text=True,
    )
    links, artifact, matching = map(int, done.stdout.split())
    assert links > 90_000
    assert artifact < 3 * CELLS  # of 8 bytes that a cell has; blocks are checked
    assert matching < 4 * CELLS

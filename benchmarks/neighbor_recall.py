"""How many of the nearest neighbors a run's approximate search has found.

    .venv/bin/python benchmarks/neighbor_recall.py RUN [--rows 1000] [--out FILE.json]

RUN is the folder of `clusterea align … --set fusion.search=approximate` with one encoder (the
preset `fast` beyond 500,000 entities). For random entities of each side that no seed decides, the
K_r nearest are found by brute force. Counted are the cells of the run's similarity that are no
worse than the last of these: which of many equal ones are taken is nobody's fault.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from clusterea.pipeline.encoding import without_seeds
from clusterea.pipeline.stored import (
    encoder_keys,
    stored_embeddings,
    stored_held_out,
    stored_similarity,
)
from clusterea.types import Pair
from clusterea.workspace import Workspace, write_json

COLUMNS = 1 << 17  # of the other side, scored at a time
ROUNDING = 1e-5  # of a cosine in float32


def main() -> None:
    """Prints the recall of each side."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=int, default=1000, help="of each side")
    parser.add_argument("--out", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    workspace = Workspace(arguments.run)
    task = workspace.load_benchmark().task
    keys = encoder_keys(workspace, task)
    if len(keys) > 1:
        parser.error(f"RUN must have one encoder. Got {len(keys)} instead.")
    held = stored_held_out(workspace, task, keys["train"])
    known = task if held is None else without_seeds(task, held)
    embeddings = stored_embeddings(workspace, task, keys["train"])
    similarity = stored_similarity(workspace, task)
    candidates = candidates_of(workspace)
    draw = torch.Generator().manual_seed(0)

    def undecided(side: int, count: int) -> Tensor:
        is_free = torch.ones(count, dtype=torch.bool)
        is_free[torch.from_numpy(known.seeds[:, side].copy())] = False
        return is_free.nonzero().flatten()

    free = Pair(*(undecided(side, len(rows)) for side, rows in enumerate(embeddings)))
    figures: dict[str, float] = {"candidates": candidates, "rows": arguments.rows}
    for name, rows, columns in (("source", 0, 1), ("target", 1, 0)):
        mine, theirs = list(free)[rows], list(free)[columns]
        drawn = mine[torch.randperm(len(mine), generator=draw)[: arguments.rows]]
        vectors = list(embeddings)
        least = best_values(vectors[rows][drawn], vectors[columns], theirs, candidates)[:, -1]
        cells = Pair(similarity.rows(), similarity.columns)
        own, near = cells if rows == 0 else cells.swap()
        place = torch.full((len(vectors[rows]),), -1)
        place[drawn] = torch.arange(len(drawn))
        chosen = place[own] >= 0
        own, near = place[own[chosen]], near[chosen]
        cosines = (vectors[rows][drawn[own]] * vectors[columns][near]).sum(1)
        is_good = cosines >= least[own] - ROUNDING
        found = own[is_good].bincount(minlength=len(drawn)).clamp(max=candidates)
        figures[f"{name}_recall"] = round(float(found.float().mean()) / candidates, 4)
    print(json.dumps(figures, indent=1))
    if arguments.out:
        write_json(arguments.out, figures)


def candidates_of(workspace: Workspace) -> int:
    """K_r of the run's fusion."""
    recipe = workspace.folder / workspace.current("fuse") / "recipe.json"
    return int(json.loads(recipe.read_text())["config"]["candidates"])


def best_values(rows: Tensor, others: Tensor, among: Tensor, count: int) -> Tensor:
    """(rows, count): the largest cosines with those of the others that are `among`, falling."""
    best = torch.full((len(rows), count), -torch.inf)
    for start in range(0, len(among), COLUMNS):
        scores = rows @ others[among[start : start + COLUMNS]].T
        best = torch.cat([best, scores], 1).topk(count, dim=1).values
    return best


if __name__ == "__main__":
    main()

"""Whether mini-batches that overlap help: every entity in its second-best cluster too.

    .venv/bin/python benchmarks/overlapping_batches.py RUN [--device cpu] [--out FILE.json]

RUN is the folder of `clusterea align … --preset paper` with test links. To CMCS's mini-batches two
partitions are added: in one, source entities are in the cluster whose mean embedding is nearest to
them but for their own, and target entities in their own; in the other it is the reverse. Printed is
how many test links have both ends in one mini-batch, and H@1 among the test targets.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import torch
from torch import Tensor

from clusterea.config import FusionConfig
from clusterea.evaluation import evaluate
from clusterea.fusion import fuse
from clusterea.pipeline import choose_device
from clusterea.pipeline.stored import encoder_keys, sample_key, stored_embeddings, stored_partition
from clusterea.types import IntArray, Pair, Partition
from clusterea.workspace import Workspace, write_json

ISCS = ("iscs", "iscs-reverse")


def second_best(embeddings: Pair[Tensor], partition: Partition) -> Pair[Tensor]:
    """(entities,) of each side: the nearest cluster that is not their own."""
    rows, labels = torch.cat(list(embeddings)), torch.cat(list(partition.labels))
    sums = rows.new_zeros(partition.num_batches, rows.shape[1]).index_add_(0, labels, rows)
    means = torch.nn.functional.normalize(sums)
    scores = (rows @ means.T).scatter_(1, labels.unsqueeze(1), -torch.inf)
    return Pair(*torch.split(scores.argmax(1), [len(side) for side in embeddings]))


def together(partitions: list[Partition], links: IntArray) -> float:
    """The share of links that one of the partitions has in one mini-batch."""
    ends = torch.from_numpy(links.copy())
    found = torch.zeros(len(ends), dtype=torch.bool)
    for partition in partitions:
        source, target = partition.labels
        found |= source[ends[:, 0]] == target[ends[:, 1]]
    return float(found.double().mean())


def main() -> None:
    """Prints the figures of each set of mini-batches."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path, help="write the figures here as well")
    arguments = parser.parse_args()
    workspace = Workspace(arguments.run)
    benchmark = workspace.load_benchmark()
    task, device = benchmark.task, choose_device(arguments.device)
    key = encoder_keys(workspace, task)["train"]
    embeddings = stored_embeddings(workspace, task, key)
    cmcs, *iscs = (
        stored_partition(workspace, task, sample_key(workspace, each, key))
        for each in ("cmcs", *ISCS)
    )
    second = second_best(embeddings, cmcs)
    more = [
        Partition(Pair(second.source, cmcs.labels.target), cmcs.num_batches),
        Partition(Pair(cmcs.labels.source, second.target), cmcs.num_batches),
    ]
    figures = {}
    for name, partitions in {
        "CMCS": [cmcs],
        "CMCS, overlapping": [cmcs, *more],
        "CMCS and ISCS": [cmcs, *iscs],
        "CMCS, overlapping, and ISCS": [cmcs, *more, *iscs],
    }.items():
        similarity = fuse(
            [embeddings], partitions, task.seeds, task.tie_keys, FusionConfig(), device=device
        )
        metrics = evaluate(similarity, benchmark.test_links, task.seeds)
        figures[name] = {
            "together": together(partitions, benchmark.test_links),
            "hits@1": metrics.test_candidates.source.hits[1],
        }
        print(name, json.dumps(figures[name]), flush=True)
    if arguments.out is not None:
        write_json(arguments.out, figures)


if __name__ == "__main__":
    main()

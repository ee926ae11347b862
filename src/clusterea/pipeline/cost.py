"""The time that a run is expected to take: operations of each stage, times measured constants.

The constants are in `constants.toml`, which `benchmarks/plan.py --write` fits. Other machines may
be a few times faster or slower.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from clusterea.config import Config, PropagationConfig, TrainingConfig
from clusterea.pipeline.planned import Planned, planned_stages, width_of
from clusterea.pipeline.working_memory import (
    LOOKED_AT,
    SPARE,
    WHOLE,
    Sizes,
    drawn_nodes,
    fused_views,
    reached_nodes,
)
from clusterea.types import AlignmentTask

if TYPE_CHECKING:
    import torch

START = "start"  # the start of the command and the reading of the data, as a stage
OPTIMAL = 20_000  # rows that matching solves exactly
NEAR_SHARE = 0.45  # of all products, which a GPU computes where its search is approximate
GAIN_OF_THREADS = 0.7  # with twice the threads, time is divided by 2 to the power of this

Operations = dict[str, float]


def expected_seconds(
    task: AlignmentTask, config: Config, device: torch.device
) -> list[tuple[str, float]]:
    """The label and the seconds of each stage, if rounds go on as long as they may.

    The start of the command comes first.
    """
    sizes = Sizes(task, config, device.type)
    scale, known = _scale(device), constants()[device.type]
    stages = [Planned(START, START), *planned_stages(task, config)]
    return [(stage.label, scale * stage_seconds(stage, sizes, known)) for stage in stages]


def stage_seconds(stage: Planned, sizes: Sizes, known: Mapping[str, Any]) -> float:
    """Operations times constants; operations without a constant count nothing."""
    own: Mapping[str, float] = known.get(constants_of(stage.kind), {})
    return sum(own.get(name, 0.0) * count for name, count in operations(stage, sizes).items())


def constants_of(kind: str) -> str:
    """The name under which a stage's constants are: a sampler has the same in both directions."""
    return kind.removesuffix("-reverse")


@cache
def constants() -> dict[str, Any]:
    """Seconds per operation, by kind of device, stage and operation."""
    return tomllib.loads(files("clusterea").joinpath("pipeline/constants.toml").read_text())


def _scale(device: torch.device) -> float:
    """How much slower this process is than the measured one, by its number of threads."""
    if device.type != "cpu":
        return 1.0
    import torch

    measured: int = constants()["cpu"]["threads"]
    return float((measured / torch.get_num_threads()) ** GAIN_OF_THREADS)


def operations(stage: Planned, sizes: Sizes) -> Operations:
    """How often a stage does what its constants are about."""
    return _STAGES.get(constants_of(stage.kind), _cut)(stage, sizes)  # a sampler, if not known


def _start(stage: Planned, sizes: Sizes) -> Operations:
    del stage
    return {"once": 1, "triples": sizes.edges / 2, "entities": sizes.entities}


def _propagation(stage: Planned, sizes: Sizes) -> Operations:
    encoder = stage.encoder
    assert isinstance(encoder, PropagationConfig)
    nodes, wide = sizes.entities, encoder.dimension * encoder.features
    return {
        "products": nodes * wide * (encoder.rounds + 1),
        "edges": sizes.edges * (encoder.dimension * encoder.rounds + encoder.features),
        "numbers": nodes * (encoder.dimension + encoder.features),
    }


def _training(stage: Planned, sizes: Sizes) -> Operations:
    encoder = stage.encoder
    assert isinstance(encoder, TrainingConfig)
    width, nodes = width_of([encoder]), sizes.entities
    seeds = max(1, min(encoder.seeds_per_step or stage.pairs, stage.pairs))
    steps = encoder.epochs * -(-stage.pairs // seeds)
    drawn = drawn_nodes(stage, sizes)
    reached, fanout = reached_nodes(stage, sizes)
    read = 50 * (seeds + (encoder.negatives_per_step or nodes))
    return {
        "steps": steps,
        "loss": steps * 2 * seeds * drawn * width,
        "outputs": steps * drawn * width * width,
        "messages": steps * (reached[1] * (1 + fanout) + reached[2]) * width,
        "inference": nodes * width * width,
        "rows": steps * min(nodes, read),
    }


def _names(stage: Planned, sizes: Sizes) -> Operations:
    return {"once": 1, "numbers": stage.contents * sizes.entities, "entities": sizes.entities}


def _translation(stage: Planned, sizes: Sizes) -> Operations:
    square = stage.contents * stage.contents
    return {"maps": square * stage.contents, "products": square * (stage.pairs + sizes.sides[0])}


def _trust(stage: Planned, sizes: Sizes) -> Operations:
    largest = max(sizes.free)
    looked = min(LOOKED_AT, largest)
    return {"once": 1, "products": 2 * looked * largest * stage.structure}


def _cmcs(stage: Planned, sizes: Sizes) -> Operations:
    config, width = sizes.config.sampling, stage.structure
    is_boosted = config.classifier == "xgboost"
    examples = 2 * stage.pairs * width
    return {
        "boosting": examples * config.num_batches * is_boosted,
        "softmax": examples * (not is_boosted),
        "clusters": config.kmeans_starts * examples * config.num_batches,
        "entities": sizes.entities,
    }


def _iscs(stage: Planned, sizes: Sizes) -> Operations:
    side = max(sizes.sides)
    known = min(side, stage.pairs * (1 + sizes.degree))
    epochs = sizes.config.sampling.gcn_epochs
    return {"epochs": epochs * known * stage.structure, "entities": sizes.entities}


def _cut(stage: Planned, sizes: Sizes) -> Operations:
    del stage
    return {"entities": sizes.entities}


def _fusion(stage: Planned, sizes: Sizes) -> Operations:
    config = sizes.config.fusion.on(sizes.on, sizes.free)
    source, target = sizes.free
    both, largest = source + target, max(source, target)
    width = stage.structure + stage.contents
    compared = source * target
    if config.search == "approximate":
        compared = min(compared, both * config.search_compared)
        if sizes.on == "cuda":
            compared = int(NEAR_SHARE * source * target)
    count = max(config.candidates, config.hubness_neighbors)
    is_whole = largest <= WHOLE * (count + SPARE)
    scored = 2 * source * target if is_whole else both * (count + SPARE)
    rounds = config.sinkhorn_rounds * (1 + config.support_rounds * ("support" in config.views))
    batches = len(sizes.config.samplers) / sizes.config.sampling.num_batches
    return {
        "search": compared * width,
        "selection": compared,
        "rescoring": scored * width if is_whole else 0,
        "gathering": 0 if is_whole else scored * width,
        "cells": sizes.cells(),
        "rounds": sizes.cells() * rounds,
        "batches": batches * source * target * width,
        "sinkhorn": batches * source * target * config.sinkhorn_rounds,
    }


def _by_cells(stage: Planned, sizes: Sizes) -> Operations:
    del stage
    cells = sizes.cells(fused_views(sizes.config))
    source = min(sizes.free)
    is_optimal = sizes.config.matching.method == "one-to-one" and source <= OPTIMAL
    return {
        "once": 1,
        "cells": cells,
        "optimal": source * source * is_optimal,
        "entities": sizes.entities,
    }


_STAGES: dict[str, Callable[[Planned, Sizes], Operations]] = {
    START: _start,
    "propagation": _propagation,
    "training": _training,
    "names": _names,
    "features": _names,
    "translation": _translation,
    "trust": _trust,
    "cmcs": _cmcs,
    "iscs": _iscs,
    "vps": _cut,
    "metis-cps": _cut,
    "fusion": _fusion,
    "self-training": _by_cells,
    "mean": _by_cells,
    "matching": _by_cells,
    "evaluation": _by_cells,
    "writing": _by_cells,
}

"""`align`: the paper's figure 2. Hold out seeds, encode, sample, fuse, match; maybe in rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from clusterea.config import Config
from clusterea.pipeline.learning import Lesson, lessons
from clusterea.pipeline.observer import Observer, PythonWarnings
from clusterea.pipeline.result import AlignmentResult, Round
from clusterea.pipeline.stages import Stages, encoder_names
from clusterea.pipeline.store import Made, Store
from clusterea.types import Alignment, AlignmentTask, Partition, Similarity
from clusterea.workspace import Workspace, task_key

if TYPE_CHECKING:
    import torch

Stage = Literal["train", "sample", "fuse", "match"]


def align(
    task: AlignmentTask,
    config: Config,
    device: torch.device,
    *,
    workspace: Workspace | None = None,
    observer: Observer | None = None,
    until: Stage = "match",
) -> AlignmentResult:
    """Finds which entities of two graphs are the same.

    Self-training repeats encoding, sampling and fusion. Each round learns from the seeds and from
    the most probable matches of the last round (pseudo-seeds).

    Args:
        task: Two graphs and the seeds.
        config: All settings.
        device: Where to compute.
        workspace: The run's folder. Results that it has are not computed again.
        observer: Gets progress and warnings. Without one, warnings are Python warnings.
        until: The last stage to run, in the last round.
    """
    check_names(config)
    config = replace(config, fusion=config.fusion.on(device.type))  # keys depend on the real search
    observer = observer or PythonWarnings()
    whole = Made.of(task_key(task), task)
    rounds: list[Round] = []
    partitions: dict[str, Made[Partition]] = {}
    similarity: Made[Similarity] | None = None
    alignment: Made[Alignment] | None = None
    with Stages(whole, config, device, Store(workspace, observer.warn), observer) as run:
        known, held = run.hold_out()
        learned = [Lesson(known)]
        encodings = first = run.encode(learned)
        is_last = config.self_training.rounds == 0
        while not (is_last and until == "train"):
            partitions = run.sample(learned[0], encodings[0])
            if is_last and until == "sample":
                break
            similarity = run.fuse(known, learned[0], encodings, partitions, check=not is_last)
            if is_last:
                break
            found = run.choose(known, held, similarity, len(rounds) + 1)
            rounds.append(Round.after(rounds, found))
            if not len(found.value):
                break
            is_last = rounds[-1].is_last(len(rounds), config.self_training)
            learned = lessons(known, found, config.self_training, len(rounds))
            encodings = run.encode_again(learned, first, trained_too=is_last)
        if until == "match" and similarity is not None:
            alignment = run.match(held, similarity)
    made = encoder_names(encodings)
    costs = tuple(run.costs)
    return AlignmentResult(
        task, config, made, partitions, similarity, alignment, costs, tuple(rounds)
    )


def check_names(config: Config) -> None:
    """Raises if a model, a sampler or a view is unknown."""
    from clusterea.fusion import find_view
    from clusterea.models import check_model
    from clusterea.samplers import find_sampler

    for model in config.models:
        check_model(model)
    for sampler in config.samplers:
        find_sampler(sampler)
    for view in config.fusion.views:
        find_view(view)

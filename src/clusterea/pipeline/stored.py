"""A run's results, read back from its folder, and only where they belong to the data it holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from clusterea.checksums import unsealed
from clusterea.config import FusionConfig, with_reverse
from clusterea.errors import DataError, InputError
from clusterea.pipeline.artifacts import (
    entity_counts,
    read_artifact,
    unpack_alignment,
    unpack_links,
    unpack_pair,
    unpack_partition,
    unpack_similarity,
)
from clusterea.pipeline.encoding import Known, beyond, without_seeds
from clusterea.pipeline.stages import GIVEN, Trial, encoder_name
from clusterea.workspace import RUN, Workspace, task_key

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.types import Alignment, AlignmentTask, Pair, Partition, Similarity

STAGES = ("train", "fuse", "match")  # each made from the one before it


def current_key(workspace: Workspace, stage: str, task: AlignmentTask) -> str:
    """The key of what train, fuse or match made last, of a further encoder, or of the rehearsal.

    Raises:
        DataError: It has made nothing yet, or made it of other graphs or seeds: another command
            has put other data into this folder since.
    """
    if not workspace.has(stage):
        raise DataError(
            workspace.folder, f"has no result of `clusterea {stage}` yet. Run that, or `align`."
        )
    key = workspace.current(stage)
    of = key
    made_by = "fuse" if stage == "rehearsal" else stage.partition("-")[0]
    for parent in reversed(STAGES[: STAGES.index(made_by)]):
        of = _parents(workspace, of).get(parent, "")
    made_of = _parents(workspace, of).get("task")
    if made_of is not None and made_of != task_key(task):
        raise DataError(
            workspace.folder,
            f"its result of `clusterea {made_by}` is of other graphs or seeds than it holds now. "
            f"Run `clusterea {STAGES[0]}` and what follows again, or `align`.",
        )
    return key


def encoder_keys(workspace: Workspace, task: AlignmentTask) -> dict[str, str]:
    """The keys of the encoders that were run last, by `encoder_name`."""
    keys = {encoder_name(0): current_key(workspace, "train", task)}
    while workspace.has(encoder_name(len(keys))):
        name = encoder_name(len(keys))
        keys[name] = current_key(workspace, name, task)
    return keys


def stored_embeddings(workspace: Workspace, task: AlignmentTask, key: str) -> Pair[Tensor]:
    """The embeddings of one encoder."""
    return read_artifact(workspace, key, partial(unpack_pair, sizes=entity_counts(task)))


def stored_held_out(workspace: Workspace, task: AlignmentTask, train_key: str) -> Tensor | None:
    """(n, 2): the seeds that an encoder has not learned from, if any."""
    key = _parents(workspace, train_key).get("held", "")
    return _stored_links(workspace, task, key) if key else None


def _stored_links(workspace: Workspace, task: AlignmentTask, key: str) -> Tensor:
    return read_artifact(workspace, key, partial(unpack_links, sizes=entity_counts(task)))


def stored_trial(workspace: Workspace, task: AlignmentTask, fuse_key: str) -> Trial | None:
    """What the confidence of links of this similarity is fitted on, if seeds were held out."""
    train_key = _parents(workspace, fuse_key).get("train", "")
    held = stored_held_out(workspace, task, train_key)
    if held is not None:
        return Trial(held)
    key = _parents(workspace, train_key).get("rejoined", "")
    if not key:
        return None
    if not workspace.has("rehearsal"):  # or else confidence would be fitted on nothing, unsaid
        raise DataError(
            workspace.folder / "rehearsal.json",
            "is missing; run `clusterea align` again to have it made anew.",
        )
    before = current_key(workspace, "rehearsal", task)
    unpack = partial(unpack_similarity, sizes=entity_counts(task))
    return Trial(
        _stored_links(workspace, task, key),
        before,
        lambda: read_artifact(workspace, before, unpack),
    )


def stored_known(workspace: Workspace, task: AlignmentTask, train_key: str) -> Known:
    """What an encoder has learned from, but for its fold: the seeds, less those held out, and more.

    Pseudo-seeds of the last round are among them.
    """
    parents = _parents(workspace, train_key)
    held = stored_held_out(workspace, task, train_key)
    known = task if held is None else without_seeds(task, held)
    pseudo = parents.get("pseudo", "")
    if pseudo:
        links = _stored_links(workspace, task, pseudo).numpy()
        links = beyond(links, known.seeds)
        known = known.with_seeds(np.concatenate([known.seeds, links]))
    return Known(known, parents)


def sample_key(workspace: Workspace, sampler: str, train_key: str) -> str:
    """The key of the mini-batches that a sampler made last, of these embeddings."""
    again = f"Run `clusterea sample {workspace.folder} --sampler {sampler}` first."
    if not workspace.has(f"sample-{sampler}"):
        raise DataError(workspace.folder, f"has no mini-batches of {sampler} yet. {again}")
    key = workspace.current(f"sample-{sampler}")
    if _parents(workspace, key).get("train", train_key) != train_key:
        raise DataError(
            workspace.folder, f"its mini-batches of {sampler} are of other embeddings. {again}"
        )
    return key


def stored_partition(workspace: Workspace, task: AlignmentTask, key: str) -> Partition:
    """The mini-batches of one sampler."""
    return read_artifact(workspace, key, partial(unpack_partition, sizes=entity_counts(task)))


def stored_similarity(workspace: Workspace, task: AlignmentTask) -> Similarity:
    """The similarity that was fused last."""
    key = current_key(workspace, "fuse", task)
    return read_artifact(workspace, key, partial(unpack_similarity, sizes=entity_counts(task)))


def matched_similarity(workspace: Workspace, task: AlignmentTask) -> Similarity:
    """The similarity that the links matched last were made of."""
    key = _parents(workspace, current_key(workspace, "match", task)).get("fuse", "")
    return read_artifact(workspace, key, partial(unpack_similarity, sizes=entity_counts(task)))


def stored_alignment(workspace: Workspace, task: AlignmentTask) -> Alignment:
    """The alignment that was matched last."""
    key = current_key(workspace, "match", task)
    return read_artifact(workspace, key, partial(unpack_alignment, sizes=entity_counts(task)))


def given_alignment(workspace: Workspace, task: AlignmentTask) -> Alignment:
    """The links that the run's files have: `stored_alignment`, or the surest of them."""
    match_key = current_key(workspace, "match", task)
    key = workspace.current(GIVEN) if workspace.has(GIVEN) else ""
    if _parents(workspace, key).get("match") != match_key:
        key = match_key
    return read_artifact(workspace, key, partial(unpack_alignment, sizes=entity_counts(task)))


def stored_description(workspace: Workspace, stage: str) -> dict[str, Any]:
    """What `align` wrote about the run; nothing where what `stage` made last is not of it."""
    path = workspace.folder / "run.json"
    if not path.is_file():
        return {}
    current = workspace.current(stage)
    try:
        found = unsealed(RUN, path.read_text())
        is_of_it = found["artifacts"][stage] == current
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(path, "is damaged; delete it to do without.") from error
    return found if is_of_it else {}


def stored_fusion(workspace: Workspace) -> tuple[FusionConfig, tuple[str, ...]]:
    """How `align` fused the embeddings of the run, and with which samplers; else the defaults."""
    described = stored_description(workspace, "train")
    if not described:
        return FusionConfig(), with_reverse(["cmcs", "iscs"])
    try:
        config = described["config"]
        return FusionConfig(**config["fusion"]), tuple(config["samplers"])
    except (KeyError, TypeError, InputError) as error:
        raise DataError(
            workspace.folder / "run.json", "is of another version; delete it to do without."
        ) from error


def is_matched(workspace: Workspace) -> bool:
    """Whether the alignment that was matched last is of the similarity that was fused last."""
    if not (workspace.has("fuse") and workspace.has("match")):
        return False
    of = _parents(workspace, workspace.current("match")).get("fuse")
    return of == workspace.current("fuse")


def fused_partitions(workspace: Workspace, task: AlignmentTask) -> dict[str, Partition]:
    """The mini-batches that the similarity fused last was made of, by sampler."""
    parents = _parents(workspace, workspace.current("fuse"))
    return {
        name: stored_partition(workspace, task, key)
        for name, key in parents.items()
        if not name.startswith("train") and workspace.find(key) is not None
    }


def _parents(workspace: Workspace, key: str) -> Mapping[str, str]:
    """Of which artifacts this one was made; nothing where it is not there any more."""
    if not key or workspace.find(key) is None:
        return {}
    found = workspace.recipe(key)["parents"]
    return found if isinstance(found, dict) else {}

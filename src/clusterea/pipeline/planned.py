"""`planned_stages`: the stages of a run in their order, before it starts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterea.config import Config, EncoderConfig, PropagationConfig
from clusterea.pipeline.learning import num_held_out
from clusterea.pipeline.rounds import Pass, Rounds, encodings, stage_label
from clusterea.types import AlignmentTask

FOUND = 0.65  # share of the smaller side's undecided entities that become pseudo-seeds


@dataclass(frozen=True, slots=True)
class Planned:
    """One stage: what it does, and what is in memory beside it."""

    label: str  # as an observer gets it
    kind: str  # training, propagation, names, features, translation, trust, a sampler, fusion, …
    pairs: int = 0  # that it learns from
    encoder: EncoderConfig | None = None
    structure: int = 0  # dimensions of the embeddings that it compares
    contents: int = 0  # dimensions of the vectors of names and features that it compares
    held: int = 0  # dimensions of all vectors in memory when it begins
    similarities: int = 0  # fused similarities in memory when it begins


def content_widths(config: Config, task: AlignmentTask | None) -> list[int]:
    """The dimensions of the vectors of names, features and translated names."""
    if task is None:
        return []
    own = [] if task.names is None else [config.names.dimensions] * (1 + config.names.translates)
    return own if task.features is None else [*own, task.features.source.shape[1]]


def width_of(encoders: Sequence[EncoderConfig]) -> int:
    """The dimensions of the embeddings of all these encoders together."""
    from clusterea.models import output_width

    return sum(map(output_width, encoders))


def planned_stages(task: AlignmentTask, config: Config) -> list[Planned]:
    """All stages of a run with outputs, if rounds go on as long as they may."""
    found = list(_contents(task, config))
    own = sum(_content_width(task, config).values())
    kept = 0  # dimensions of the vectors that earlier fits leave
    fits = num_held_out(task, config)
    for fit, held_out in enumerate(fits):
        stages = list(_of_fit(task, config, fit, held_out, own + kept, len(found) and fit))
        found += stages
        kept += _translated(task, config)
        if not fit:
            kept += width_of(encodings(Rounds.of(task, config).passes()[-1:]))
    held = own + kept
    if len(fits) > 1:
        found.append(
            Planned("fusion of both fits", "mean", held=held, similarities=len(fits)),
        )
    done = len(fits) + (len(fits) > 1)
    for kind in ("matching", "evaluation", "writing"):
        found.append(Planned(kind, kind, held=held, similarities=done))
    return found


def _content_width(task: AlignmentTask, config: Config) -> dict[str, int]:
    """The dimensions of the vectors that don't depend on the pairs."""
    found = {}
    if task.names is not None:
        found["names"] = config.names.dimensions
    if task.features is not None:
        found["features"] = task.features.source.shape[1]
    return found


def _translated(task: AlignmentTask, config: Config) -> int:
    """The dimensions of translated names; 0 without any."""
    return config.names.dimensions if task.names is not None and config.names.translates else 0


def _contents(task: AlignmentTask, config: Config) -> Iterator[Planned]:
    held = 0
    for name, width in _content_width(task, config).items():
        yield Planned(name, name, contents=width, held=held)
        held += width


def _of_fit(
    task: AlignmentTask, config: Config, fit: int, held_out: int, held: int, before: int
) -> Iterator[Planned]:
    """The stages of one fit, with `before` similarities of the fits before it."""
    rounds = Rounds.of(task, config)
    seeds = max(len(task.all_seeds) - held_out, 0)
    pseudo = int(FOUND * max(min(task.num_undecided), 0))
    folds = config.self_training.folds
    passes = rounds.passes()
    earlier: list[Pass] = []  # the pass before, if its embeddings are compared in the last fusion
    for each in passes:
        is_last = each is passes[-1]
        pairs = seeds + (pseudo * (folds - 1) // folds if folds > 1 else pseudo) * bool(each.round)
        made = held + width_of(encodings(earlier))
        for _, encoder in each.encoders:
            for _ in range(each.lessons):
                kind = "propagation" if isinstance(encoder, PropagationConfig) else "training"
                label = stage_label(kind, each.round, fit)
                yield Planned(label, kind, pairs, encoder, held=made, similarities=before)
                made += width_of([encoder])
        compared = encodings([*earlier, each] if is_last else [each])
        yield from _fused(task, config, each, fit, pairs, compared, made, before)
        if not is_last:
            label = stage_label("self-training", each.round + 1, fit)
            yield Planned(label, "self-training", held=made, similarities=before + 1)
        earlier = [each] if each.has_all else []


def _fused(
    task: AlignmentTask,
    config: Config,
    each: Pass,
    fit: int,
    pairs: int,
    compared: Sequence[EncoderConfig],
    held: int,
    before: int,
) -> Iterator[Planned]:
    """Sampling, translation, trust and fusion of one pass."""
    from clusterea.fusion import VIEWS

    structure, contents = width_of(compared), sum(content_widths(config, task))
    first = width_of(encodings([each])[:1])
    uses = any(VIEWS[name].in_mini_batches for name in config.fusion.views if name in VIEWS)
    for sampler in config.samplers if uses else ():
        label = stage_label(f"sampling: {sampler}", each.round, fit)
        yield Planned(label, sampler, pairs, structure=first, held=held, similarities=before)
    if translated := _translated(task, config):
        label = stage_label("translation", each.round, fit)
        yield Planned(
            label, "translation", pairs, contents=translated, held=held, similarities=before
        )
        held += translated
    for kind in ("trust", "fusion") if contents else ("fusion",):
        label = stage_label(kind, each.round, fit)
        yield Planned(
            label,
            kind,
            pairs,
            structure=structure,
            contents=contents,
            held=held,
            similarities=before,
        )

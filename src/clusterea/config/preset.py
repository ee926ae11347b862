"""Presets: the settings of all stages under one name, as data in `presets/*.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any

from clusterea.config.fusion import FusionConfig
from clusterea.config.matching import MatchingConfig
from clusterea.config.sampling import SamplingConfig
from clusterea.config.settings import with_stage_settings
from clusterea.config.training import TrainingConfig, training_config
from clusterea.errors import unknown_name

PRESETS = ("paper", "default", "fast")
STAGES = ("training", "sampling", "fusion", "matching")


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that the result of `align` depends on."""

    training: TrainingConfig
    sampling: SamplingConfig
    fusion: FusionConfig
    matching: MatchingConfig
    samplers: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every field of every stage."""
        return asdict(self)


def preset(
    name: str,
    larger_side: int,
    *,
    model: str | None = None,
    samplers: Sequence[str] | None = None,
    seed: int = 0,
    settings: Sequence[str] = (),
) -> Config:
    """The settings called `name`, for graphs of this size, changed as asked.

    Args:
        name: paper, default or fast.
        larger_side: Entities of the larger graph: K and the epochs depend on it.
        model: Another encoder than the preset's.
        samplers: Others than the preset's; `iscs` stands for both its directions.
        seed: Of every stage.
        settings: As `training.epochs=10`.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    table = tomllib.loads(files("clusterea").joinpath(f"presets/{name}.toml").read_text())
    for row in table.get("sizes", []):  # rising; the first that is large enough counts
        if larger_side <= row.get("entities", larger_side):
            for stage in STAGES:
                table[stage] = table.get(stage, {}) | row.get(stage, {})
            break
    training = table.get("training", {})
    own = training.pop("model", TrainingConfig().model)
    if model not in (None, own):
        training.pop("epochs", None)  # of the preset's own model
    config = Config(
        replace(training_config(model or own), **training),
        SamplingConfig(**table.get("sampling", {})),
        FusionConfig(**table.get("fusion", {})),
        MatchingConfig(**table.get("matching", {})),
        both_ways(samplers if samplers is not None else table["samplers"]),
    )
    return config_with(config, [f"{stage}.seed={seed}" for stage in STAGES] + list(settings))


def config_with(config: Config, settings: Sequence[str]) -> Config:
    """The config changed as `training.epochs=10`, `sampling.num_batches=8` and the like say."""
    stages: dict[str, Any] = {stage: getattr(config, stage) for stage in STAGES}
    return replace(config, **with_stage_settings(stages, settings))


def both_ways(samplers: Sequence[str]) -> tuple[str, ...]:
    """The samplers, with `iscs` in both directions: the paper always means both."""
    named: list[str] = []
    for sampler in samplers:
        for each in (sampler, f"{sampler}-reverse") if sampler == "iscs" else (sampler,):
            if each not in named:
                named.append(each)
    return tuple(named)

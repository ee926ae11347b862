"""Presets: settings of the whole pipeline under one name, from `presets/*.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import Any, TypeAlias

from clusterea.config.fusion import FusionConfig
from clusterea.config.matching import MatchingConfig
from clusterea.config.names import NAMES, NamesConfig
from clusterea.config.propagation import LABEL_PROPAGATION, PropagationConfig
from clusterea.config.sampling import SamplingConfig, with_reverse
from clusterea.config.self_training import SelfTrainingConfig
from clusterea.config.settings import with_stage_settings
from clusterea.config.training import TrainingConfig, training_config
from clusterea.errors import InputError, unknown_name

PRESETS = ("paper", "default", "fast")
SECTIONS = ("training", "propagation", "names", "sampling", "fusion", "self_training", "matching")
EncoderConfig: TypeAlias = TrainingConfig | PropagationConfig


@dataclass(frozen=True, slots=True, repr=False)
class Config:
    """Everything that the result of `align` depends on."""

    training: TrainingConfig  # of encoders that are trained
    propagation: PropagationConfig  # of `label-propagation`
    names: NamesConfig  # of `names`, where the data have names
    sampling: SamplingConfig
    fusion: FusionConfig
    self_training: SelfTrainingConfig
    matching: MatchingConfig
    models: tuple[str, ...]  # the encoders; the similarities of several are added
    samplers: tuple[str, ...]

    def encoders(self) -> tuple[EncoderConfig, ...]:
        """The settings of each encoder of structure. A repeated name gets another seed."""
        found: list[EncoderConfig] = []
        for index, name in enumerate(self.models):
            if name == NAMES:  # it encodes no structure, and takes part where there are names
                continue
            again = self.models[:index].count(name)
            own: EncoderConfig = self.propagation
            if name == self.training.model:
                own = self.training
            elif name != LABEL_PROPAGATION:
                own = training_config(name, seed=self.training.seed)
            found.append(replace(own, seed=own.seed + again))
        return tuple(found)

    def __repr__(self) -> str:
        samplers = ", ".join(self.samplers) or "none"
        return (
            f"Config(models: {', '.join(self.models)}; samplers: {samplers}; "
            f"rounds of self-training: {self.self_training.rounds}; seed: {self.fusion.seed})"
        )

    @property
    def has_trained(self) -> bool:
        """Whether some encoder is trained."""
        return any(isinstance(each, TrainingConfig) for each in self.encoders())

    def to_dict(self) -> dict[str, Any]:
        """Every field of every section."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Config:
        """What `to_dict` returned, also after a way through JSON."""
        return cls(
            TrainingConfig(**values["training"]),
            PropagationConfig(**values["propagation"]),
            NamesConfig(**values["names"]),
            SamplingConfig(**values["sampling"]),
            FusionConfig(**values["fusion"]),
            SelfTrainingConfig(**values["self_training"]),
            MatchingConfig(**values["matching"]),
            tuple(values["models"]),
            tuple(values["samplers"]),
        )


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
        model: An encoder instead of the preset's, or several: `dual-amn,label-propagation`.
        samplers: Samplers instead of the preset's; `iscs` stands for both its directions.
        seed: Of every section.
        settings: Single changes, such as `training.epochs=10`.
    """
    if name not in PRESETS:
        raise unknown_name("preset", name, PRESETS)
    table = tomllib.loads(files("clusterea").joinpath(f"presets/{name}.toml").read_text())
    for row in table.get("sizes", []):  # ascending; the first that is large enough is used
        if larger_side <= row.get("entities", larger_side):
            for section in SECTIONS:
                table[section] = table.get(section, {}) | row.get(section, {})
            break
    named = tuple(table["models"] if model is None else listed(model))
    if not named:
        raise InputError(f"--model must name at least one encoder. Got {model!r} instead.")
    own, trained = _trained(table["models"]), _trained(named)
    training = table.get("training", {})
    if trained != own:
        for field in ("epochs", "seeds_per_step"):  # they suit the preset's own model
            training.pop(field, None)
    config = Config(
        replace(training_config(trained), **training),
        PropagationConfig(**table.get("propagation", {})),
        NamesConfig(**table.get("names", {})),
        SamplingConfig(**table.get("sampling", {})),
        FusionConfig(**table.get("fusion", {})),
        SelfTrainingConfig(**table.get("self_training", {})),
        MatchingConfig(**table.get("matching", {})),
        named,
        with_reverse(samplers if samplers is not None else table["samplers"]),
    )
    return config_with(config, [f"{section}.seed={seed}" for section in SECTIONS] + list(settings))


def config_with(config: Config, settings: Sequence[str]) -> Config:
    """The config with changes such as `training.epochs=10` and `sampling.num_batches=8`."""
    sections: dict[str, Any] = {section: getattr(config, section) for section in SECTIONS}
    return replace(config, **with_stage_settings(sections, settings))


def _trained(models: Sequence[str]) -> str:
    """The first trained encoder, or the default one."""
    others = (each for each in models if each not in (LABEL_PROPAGATION, NAMES))
    return next(others, TrainingConfig().model)


def listed(text: str) -> list[str]:
    """The names in `one, two`."""
    return [name.strip() for name in text.split(",") if name.strip()]

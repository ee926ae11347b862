"""Settings given as text: `epochs=10`, or `training.epochs=10` where there are several stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, TypeVar

from clusterea.errors import InputError, unknown_name

Config = TypeVar("Config")
# A field that has an option of its own, which sets more than the field.
OPTIONS = {"model": "--model"}


def with_settings(config: Config, settings: Sequence[str], stage: str = "training") -> Config:
    """One stage's config changed as `epochs=10` or `training.epochs=10` say, all at once."""
    return with_stage_settings({stage: config}, settings)[stage]


def with_stage_settings(
    configs: Mapping[str, Config], settings: Sequence[str]
) -> dict[str, Config]:
    """The configs of several stages, by name, changed as `training.epochs=10` and the like say.

    The stage may be left out where there is one only.
    """
    changes: dict[str, dict[str, Any]] = {stage: {} for stage in configs}
    for text in settings:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise InputError(f"--set must be FIELD=VALUE, as epochs=10. Got {text!r} instead.")
        stage, dot, field = name.rpartition(".")
        if not dot and len(configs) == 1:
            (stage,) = configs
        if stage not in configs:
            raise _unknown(configs, name)
        changes[stage][field] = _value(configs[stage], field, value.strip())
    return {stage: replace(configs[stage], **changes[stage]) for stage in configs}  # type: ignore[type-var]


def _unknown(configs: Mapping[str, Any], name: str) -> InputError:
    """The answer to a setting of no stage: which stages have one of that name, or else all."""
    known = [f"{stage}.{each.name}" for stage in configs for each in fields(configs[stage])]
    owners = [each for each in known if each.endswith(f".{name}")]
    if owners:
        return InputError(f"which stage's {name}? Say {' or '.join(owners)}.")
    return unknown_name("setting", name, known)


def _value(config: Any, name: str, text: str) -> Any:
    """The field's value that the text stands for."""
    known = {field.name: field for field in fields(config)}
    if name not in known:
        raise unknown_name("setting", name, known)
    if name in OPTIONS:
        raise InputError(f"--set {name}=…: choose the {name} with {OPTIONS[name]}.")
    try:
        return _parse(text, str(known[name].type))
    except ValueError:
        raise InputError(f"{name} must be of type {known[name].type}. Got {text!r}.") from None


def _parse(value: str, kind: str) -> Any:
    if "None" in kind and value.lower() in ("none", "all", ""):
        return None
    if kind.startswith("int"):
        return int(value.replace("_", "").replace(",", ""))
    if kind == "float":
        return float(value)
    if kind == "bool":
        if value.lower() not in ("true", "false"):
            raise ValueError(value)
        return value.lower() == "true"
    if kind.startswith("tuple"):
        return tuple(name.strip() for name in value.split(",") if name.strip())
    return value

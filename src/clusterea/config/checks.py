"""Checks of single settings, with one error message for each kind."""

from __future__ import annotations

from typing import Any, get_args

from clusterea.errors import InputError, unknown_name


def check_choice(name: str, value: str, choices: Any) -> None:
    """Raises unless `value` is one of the literals of `choices`."""
    if value not in get_args(choices):
        raise unknown_name(name, value, get_args(choices))


def check_least(name: str, value: int, least: int) -> None:
    """Raises unless `value` is at least `least`."""
    if value < least:
        raise InputError(f"{name} must be an int in [{least}, inf). Got {value} instead.")


def check_not_negative(name: str, value: float) -> None:
    """Raises unless `value` is a finite number of zero or more."""
    if not 0 <= value < float("inf"):
        raise InputError(f"{name} must be a number in [0, inf). Got {value} instead.")


def check_positive(name: str, value: float) -> None:
    """Raises unless `value` is a finite number above zero."""
    if not 0 < value < float("inf"):
        raise InputError(f"{name} must be a number in (0, inf). Got {value} instead.")


def check_share(name: str, value: float) -> None:
    """Raises unless `value` is above zero and at most one."""
    if not 0 < value <= 1:
        raise InputError(f"{name} must be a number in (0, 1]. Got {value} instead.")


def check_bounds(least: float, top: int | None = None) -> None:
    """Refuses values of `--min-confidence` and `--top` that make no sense."""
    if not 0 <= least <= 1:
        raise InputError(f"--min-confidence must be a number in [0, 1]. Got {least} instead.")
    if top is not None and top < 0:
        raise InputError(f"--top must be an int in [0, inf). Got {top} instead.")

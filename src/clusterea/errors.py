"""The errors that this package raises on purpose.

An `InputError` means wrong input or usage: the command line prints its message and exits with 2.
Any other error is a bug, and exits with 1.

Messages name options as on the command line (`--seeds-share`). Functions for Python callers have
the decorator `names_arguments`, which turns options into arguments (`seeds_share`).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

Value = TypeVar("Value")
Parameters = ParamSpec("Parameters")
MOST_LISTED = 15  # names that a message lists in full
MOST_OFFERED = 5  # names that a message suggests, if there are more
CLOSE = 0.75  # similarity of a typo to the right name
STANDARD_INPUT = Path("-")
_LONGEST_QUOTE = 200
_COPIES = "clusterea-copy"
_COPY = re.compile(rf"^.*/{_COPIES}/([^/:]+):/")
_LONG_WORD = re.compile(r"\S{1000,}")
# Options whose argument is not the option's name with underscores.
_ARGUMENTS = {"out": "run", "set": "settings", "label-property": "label_properties"}
_SETTING = re.compile(r"(?<![^\s(`])--set ([a-z_]+\.[a-z_]+)=(\w+)")
# An option, alone or with a value: `--fold 3`, `--device=cpu`.
_OPTION = re.compile(r"(?<![^\s(`])--([a-z][a-z-]*[a-z])(?: (?=\d)|=(\w+))?")
_POSITIONAL = re.compile(r"(?<![^\s(`])(SOURCE|TARGET)\b")


def cut(text: object) -> str:
    """The text, cut to at most 200 characters."""
    whole = str(text)
    return whole if len(whole) <= _LONGEST_QUOTE else f"{whole[: _LONGEST_QUOTE - 1]}…"


def shown_path(path: Path | str) -> str:
    """The name of an input in a message."""
    return "standard input" if Path(path) == STANDARD_INPUT else address(path)


def address(path: Path | str) -> str:
    """The name of a file in a message; for one in the local copy of a run, its URI."""
    return _COPY.sub(r"\1://", str(path))


def copy_path(folder: Path, uri: str) -> Path:
    """The path in a folder for the local copy of what is at a URI; `address` is the inverse."""
    scheme, _, rest = uri.partition("://")
    return folder / _COPIES / f"{scheme}:" / rest.strip("/")


class ClusterEAError(Exception):
    """The base of all errors of this package."""


class InputError(ClusterEAError, ValueError):
    """Input can't be used. The message says what was expected, what it got, and what to do."""

    def __init__(self, message: str) -> None:
        # An argument may be as long as the shell allows.
        super().__init__(_LONG_WORD.sub(lambda word: cut(word[0]), message))


class DataError(InputError):
    """A file can't be used. The message starts with the file and, if known, the line."""

    def __init__(self, path: Path | str, problem: str, *, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        where = shown_path(path) if line is None else f"{shown_path(path)} line {line}"
        # One line, even if a parser's message has several.
        super().__init__(_printable(f"{where}: {' '.join(problem.split())}"))


class DamagedError(DataError):
    """A file of a run is missing or damaged."""


class DownloadError(InputError):
    """A download failed, or has the wrong checksum."""


class Stopped(BaseException):  # no error: nothing went wrong
    """A signal asked the command line to end. Typer would catch a KeyboardInterrupt."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code
        super().__init__(exit_code)


def _printable(text: str) -> str:
    """The text with control characters escaped, which could change a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def look_up(kind: str, name: str, known: Mapping[str, Value]) -> Value:
    """The value of `name`; for an unknown name, an error that lists the known ones."""
    if name not in known:
        raise unknown_name(kind, name, known)
    return known[name]


def unknown_name(kind: str, name: str, known: Iterable[str]) -> InputError:
    """An error that lists the known names and the nearest one; only the nearest of many."""
    choices = list(known)
    if len(choices) > MOST_LISTED:
        return InputError(f"unknown {kind} '{name}'. {_nearest_of_many(name, choices)}")
    message = f"unknown {kind} '{name}'; choose one of {', '.join(choices)}."
    nearest = difflib.get_close_matches(name, choices, n=1)
    if nearest:
        message += f" Did you mean '{nearest[0]}'?"
    return InputError(message)


def as_arguments(message: str) -> str:
    """The message with arguments in place of options: `--seeds-share 0.3` as `seeds_share=0.3`."""

    def argument(option: re.Match[str]) -> str:
        name = _ARGUMENTS.get(option[1], option[1].replace("-", "_"))
        if option[2]:
            return f"{name}={_literal(option[2])}"
        return f"{name}=" if option[0].endswith(" ") else name

    def setting(found: re.Match[str]) -> str:
        return f"settings={{{found[1]!r}: {_literal(found[2])}}}"

    told = _OPTION.sub(argument, _SETTING.sub(setting, message))
    return _POSITIONAL.sub(lambda name: name[0].lower(), told)


def _literal(value: str) -> str:
    return value if value.isdecimal() else repr(value)


def names_arguments(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """Makes the `InputError`s of a function name arguments instead of options."""

    @wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Value:
        try:
            return function(*args, **kwargs)
        except InputError as error:
            error.args = (as_arguments(str(error)),)
            raise

    return called


def _nearest_of_many(name: str, choices: list[str]) -> str:
    """The nearest names. A name without a stage, as `epoch`, is near to `training.epochs`."""

    def likeness(choice: str) -> float:
        compared = choice if "." in name else choice.rpartition(".")[2]
        return difflib.SequenceMatcher(None, name, compared).ratio()

    nearest = sorted(choices, key=likeness, reverse=True)[:MOST_OFFERED]
    close = [choice for choice in nearest if likeness(choice) >= CLOSE]
    close = [choice for choice in close if likeness(choice) >= likeness(close[0]) - 0.1]
    if close:
        return f"Did you mean {' or '.join(repr(choice) for choice in close)}?"
    return f"The nearest of {len(choices)} are {', '.join(nearest)}."

"""`Store`: what stages made, each under its key, on disk where the run has a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clusterea.errors import DamagedError
from clusterea.types import Pair, Stored
from clusterea.workspace import Warn, Workspace, ignore, recipe_key

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value")
Kept = TypeVar("Kept", bound=Stored)
COMMANDS = ("train", "sample", "fuse", "match")  # stages that have a command of their own


class Made(Generic[Value]):
    """A value and the key that names how it was made.

    A value that an earlier run left on disk is read when it is first asked for: a run that only
    matches again reads no embeddings.
    """

    def __init__(self, key: str, get: Callable[[], Value], *, reused: bool = False) -> None:
        self.key = key
        self.reused = reused  # it was there already
        self._get: Callable[[], Value] | None = get
        self._value: Value

    @classmethod
    def of(cls, key: str, value: Value) -> Made[Value]:
        """A value that is at hand."""
        return cls(key, lambda: value)

    @property
    def value(self) -> Value:
        if self._get is not None:
            self._value, self._get = self._get(), None
        return self._value


class Store:
    """Finds what a stage made in the run's folder; else makes it and keeps it there.

    A damaged artifact is made again, and `warn` is told. Without a folder everything is made.
    """

    def __init__(self, workspace: Workspace | None = None, warn: Warn = ignore) -> None:
        self.workspace = workspace
        self.warn = warn

    def has(self, key: str) -> bool:
        """Whether the artifact is there."""
        return self.workspace is not None and self.workspace.has(key)

    def made(
        self,
        stage: str,
        recipe: Mapping[str, Any],
        parents: Mapping[str, str],
        kind: type[Kept],
        num_entities: Pair[int],
        make: Callable[[str], Kept],
    ) -> Made[Kept]:
        """What a stage makes of its settings and parents.

        Args:
            stage: Its name; the first part of the key.
            recipe: The settings that the result depends on.
            parents: The keys of what it is made from, by role.
            kind: What it is.
            num_entities: Of each side.
            make: Computes it, given its key.
        """
        key = recipe_key(stage, recipe, parents)
        described = {"stage": stage, "config": dict(recipe), "parents": dict(parents)}

        def make_and_keep() -> Kept:
            value = make(key)
            if self.workspace is not None:
                self.workspace.save_tensors(key, described, value.tensors())
            return value

        def read_or_make() -> Kept:
            assert self.workspace is not None
            try:
                return read(self.workspace, key, kind, num_entities)
            except DamagedError as error:
                self.warn(f"{error.path} is damaged or missing: the stage {stage} is run again.")
                self.workspace.remove(key)
                return make_and_keep()

        if self.has(key):
            return Made(key, read_or_make, reused=True)
        return Made.of(key, make_and_keep())


def read(workspace: Workspace, key: str, kind: type[Kept], num_entities: Pair[int]) -> Kept:
    """What a stage made. A damaged artifact is named, with what to do about it."""
    path = workspace.tensors_file(key)
    try:
        tensors: Mapping[str, Tensor] = workspace.load_tensors(key)
        return kind.from_tensors(tensors, num_entities)
    except FileNotFoundError as error:
        raise DamagedError(path, f"is missing; {_again(key)}") from error
    except DamagedError as error:
        what = "damaged" if error.path.exists() else "missing"
        raise DamagedError(error.path, f"is {what}; {_again(key)}") from error
    except (KeyError, ValueError, TypeError, RuntimeError, IndexError) as error:
        # The file is as it was written, but it was not written for this run's graphs.
        raise DamagedError(path, f"is damaged ({error}); {_again(key)}") from error


def _again(key: str) -> str:
    stage = key.partition("-")[0]
    which = f"`clusterea {stage}` or `align`" if stage in COMMANDS else "`clusterea align`"
    return f"run {which} again to have it made anew."

"""`Store`: the results of stages by key, on disk if the run has a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clusterea.errors import DamagedError, address
from clusterea.types import Pair, Stored
from clusterea.workspace import Warn, Workspace, ignore, recipe_key

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value")
Kept = TypeVar("Kept", bound=Stored)
COMMANDS = ("train", "sample", "fuse", "match")  # stages that have a command of their own


class Made(Generic[Value]):
    """A value and its key.

    A stored value is read when it is first used, so a run that only matches reads no embeddings.
    """

    def __init__(self, key: str, get: Callable[[], Value], *, reused: bool = False) -> None:
        self.key = key
        self.reused = reused  # it was stored by an earlier run
        self._get: Callable[[], Value] | None = get
        self._value: Value

    @classmethod
    def of(cls, key: str, value: Value) -> Made[Value]:
        """A value that is in memory."""
        return cls(key, lambda: value)

    @property
    def value(self) -> Value:
        if self._get is not None:
            self._value, self._get = self._get(), None
        return self._value


class Store:
    """Reads the result of a stage from the run's folder, or computes and stores it.

    A damaged artifact is computed again, with a warning. Without a folder, nothing is stored.
    """

    def __init__(self, workspace: Workspace | None = None, warn: Warn = ignore) -> None:
        self.workspace = workspace
        self.warn = warn

    def has(self, key: str) -> bool:
        """Whether the artifact is stored."""
        return self.workspace is not None and self.workspace.has(key)

    def made(
        self,
        stage: str,
        recipe: Mapping[str, Any],
        parents: Mapping[str, str],
        kind: type[Kept],
        num_entities: Pair[int],
        make: Callable[[str], Kept],
        stored: Callable[[str], None] | None = None,
    ) -> Made[Kept]:
        """The result of a stage with these settings and parents, stored or computed.

        Args:
            stage: The name of the stage; the first part of the key.
            recipe: The settings that the result depends on.
            parents: The keys of its inputs, by role.
            kind: The type of the result.
            num_entities: The number of entities of each side.
            make: Computes the result, given its key.
            stored: Called with the key once the result is stored.
        """
        key = recipe_key(stage, recipe, parents)
        described = {"stage": stage, "config": dict(recipe), "parents": dict(parents)}

        def make_and_keep() -> Kept:
            value = make(key)
            if self.workspace is not None:
                self.workspace.save_tensors(key, described, value.tensors())
            if stored is not None:
                stored(key)
            return value

        def read_or_make() -> Kept:
            assert self.workspace is not None
            try:
                return read(self.workspace, key, kind, num_entities)
            except DamagedError as error:
                path = address(error.path)
                self.warn(f"{path} is damaged or missing: the stage {stage} is run again.")
                self.workspace.remove(key)
                return make_and_keep()

        if self.has(key):
            if stored is not None:
                stored(key)
            return Made(key, read_or_make, reused=True)
        return Made.of(key, make_and_keep())


def read(workspace: Workspace, key: str, kind: type[Kept], num_entities: Pair[int]) -> Kept:
    """Reads the result of a stage; the error for a damaged artifact says what to do."""
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
        # The file is intact, but does not fit this run's graphs.
        raise DamagedError(path, f"is damaged ({error}); {_again(key)}") from error


def _again(key: str) -> str:
    stage = key.partition("-")[0]
    which = f"`clusterea {stage}` or `align`" if stage in COMMANDS else "`clusterea align`"
    return f"run {which} again to make it."

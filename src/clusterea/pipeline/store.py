"""`Store`: the results of stages by key, on disk if the run has a folder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clusterea.errors import DamagedError, address
from clusterea.types import Pair, Stored
from clusterea.workspace import Warn, Workspace, ignore, recipe_key

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value")
Kept = TypeVar("Kept", bound=Stored)
LARGE = 1 << 26  # bytes of a result that is written beside the next stages
MOST_WAITING = 2  # of these results, beside the one that is being written
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


@dataclass(frozen=True, slots=True)
class _Writing:
    """A result that is written in another thread."""

    key: str
    done: Future[None]
    stored: Callable[[str], None] | None


class Store:
    """Reads the result of a stage from the run's folder, or computes and stores it.

    A damaged artifact is computed again, with a warning. Without a folder, nothing is stored.

    As a context manager, it writes large results in another thread, in the order in which they are
    made. An error in writing is raised by a later call of `made` or `wait`, or at the end of the
    block. After the block, everything is on disk.
    """

    def __init__(self, workspace: Workspace | None = None, warn: Warn = ignore) -> None:
        self.workspace = workspace
        self.warn = warn
        self._writer: ThreadPoolExecutor | None = None
        self._writing: deque[_Writing] = deque()

    def __enter__(self) -> Store:
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._writer is not None
        self._writer.shutdown()
        self._writer = None  # what is made later is stored at once
        try:
            self.wait()
        except Exception:
            self._writing.clear()
            if error is None:  # else that one is told
                raise

    def has(self, key: str) -> bool:
        """Whether the artifact is stored, or being stored."""
        if self.workspace is None:
            return False
        return self._is_writing(key) or self.workspace.has(key)

    def wait(self, most: int = 0) -> None:
        """Waits until at most so many results are being written or wait for it.

        Raises:
            DataError: One of the others can't be written.
        """
        while self._writing and (len(self._writing) > most or self._writing[0].done.done()):
            first = self._writing.popleft()
            first.done.result()
            if first.stored is not None:
                first.stored(first.key)

    def _is_writing(self, key: str) -> bool:
        return any(each.key == key for each in self._writing)

    def _save(
        self,
        key: str,
        recipe: Mapping[str, Any],
        value: Stored,
        stored: Callable[[str], None] | None,
    ) -> None:
        """Stores a result now, or later if it is large."""
        if self.workspace is not None:
            # What is on a GPU is copied here: the GPU may record a graph while another thread runs.
            tensors = {name: each.detach().cpu() for name, each in value.tensors().items()}
            is_large = sum(each.nbytes for each in tensors.values()) >= LARGE
            if is_large and self._writer is not None:
                self.wait(MOST_WAITING)
                done = self._writer.submit(self.workspace.save_tensors, key, recipe, tensors)
                self._writing.append(_Writing(key, done, stored))
                return
            self.workspace.save_tensors(key, recipe, tensors)
        if stored is not None:
            stored(key)

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
            self._save(key, described, value, stored)
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

        self.wait(0 if self._is_writing(key) else 1 + MOST_WAITING)  # tells of an error, if any
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

"""`Pair`: the two sides of an alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from clusterea.in_threads import in_threads

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Pair(Generic[A]):
    """A value for the source side and one for the target side."""

    source: A
    target: A

    def swap(self) -> Pair[A]:
        """The same two values with their sides exchanged."""
        return Pair(self.target, self.source)

    def map(self, function: Callable[[A], B]) -> Pair[B]:
        """The results of `function` for each side."""
        return Pair(function(self.source), function(self.target))

    def map_at_once(self, function: Callable[[A], B]) -> Pair[B]:
        """As `map`, with a thread for each side."""
        return Pair(*in_threads(function, self))

    def zip(self, other: Pair[B]) -> Pair[tuple[A, B]]:
        """Each side together with the same side of `other`."""
        return Pair((self.source, other.source), (self.target, other.target))

    def __iter__(self) -> Iterator[A]:
        yield self.source
        yield self.target

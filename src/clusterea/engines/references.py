"""`replaced`: arguments of a unit with other things in place of references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from clusterea.types import Pair


def replaced(arguments: Any, kind: type[Any], replace: Callable[[Any], Any]) -> Any:
    """The arguments, with `replace` of each object of this kind.

    It looks into lists, tuples and pairs, and those in them.
    """
    if isinstance(arguments, kind):
        return replace(arguments)
    if type(arguments) is Pair:
        return arguments.map(lambda side: replaced(side, kind, replace))
    if type(arguments) in (list, tuple):
        return type(arguments)(replaced(each, kind, replace) for each in arguments)
    return arguments

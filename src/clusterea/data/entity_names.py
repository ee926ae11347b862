"""Which names of the entities are compared: labels, readable parts of ids, or none."""

from __future__ import annotations

from dataclasses import dataclass

from clusterea.data.blank_nodes import is_blank
from clusterea.data.readable_names import comparable, is_opaque, readable
from clusterea.errors import InputError, cut
from clusterea.types import Names, Pair, Texts

NAMES_FROM = ("auto", "labels", "iris", "none")


@dataclass(frozen=True, slots=True)
class EntityNames:
    """The names to compare, and a sentence for the user on what was found."""

    texts: Pair[Texts] | None  # normalized; None: names are not used
    note: str = ""
    nameless: tuple[str, ...] = ()  # the sides without any name, if names were looked for


def entity_names(how: str, entities: Pair[Names], labels: Pair[Texts | None]) -> EntityNames:
    """The names of the entities of both sides.

    Args:
        how: `labels`; `iris`: the readable part of an entity's id; `auto`: labels, and the readable
            part of the id where an entity has no label; `none`.
        entities: Their ids.
        labels: Their labels, where there are any.
    """
    if how == "none":
        return EntityNames(None)
    if how == "labels" and any(side is None for side in labels):
        sides = zip(("source", "target"), labels, strict=True)
        without = [side for side, found in sides if found is None]
        which = "neither graph has" if len(without) > 1 else f"the {without[0]} graph has no"
        raise InputError(
            f"--names labels: {which} labels. Name their RDF property with "
            "--label-property, give tables of names with --name-files, or use the ids with "
            "--names iris."
        )
    nothing = entities.map(lambda side: Texts.of_lists([[]] * len(side)))
    stated = labels.zip(nothing).map(lambda side: side[1] if side[0] is None else side[0])
    used = nothing if how == "iris" else stated.map(comparable)
    ids = nothing if how == "labels" else entities.map(lambda side: comparable(readable(side)))
    texts = used.zip(ids).map(lambda side: side[0].or_else(side[1]))
    if not all(len(side.values) for side in texts):
        each = zip(("source", "target"), texts, strict=True)
        nameless = tuple(side for side, names in each if not len(names.values))
        return EntityNames(None, _unreadable(entities, texts), nameless)
    totals = entities.map(lambda side: max(int((~is_blank(side)).sum()), 1))
    shares = used.zip(totals).map(lambda side: int((side[0].counts > 0).sum()) / side[1])
    every = texts.zip(totals).map(lambda side: int((side[0].counts > 0).sum()) / side[1])
    from_ids = every.zip(shares).map(lambda side: side[0] - side[1])
    found = [
        f"{what} for {_percent(each.source)} and {_percent(each.target)} of entities"
        for what, each in (("labels", shares), ("readable ids", from_ids))
        if any(each)
    ]
    return EntityNames(texts, f"Names: {', '.join(found)}.")


def _unreadable(entities: Pair[Names], texts: Pair[Texts]) -> str:
    """Why no names are used, with an example."""
    for names, found in entities.zip(texts):
        if not len(found.values) and len(names):
            first = readable(names[:1]).values
            example = first[0].as_py() if len(first) else names[0]
            if len(first) and is_opaque(first)[0]:
                return f"No names are used: ids such as {cut(repr(example))} are not readable."
    return "No names are used: none were found."


def _percent(share: float) -> str:
    """As 92 %; a share below 1 is never 100 %, and one above 0 never 0 %."""
    if 0 < share < 1:
        return f"{min(max(100 * share, 0.1), 99.9):.{0 if 1 <= 100 * share <= 99 else 1}f} %"
    return f"{100 * share:.0f} %"

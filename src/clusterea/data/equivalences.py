"""The predicates that state an equivalence, and the number of links by each."""

from __future__ import annotations

from collections.abc import Mapping

_OWL = "http://www.w3.org/2002/07/owl#"
_SKOS = "http://www.w3.org/2004/02/skos/core#"
SAME_AS = f"{_OWL}sameAs"
CLOSE_MATCH = f"{_SKOS}closeMatch"  # weaker than the others, so its links are last
EQUIVALENCES = {
    SAME_AS: "owl:sameAs",
    f"{_OWL}equivalentClass": "owl:equivalentClass",
    f"{_OWL}equivalentProperty": "owl:equivalentProperty",
    f"{_SKOS}exactMatch": "skos:exactMatch",
    CLOSE_MATCH: "skos:closeMatch",
}  # other predicates (broader, related, …) state no equivalence
LISTED = ", ".join(EQUIVALENCES.values())


def counted(links: Mapping[str, int]) -> str:
    """The number of links by each predicate, as a message."""
    parts = [f"{count:,} by {name}" for name, count in links.items() if count]
    told = f"{sum(links.values()):,} links: {', '.join(parts)}"
    if links.get(EQUIVALENCES[CLOSE_MATCH]):
        told += " (a close match is taken for a link)"
    return told

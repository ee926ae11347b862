"""Links as RDF: `owl:sameAs` in N-Triples, and the Alignment API's RDF/XML."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from clusterea.data.equivalences import SAME_AS
from clusterea.data.name_iris import NAMESPACES, to_iris
from clusterea.export.rows import link_batches, write_lines
from clusterea.types import Alignment, Names, Pair, Texts

_HEAD = """\
<?xml version="1.0" encoding="utf-8"?>
<rdf:RDF xmlns="http://knowledgeweb.semanticweb.org/heterogeneity/alignment#"
         xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<!-- {note} -->
<Alignment>
  <xml>yes</xml>
  <level>0</level>
  <type>{type}</type>
  <onto1><Ontology rdf:about="urn:clusterea:source"/></onto1>
  <onto2><Ontology rdf:about="urn:clusterea:target"/></onto2>
"""
_CELL = (
    '  <map><Cell><entity1 rdf:resource="',
    '"/><entity2 rdf:resource="',
    '"/><relation>=</relation><measure rdf:datatype="http://www.w3.org/2001/XMLSchema#float">',
    "</measure></Cell></map>",
)
_FOOT = "</Alignment>\n</rdf:RDF>\n"


def write_ntriples(
    alignment: Alignment, names: Pair[Names], path: Path, _labels: Pair[Texts] | None = None
) -> None:
    """Writes links as `owl:sameAs`, without confidence and labels."""
    with path.open("wb") as file:
        for batch in link_batches(alignment, _iris(names)):
            # A valid IRI has no characters that N-Triples escapes.
            write_lines(file, "<", batch["source"], f"> <{SAME_AS}> <", batch["target"], "> .")


def write_oaei(
    alignment: Alignment, names: Pair[Names], path: Path, _labels: Pair[Texts] | None = None
) -> None:
    """Writes links as cells of the Alignment API (level 0), the format of the OAEI's tools.

    The format has one name, `measure`, for confidence and score. A comment says which it is.
    """
    texts = _iris(names).map(lambda iris: pc.replace_substring(iris, "&", "&amp;"))
    begin, between, relation, end = _CELL
    with path.open("wb") as file:
        kind = "11" if _is_one_to_one(alignment) else "**"
        file.write(_HEAD.format(note=alignment.confidence_note, type=kind).encode())
        for batch in link_batches(alignment, texts):
            source, target, confidence = batch.columns
            write_lines(file, begin, source, between, target, relation, confidence, end)
        file.write(_FOOT.encode())


def _iris(names: Pair[Names]) -> Pair[pa.Array]:
    return names.zip(NAMESPACES).map(lambda side: to_iris(side[0].arrow, side[1]))


def _is_one_to_one(alignment: Alignment) -> bool:
    return all(len(side.unique()) == len(side) for side in alignment.links.T)

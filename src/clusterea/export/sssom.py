"""Links as SSSOM: TSV with a YAML head, and identifiers as CURIEs."""

from __future__ import annotations

import uuid
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.data.name_iris import NAMESPACES, to_uris
from clusterea.export.curies import curies
from clusterea.export.rows import link_batches, unmatched_batches, write_lines
from clusterea.types import Alignment, Names, Pair, Texts
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE

COLUMNS = ("subject_id", "predicate_id", "object_id", "mapping_justification")
LABELED_COLUMNS = (
    *("subject_id", "subject_label", "predicate_id"),
    *("object_id", "object_label", "mapping_justification"),
)
PREDICATE = "owl:sameAs"  # the same predicate as in N-Triples
JUSTIFICATION = "semapv:StructuralMatching"
ALL_GROUNDS = BY_STRUCTURE | BY_NAMES | BY_FEATURES
SEVERAL = "semapv:CompositeMatching"
JUSTIFICATIONS = {  # grounds of a link → its justification; others: SEVERAL
    0: JUSTIFICATION,
    BY_STRUCTURE: JUSTIFICATION,
    BY_NAMES: "semapv:LexicalMatching",
    BY_FEATURES: "semapv:SemanticSimilarityThresholdMatching",
}
NO_TERM = "sssom:NoTermFound"
SIMILARITY_MEASURE = "clusterea score"
BREAKS = r"[\x00-\x1f\x7f-\x9f\x{2028}\x{2029}]+"  # tabs, line ends, control characters


def write_sssom(
    alignment: Alignment, names: Pair[Names], path: Path, labels: Pair[Texts] | None = None
) -> None:
    """Writes links as mappings, and each unmatched entity as a mapping to or from no term.

    The justification of a mapping says what was compared: structure, names, features, or several.
    Links without a calibrated confidence have a `similarity_score` instead.
    The id of the mapping set is a hash of its contents, so the same alignment gives the same file.
    """
    # SSSOM identifiers are ASCII URIs or their CURIEs; sssom-py drops all others.
    uris = names.zip(NAMESPACES).map(lambda side: to_uris(side[0].arrow, side[1]))
    texts, curie_map = curies(uris)
    columns = COLUMNS if labels is None else LABELED_COLUMNS
    no_term = NO_TERM
    if labels is not None:  # the cell of an entity is followed by that of its label
        no_term += "\t"
        texts = texts.zip(labels).map(lambda side: _with_labels(*side))
    between = f"\t{PREDICATE}\t"
    structural = f"\t{JUSTIFICATION}\t"
    lone = alignment.unmatched.map(lambda ids: ids.detach().cpu().numpy())
    with path.open("wb") as file:
        identity = _identity(alignment, texts)
        metadata = metadata_of(identity, curie_map, alignment.confidence_note)
        file.write(head_lines(metadata).encode())
        calibrated = alignment.is_calibrated
        last = ("confidence",) if calibrated else ("similarity_score", "similarity_measure")
        end, no_end = ("", "") if calibrated else (f"\t{SIMILARITY_MEASURE}", "\t")
        file.write("\t".join((*columns, *last)).encode() + b"\n")
        justified = {"justification": _justifications(alignment)}
        for batch in link_batches(alignment, texts, justified):
            source, target, confidence, why = batch.columns
            write_lines(file, source, between, target, "\t", why, "\t", confidence, end)
        for entities in unmatched_batches(lone.source, texts.source):
            write_lines(file, entities, between + no_term + structural + no_end)
        for entities in unmatched_batches(lone.target, texts.target):
            write_lines(file, no_term + between, entities, structural + no_end)


def _with_labels(curies: pa.Array, labels: Texts) -> pa.Array:
    """The cell of each entity and that of its label, which is empty if it has none."""
    texts = flattened(pc.fill_null(labels.first(np.arange(labels.num_entities)), ""))
    return pc.binary_join_element_wise(curies, quoted(texts), pa.scalar("\t", pa.large_string()))


def flattened(texts: pa.Array) -> pa.Array:
    """The texts with a space in place of tabs, line ends and control characters."""
    return pc.replace_substring_regex(texts, BREAKS, " ")


def quoted(texts: pa.Array) -> pa.Array:
    """The cell of each text: quoted as in CSV if it has quotes, because sssom-py reads it so."""
    doubled = pc.replace_substring(texts, '"', '""')
    enclosed = pc.replace_substring_regex(doubled, "^(.*)$", r'"\1"')
    return pc.if_else(pc.match_substring(texts, '"'), enclosed, texts)


def _justifications(alignment: Alignment) -> pa.Array:
    """(links,): the justification of each."""
    kinds = [JUSTIFICATIONS.get(grounds, SEVERAL) for grounds in range(ALL_GROUNDS + 1)]
    bits: NDArray[np.uint8] = np.zeros(len(alignment.links), np.uint8)
    if alignment.grounds is not None:
        bits = alignment.grounds.detach().cpu().numpy()
    return pa.array(kinds, pa.large_string()).take(pa.array(bits))


def metadata_of(identity: uuid.UUID, curie_map: dict[str, str], comment: str) -> dict[str, Any]:
    """The metadata of a file of mappings."""
    from clusterea.version import __version__

    return {
        "mapping_set_id": f"https://w3id.org/sssom/mappings/{identity}",
        "license": "https://w3id.org/sssom/license/unspecified",  # the data's owner decides
        "mapping_tool": "clusterea",
        "mapping_tool_version": __version__,
        "subject_source": "clusterea:source",  # for rows without a term
        "object_source": "clusterea:target",
        "comment": comment,
        "curie_map": curie_map,
    }


def head_lines(metadata: dict[str, Any]) -> str:
    """The metadata as YAML in comment lines."""
    import yaml

    lines = yaml.safe_dump(metadata, sort_keys=False, width=2**30).splitlines()  # in ASCII
    return "".join(f"#{line}\n" for line in lines)


def _identity(alignment: Alignment, texts: Pair[pa.Array]) -> uuid.UUID:
    digest = blake2b(alignment.examples.to_bytes(8), digest_size=16)
    for text in texts:
        for buffer in text.buffers()[1:]:
            digest.update(buffer or b"")
    tensors = [alignment.links, alignment.confidence.double(), *alignment.unmatched]
    if alignment.grounds is not None:
        tensors.append(alignment.grounds)
    for tensor in tensors:
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return uuid.UUID(bytes=digest.digest())

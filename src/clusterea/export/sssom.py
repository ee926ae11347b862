"""Links as SSSOM: TSV with a YAML head, and identifiers as CURIEs."""

from __future__ import annotations

import uuid
from hashlib import blake2b
from pathlib import Path

import pyarrow as pa

from clusterea.data.name_iris import NAMESPACES, to_uris
from clusterea.export.curies import curies
from clusterea.export.rows import link_batches, unmatched_batches, write_lines
from clusterea.types import Alignment, Names, Pair

COLUMNS = ("subject_id", "predicate_id", "object_id", "mapping_justification")
PREDICATE = "owl:sameAs"  # the same predicate as in N-Triples
JUSTIFICATION = "semapv:StructuralMatching"
NO_TERM = "sssom:NoTermFound"
SIMILARITY_MEASURE = "clusterea score"


def write_sssom(alignment: Alignment, names: Pair[Names], path: Path) -> None:
    """Writes links as mappings, and each unmatched entity as a mapping to or from no term.

    Links without a calibrated confidence have a `similarity_score` instead.
    The id of the mapping set is a hash of its contents, so the same alignment gives the same file.
    """
    # SSSOM identifiers are ASCII URIs or their CURIEs; sssom-py drops all others.
    uris = names.zip(NAMESPACES).map(lambda side: to_uris(side[0].arrow, side[1]))
    texts, curie_map = curies(uris)
    between = f"\t{PREDICATE}\t"
    justified = f"\t{JUSTIFICATION}\t"
    lone = alignment.unmatched.map(lambda ids: ids.detach().cpu().numpy())
    with path.open("wb") as file:
        identity = _identity(alignment, texts)
        file.write(_head(curie_map, identity, alignment.confidence_note).encode())
        calibrated = alignment.is_calibrated
        last = ("confidence",) if calibrated else ("similarity_score", "similarity_measure")
        end, no_end = ("", "") if calibrated else (f"\t{SIMILARITY_MEASURE}", "\t")
        file.write("\t".join((*COLUMNS, *last)).encode() + b"\n")
        for batch in link_batches(alignment, texts):
            source, target, confidence = batch.columns
            write_lines(file, source, between, target, justified, confidence, end)
        for entities in unmatched_batches(lone.source, texts.source):
            write_lines(file, entities, between + NO_TERM + justified + no_end)
        for entities in unmatched_batches(lone.target, texts.target):
            write_lines(file, NO_TERM + between, entities, justified + no_end)


def _head(curie_map: dict[str, str], identity: str, comment: str) -> str:
    import yaml

    from clusterea.version import __version__

    metadata = {
        "mapping_set_id": identity,
        "license": "https://w3id.org/sssom/license/unspecified",  # the data's owner decides
        "mapping_tool": "clusterea",
        "mapping_tool_version": __version__,
        "subject_source": "clusterea:source",  # for rows without a term
        "object_source": "clusterea:target",
        "comment": comment,
        "curie_map": curie_map,
    }
    lines = yaml.safe_dump(metadata, sort_keys=False, width=2**30).splitlines()  # in ASCII
    return "".join(f"#{line}\n" for line in lines)


def _identity(alignment: Alignment, texts: Pair[pa.Array]) -> str:
    digest = blake2b(alignment.examples.to_bytes(8), digest_size=16)
    for text in texts:
        for buffer in text.buffers()[1:]:
            digest.update(buffer or b"")
    for tensor in (alignment.links, alignment.confidence.double(), *alignment.unmatched):
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return f"https://w3id.org/sssom/mappings/{uuid.UUID(bytes=digest.digest())}"

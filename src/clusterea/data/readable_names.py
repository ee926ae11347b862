"""Names that people read: from IRIs, normalized for comparison, without opaque ones."""

from __future__ import annotations

import re
from itertools import pairwise
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from clusterea.types import Names, Texts

RARE = 10  # names of a namespace that may be a part of a name with a slash, such as AC/DC
USUAL_SHARE = 0.01  # of all names: a namespace that names with a slash may belong to
SHORT_PREFIX = 2  # letters before a number that are no word, as in Q42 and HP_0000118
PREFIX_SHARE = 0.1  # of a graph's names: a longer prefix that so many share is no word either
_TEXT = pa.large_string()
_IS_IRI = r"^[A-Za-z][A-Za-z0-9+.\-]*:\S+$"
_SPLIT = r"^(?P<space>.*[/#])(?P<name>[^/#]+)[/#]*$"  # namespace and last part
_SPLIT_AT_COLON = r"^(?P<space>.*:)(?P<name>[^:]+):*$"
_NUMBERED = r"^(?P<prefix>\pL*)[\s_:.\-]*\d[\d\s_:.\-]*$"
_OPAQUE = "|".join(
    (
        r"^[^\pL]*$",  # integers, dates, punctuation
        r"^(urn:uuid:)?[0-9a-fA-F]{8}([\-_ ]?[0-9a-fA-F]{4}){3}[\-_ ]?[0-9a-fA-F]{12}$",
        r"^[mg][. ][01][0-9a-z_]{3,}$",  # of Freebase
        r"^(genid|node|bnode|blank|nodeid)[\-_ ]?\S*\d\S*$",
        r"^[0-9a-fA-F]{16,}$",  # hashes
    )
)
# Diacritics, and the vowel points of Hebrew and Arabic. In other scripts marks are letters.
_MARKS = r"[\x{0300}-\x{036f}\x{0591}-\x{05c7}\x{064b}-\x{065f}]+"
LONGEST = 500  # characters of a name that are compared
_LETTERS_AND_DIGITS = re.compile(r"[A-Za-z0-9+/_=\-]{16,}")  # what a token looks like


def readable(names: Names) -> Texts:
    """The readable part of each entity's name: what follows the namespace of an IRI.

    Percent-encoded characters are decoded, `_` is a space, and words in camel case are split.
    Blank nodes have none. A name that is no IRI is readable as it is.
    """
    whole = names.arrow
    is_blank = pc.starts_with(whole, pattern="_:")
    is_iri = pc.match_substring_regex(whole, _IS_IRI)
    parts = _last_parts(whole.filter(is_iri))
    texts = pc.replace_with_mask(whole, is_iri, parts) if len(parts) else whole
    texts = _decoded(texts)
    is_joined = pc.invert(pc.match_substring_regex(texts, r"[\s_]"))
    is_camel = pc.and_(is_joined, pc.match_substring_regex(texts, r"\p{Ll}\p{Lu}"))
    camel = pc.replace_substring_regex(texts.filter(is_camel), r"([\p{Ll}\d])(\p{Lu})", r"\1 \2")
    texts = pc.replace_with_mask(texts, is_camel, camel) if len(camel) else texts
    texts = pc.replace_substring(texts, "_", " ")
    owners = np.flatnonzero(~is_blank.to_numpy(zero_copy_only=False))
    return Texts.of_rows(owners, texts.take(pa.array(owners)), len(names))


def _last_parts(iris: pa.Array) -> pa.Array:
    """What follows the namespace of each IRI.

    It is the last part, unless its namespace is rare and the one above it is usual: `AC/DC` is a
    name of DBpedia, not the name `DC` in a namespace that ends with `AC/`.
    """
    if not len(iris):
        return iris
    split = _split(iris)
    spaces, parts = split.field("space"), split.field("name")
    counts = pc.value_counts(spaces)
    usual = counts.field("values").filter(
        pc.greater_equal(counts.field("counts"), max(RARE, USUAL_SHARE * len(iris)))
    )
    rare = counts.field("values").filter(pc.less(counts.field("counts"), RARE))
    is_rare = pc.is_in(spaces, value_set=rare)
    if len(usual) and pc.any(is_rare).as_py():
        by_length = sorted(usual.to_pylist(), key=len, reverse=True)
        at = np.flatnonzero(is_rare.to_numpy(zero_copy_only=False))
        longer = [_after(iri, by_length) for iri in iris.take(pa.array(at)).to_pylist()]
        is_found = np.zeros(len(iris), dtype=bool)
        is_found[at] = [each is not None for each in longer]
        found = pa.array([each for each in longer if each is not None], _TEXT)
        if len(found):
            parts = pc.replace_with_mask(parts, pa.array(is_found), found)
    return parts


def _after(iri: str, spaces: list[str]) -> str | None:
    """What follows the first of these namespaces that the IRI is in."""
    return next((iri[len(each) :] for each in spaces if iri.startswith(each)), None)


def _split(iris: pa.Array) -> pa.StructArray:
    """The namespace and the last part of each IRI; the whole IRI, if it has no parts."""
    spaces, parts = _extracted(iris, _SPLIT)
    other_spaces, other_parts = _extracted(iris, _SPLIT_AT_COLON)
    space = pc.fill_null(pc.coalesce(spaces, other_spaces), "")
    return pa.StructArray.from_arrays(
        [space, pc.coalesce(parts, other_parts, iris)], ["space", "name"]
    )


def _extracted(texts: pa.Array, pattern: str) -> list[pa.Array]:
    """The groups of a pattern in each text; null where it does not match."""
    found = pc.extract_regex(texts, pattern=pattern)
    return [column.cast(_TEXT) for column in found.flatten()]  # with the nulls of the whole


def _decoded(texts: pa.Array) -> pa.Array:
    is_encoded = pc.match_substring_regex(texts, "%[0-9A-Fa-f]{2}")
    decoded = [unquote(each) for each in texts.filter(is_encoded).to_pylist()]
    if not decoded:
        return texts
    return pc.replace_with_mask(texts, is_encoded, pa.array(decoded, _TEXT))


def comparable(texts: Texts) -> Texts:
    """The texts as they are compared: normalized, without opaque ones, and not too long.

    Normalized is: compatibility forms decomposed, lower case, without diacritics, and with a space
    for each run of other characters than letters and digits.
    """
    begins = pc.utf8_slice_codeunits(texts.values, 0, LONGEST)
    kept = ~is_opaque(begins)
    values = normalized(begins.filter(pa.array(kept)))
    # Ids such as `/m/02mjmr` are recognized only now.
    is_name = ~is_opaque(values)
    return Texts.of_rows(
        texts.owners[kept][is_name], values.filter(pa.array(is_name)), texts.num_entities
    )


def normalized(texts: pa.Array) -> pa.Array:
    """The texts without differences of case, diacritics, punctuation and character forms."""
    texts = pc.utf8_lower(pc.utf8_normalize(texts, form="NFKD"))
    texts = pc.replace_substring_regex(texts, _MARKS, "")
    texts = pc.replace_substring(pc.replace_substring(texts, "ß", "ss"), "ς", "σ")
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"[^\pL\pN\pM]+", " "))


def is_opaque(texts: pa.Array) -> NDArray[np.bool_]:
    """(texts,): which tell a person nothing: numbers, ids such as Q42, UUIDs, hashes."""
    if not len(texts):
        return np.zeros(0, dtype=bool)
    found = pc.match_substring_regex(texts, _OPAQUE).to_numpy(zero_copy_only=False).copy()
    (prefix,) = _extracted(texts, _NUMBERED)
    is_numbered = pc.is_valid(prefix)
    counts = pc.value_counts(prefix.drop_null())
    many = counts.field("values").filter(
        pc.greater_equal(counts.field("counts"), max(PREFIX_SHARE * len(texts), 3))
    )
    # In scripts such as Chinese, two letters are a word.
    is_short = pc.match_substring_regex(prefix, f"^[A-Za-z]{{0,{SHORT_PREFIX}}}$")
    is_id = pc.or_(pc.fill_null(is_short, False), pc.is_in(prefix, value_set=many))
    found |= pc.and_(is_numbered, is_id).to_numpy(zero_copy_only=False)
    opaque: NDArray[np.bool_] = found | _are_tokens(texts)
    return opaque


def _are_tokens(texts: pa.Array) -> NDArray[np.bool_]:
    """Random letters and digits, as of base64: they change between kinds at every few letters."""
    maybe = pc.match_substring_regex(texts, r"^[A-Za-z0-9+/_=\-]{16,}$")
    found: NDArray[np.bool_] = maybe.to_numpy(zero_copy_only=False).copy()
    at = np.flatnonzero(found)
    found[at] = [_is_token(each) for each in texts.take(pa.array(at)).to_pylist()]
    return found


def _is_token(text: str) -> bool:
    """Whether letters and digits change places often, as they do in no word."""
    changes = sum(one.isdigit() != other.isdigit() for one, other in pairwise(text))
    return _LETTERS_AND_DIGITS.fullmatch(text) is not None and 5 * changes >= len(text)

from __future__ import annotations

import numpy as np
import pyarrow as pa

from clusterea.data.synthetic.typos import misspell
from clusterea.data.synthetic.words import draw_words


def kind_of(text: str, typo: str) -> str:
    """Which one of the four typos it is, found by trying all positions."""
    for i in range(len(text)):
        if typo == text[:i] + text[i + 1 :]:
            return "deleted"
        if len(typo) == len(text) + 1 and text[:i] + typo[i] + text[i:] == typo:
            return "inserted"
        if len(typo) == len(text) and text[:i] + typo[i] + text[i + 1 :] == typo != text:
            return "replaced"
        if text[:i] + text[i : i + 2][::-1] + text[i + 2 :] == typo != text:
            return "swapped"
    raise AssertionError(f"{text!r} and {typo!r} are not one typo apart")


def test_every_text_gets_one_typo_of_the_four() -> None:
    rng = np.random.default_rng(1)
    words = draw_words(600, rng).to_pylist()
    # Aa has no two letters to swap, and in Ab the second letter is the last one.
    texts = [*words[:200], *map(" ".join, zip(words[200:400], words[400:], strict=True))]
    texts += ["Aa", "Ab", "Aa Ab"] * 50
    typos = misspell(pa.array(texts, pa.large_string()), rng).to_pylist()
    kinds = [kind_of(text, typo) for text, typo in zip(texts, typos, strict=True)]
    counts = {kind: kinds.count(kind) for kind in sorted(set(kinds))}
    assert list(counts) == ["deleted", "inserted", "replaced", "swapped"]
    assert min(counts.values()) > 40


def test_words_stay_apart_and_keep_their_first_letter() -> None:
    texts = ["Ba Di Ko"] * 300
    typos = misspell(pa.array(texts, pa.large_string()), np.random.default_rng(0)).to_pylist()
    assert {"".join(word[0] for word in typo.split(" ")) for typo in typos} == {"BDK"}
    changed = {tuple(word not in typo.split(" ") for word in ("Ba", "Di", "Ko")) for typo in typos}
    assert changed == {(True, False, False), (False, True, False), (False, False, True)}


def test_a_slice_and_no_text_at_all() -> None:
    texts = pa.array(["Baba", "Dido", "Koko"], pa.large_string())
    (typo,) = misspell(texts[1:2], np.random.default_rng(0)).to_pylist()
    assert kind_of("Dido", typo)
    assert len(misspell(texts[:0], np.random.default_rng(0))) == 0

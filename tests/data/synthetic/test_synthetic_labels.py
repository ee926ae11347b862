from __future__ import annotations

import operator
import re
from collections import Counter
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from clusterea.data.synthetic import LabelShape, PairShape, generate
from clusterea.data.synthetic.labels import QUALIFIERS
from clusterea.errors import InputError
from clusterea.types import Benchmark, Pair, Texts

# Both sides have all entities, so that a label is ambiguous on both sides or on neither.
SAME = PairShape(Pair(2_000, 2_000), Pair(5_000, 5_000), Pair(9, 9), 1.0, Pair(0.9, 0.9))
PART = PairShape(Pair(900, 700), Pair(2_400, 1_900), Pair(9, 7), 0.6, Pair(0.9, 0.9))
CLEAN = LabelShape(missing=0, ambiguous=0, noise=0)


def labels_of(benchmark: Benchmark) -> Pair[Texts]:
    assert benchmark.labels is not None
    return benchmark.labels


def labels(missing: float = 0, ambiguous: float = 0, noise: float = 0) -> list[list[str | None]]:
    """The labels of the links of a pair, first those of the sources."""
    made = generate(SAME, 4, LabelShape(missing, ambiguous, noise))
    sides = zip(labels_of(made), made.task.seeds.T, strict=True)
    return [texts.first(entities).to_pylist() for texts, entities in sides]


def test_without_noise_the_labels_tell_the_alignment() -> None:
    source, target = labels()
    assert None not in source
    assert source == target
    assert len(set(source)) == len(source)


def test_entities_without_counterpart_have_labels_of_their_own() -> None:
    made = generate(PART, 0, CLEAN)
    source, target = (set(texts.values.to_pylist()) for texts in labels_of(made))
    assert (len(source), len(target)) == tuple(PART.entities)
    assert len(source & target) == PART.links
    assert labels_of(made).map(lambda texts: texts.share) == Pair(1.0, 1.0)


def test_labels_are_one_to_four_words_of_which_few_are_common() -> None:
    source = [text for text in labels()[0] if text]
    assert all(re.fullmatch("[A-Z][a-z]+( [A-Z][a-z]+){0,3}", text) for text in source)
    lengths = Counter(len(text.split()) for text in source)
    assert min(lengths[number] for number in (1, 2, 3, 4)) > 100
    uses = sorted(Counter(word for text in source for word in text.split()).values())
    assert uses[-1] > 0.03 * len(source)
    assert np.median(uses) < 5


def test_the_share_asked_for_is_missing_on_each_side_by_itself() -> None:
    source, target = (
        np.array([text is None for text in side]) for side in labels(missing=0.3, noise=0.2)
    )
    assert source.sum() == target.sum() == 600
    # Were they the same entities, it would be 600; independently it is 180 ± 4 × 11.
    assert 130 < (source & target).sum() < 230


@pytest.mark.parametrize("share", [0.05, 0.4, 1.0])
def test_the_share_asked_for_is_ambiguous_on_both_sides(share: float) -> None:
    source, target = labels(ambiguous=share)
    assert source == target
    times = Counter(source)
    assert sum(times[text] > 1 for text in source) == share * len(source)
    groups = [count for count in times.values() if count > 1]
    assert {2, 3} <= set(groups)
    assert np.mean(groups) < 3


@pytest.mark.parametrize("noise", [0.1, 0.3, 0.6])
def test_labels_of_links_are_equal_where_neither_is_changed(noise: float) -> None:
    source, target = labels(missing=0.1, ambiguous=0.05, noise=noise)
    both = [
        one == other
        for one, other in zip(source, target, strict=True)
        if one is not None and other is not None
    ]
    assert 1_500 < len(both) < 1_700
    # Where both are changed, they are sometimes changed alike: in less than a fifth of the cases.
    least, most = (1 - noise) ** 2, (1 - noise) ** 2 + noise**2 / 5
    assert least - 0.04 < np.mean(both) < most + 0.04


def test_exactly_the_share_asked_for_is_changed() -> None:
    truth, _ = labels()
    for noise in (0.3, 1.0):
        for side in labels(noise=noise):
            assert sum(map(operator.ne, side, truth)) == noise * len(truth)


def change(true: str, seen: str) -> str:
    words = true.split()
    if re.fullmatch(rf"{true} \(({'|'.join(QUALIFIERS)})\)", seen):
        return "qualified"
    if seen.split() in [list(order) for order in permutations(words)]:
        return "reordered"
    if seen.split() in [words[:i] + words[i + 1 :] for i in range(len(words))]:
        return "shortened"
    assert len(seen.split()) == len(words)
    assert sum(map(operator.ne, seen.split(), words)) == 1
    return "typo"


def test_labels_are_changed_in_every_way() -> None:
    truth, _ = labels()
    for side in labels(noise=1.0):
        counts = Counter(
            change(str(true), str(seen)) for true, seen in zip(truth, side, strict=True)
        )
        shares = {kind: count / len(truth) for kind, count in counts.items()}
        # A label of one word, as some 8 % are, gets a typo where the others lose or move words.
        assert shares.pop("typo") == pytest.approx(0.43, abs=0.06)
        assert shares == pytest.approx(
            {"qualified": 0.2, "reordered": 0.185, "shortened": 0.185}, abs=0.04
        )


def test_an_entity_has_the_same_qualifier_on_both_sides() -> None:
    both = [
        (one[one.find("(") :], other[other.find("(") :])
        for one, other in zip(*labels(noise=1.0), strict=True)
        if one and other and "(" in one and "(" in other
    ]
    assert len(both) > 40
    assert all(one == other for one, other in both)
    assert len(set(both)) > 5


def test_asking_for_labels_changes_nothing_else() -> None:
    plain, labeled = generate(PART, 7), generate(PART, 7, LabelShape())
    assert plain.labels is None
    assert parts(plain) == parts(labeled)


def parts(benchmark: Benchmark) -> list[Any]:
    assert benchmark.dangling is not None
    return [
        *(graph.triples.tobytes() for graph in benchmark.task.graphs),
        benchmark.task.seeds.tobytes(),
        *(list(names) for names in (*benchmark.names, *benchmark.relation_names)),
        *(ids.tobytes() for ids in benchmark.dangling),
    ]


def test_the_same_seed_gives_the_same_labels_and_another_seed_others() -> None:
    first, again, other = (labels_of(generate(PART, seed, LabelShape())) for seed in (7, 7, 8))
    for ours, same, theirs in zip(first, again, other, strict=True):
        assert ours.offsets.tolist() == same.offsets.tolist() != theirs.offsets.tolist()
        assert ours.values == same.values != theirs.values


@pytest.mark.parametrize("ambiguous", [0.1, 1.0])
def test_the_smallest_pair_has_labels(ambiguous: float) -> None:
    tiny = PairShape(Pair(3, 3), Pair(6, 6), Pair(3, 3), 1.0, Pair(1.0, 1.0))
    made = labels_of(generate(tiny, 0, LabelShape(0, ambiguous, 1.0)))
    assert made.map(lambda texts: len(texts.values)) == Pair(3, 3)
    none = labels_of(generate(tiny, 0, LabelShape(1.0, ambiguous, 1.0)))
    assert none.map(lambda texts: (texts.num_entities, len(texts.values))) == Pair((3, 0), (3, 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"missing": -0.1}, r"share of missing labels must be a number in \[0, 1\]. Got -0.1 inst"),
        ({"ambiguous": 1.1}, r"share of ambiguous labels must be a number in \[0, 1\]. Got 1.1"),
        ({"noise": float("nan")}, r"label noise must be a number in \[0, 1\]. Got nan instead"),
        ({"noise": "0.5"}, r"label noise must be a number .* Got '0.5' instead"),
        ({"missing": True}, r"share of missing labels must be a number .* Got True instead"),
    ],
)
def test_what_is_no_share_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LabelShape(**change)

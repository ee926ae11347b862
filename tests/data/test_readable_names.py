"""The readable part of ids, what is opaque, and what is compared."""

from __future__ import annotations

import unicodedata

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusterea.data.readable_names import LONGEST, comparable, is_opaque, normalized, readable
from clusterea.types import Names, Texts

DBPEDIA = "http://dbpedia.org/resource/"
CITIES = ("Paris", "Rome", "Oslo", "Bern", "Lima", "Kyiv", "Baku", "Doha", "Riga", "Bonn")
WORDS = [f"{DBPEDIA}{city}" for city in CITIES]


def names(*ids: str) -> list[list[str]]:
    texts = readable(Names(list(ids)))
    return [texts.of(entity) for entity in range(texts.num_entities)]


def name(of: str) -> str:
    [[found]] = names(of)
    return found


def opaque(*texts: str) -> list[str]:
    found = is_opaque(pa.array(texts, pa.large_string()))
    return [text for text, is_one in zip(texts, found, strict=True) if is_one]


def compared(*texts: str) -> list[str]:
    return comparable(Texts.of_lists([[each] for each in texts])).values.to_pylist()  # type: ignore[no-any-return]


def plain(text: str) -> str:
    return str(normalized(pa.array([text], pa.large_string()))[0])


class TestReadable:
    @pytest.mark.parametrize(
        ("iri", "found"),
        [
            ("http://x.org/onto#HeartValve", "Heart Valve"),
            ("http://x.org/resource/New_York", "New York"),
            ("http://x.org/resource/Paris/", "Paris"),
            ("http://x.org/resource/S%C3%A3o_Paulo", "São Paulo"),
            ("http://x.org/resource/50%25", "50%"),
            ("http://x.org/resource/100%_pure", "100% pure"),  # not encoded
            ("http://x.org/resource/%FF", "\N{REPLACEMENT CHARACTER}"),  # not UTF-8
            ("ex:HeartValve", "Heart Valve"),
            ("urn:example:animal:ferret", "ferret"),
            ("http://x.org/resource/New_YorkCity", "New YorkCity"),  # words are split already
            ("http://x.org", "x.org"),
            ("New York", "New York"),
            ("Mission: Impossible", "Mission: Impossible"),  # no IRI: it has a space
            ("波音720", "波音720"),
        ],
    )
    def test_the_last_part(self, iri: str, found: str) -> None:
        assert name(iri) == found

    def test_blank_nodes_have_none(self) -> None:
        assert names("_:b0", "http://x.org/a", "b") == [[], ["a"], ["b"]]

    def test_a_name_with_a_slash_is_whole_where_its_namespace_is_usual(self) -> None:
        *_, band, film, other = names(
            *WORDS, f"{DBPEDIA}AC/DC", f"{DBPEDIA}Face/Off", "http://x.org/a/b"
        )
        assert (band, film) == (["AC/DC"], ["Face/Off"])
        assert other == ["b"]

    def test_but_not_where_there_are_few_names_of_that_namespace(self) -> None:
        *_, band = names(*WORDS[:9], f"{DBPEDIA}AC/DC")
        assert band == ["DC"]

    def test_a_namespace_below_another_is_one_of_its_own_if_usual(self) -> None:
        below = [each.replace("resource/", "resource/city/") for each in WORDS]
        assert names(*WORDS, *below)[10:] == names(*WORDS)

    def test_no_names(self) -> None:
        assert names() == []


class TestOpaque:
    @pytest.mark.parametrize(
        "text",
        [
            *("Q42", "P31", "HP_0000118", "HP 0000118", "GO:0005575", "42", "1.5", "2001-01-01"),
            "0b1c2d3e-0000-1111-2222-333344445555",
            "urn:uuid:0B1C2D3E-0000-1111-2222-333344445555",
            "d41d8cd98f00b204e9800998ecf8427e",
            *("m.02mjmr", "m 02mjmr", "g.11b6k3xyz"),
            *("aGVsbG8gd29ybGQ3Njg5MQ==", "R8Xk2PqL9vTz4WbN"),
            *("genid-17", "node1f2", "bnode_9"),
        ],
    )
    def test_alone(self, text: str) -> None:
        assert opaque(text) == [text]
        assert compared(text) == []

    @pytest.mark.parametrize(
        "text",
        [
            *("Apollo_13", "Boeing_747", "1998_FIFA_World_Cup", "波音720", "Se7en", "Blink-182"),
            *("Paris", "Internationalization", "Nodes", "Antidisestablishmentarianism", "Zoë"),
            "United_Nations_Security_Council_Resolution_1441",
        ],
    )
    def test_not(self, text: str) -> None:
        assert opaque(text) == []
        assert len(compared(text)) == 1

    def test_a_prefix_that_many_names_share_is_no_word(self) -> None:
        others = [f"{letter}orld" for letter in "abcdefghijklmnopqrstuvwxyz"]
        few = [f"Boeing_{number}" for number in (737, 747)]
        assert opaque(*few, *others) == []
        genes = [f"ENSG0000{number}" for number in range(5)]
        assert opaque(*genes, *others) == genes

    def test_three_of_many_may_share_a_prefix(self) -> None:
        """A mixed graph has three Boeings and hundreds of other names."""
        few = [f"Boeing_{number}" for number in (707, 737, 747)]
        others = [f"{one}{other}orld" for one in "abcdef" for other in "abcdef"]
        assert opaque(*few, *others) == []
        assert opaque(*few, *others[:20]) == few

    @pytest.mark.parametrize("text", ["/m/02mjmr", "/g/11b6k3xyz", "Ｑ４２", "Q#42"])
    def test_some_only_once_normalized(self, text: str) -> None:
        assert compared(text) == []

    def test_no_texts(self) -> None:
        assert opaque() == []
        assert compared() == []


class TestNormalized:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("Zoë", "zoe"),
            ("ZOE\N{COMBINING DIAERESIS}", "zoe"),
            ("Straße", "strasse"),
            ("STRASSE", "strasse"),
            ("STRAẞE", "strasse"),
            ("Ὀδυσσεύς", "οδυσσευσ"),
            ("ΟΔΥΣΣΕΎΣ", "οδυσσευσ"),
            ("İstanbul", "istanbul"),
            ("ﬁn de siècle", "fin de siecle"),
            ("Ⅳ", "iv"),
            ("AC/DC", "ac dc"),
            ("  J.R.R.\tTolkien_(author)\n", "j r r tolkien author"),
            ("!!!", ""),
            (" ? ", ""),
            ("a\0b\nc", "a b c"),
            ("東京", "東京"),
            ("", ""),
        ],
    )
    def test_differences_that_do_not_count(self, text: str, found: str) -> None:
        assert plain(text) == found

    def test_letters_of_one_script_are_not_those_of_another(self) -> None:
        latin, cyrillic = "Apa", "\N{CYRILLIC CAPITAL LETTER A}ра"
        assert plain(latin) != plain(cyrillic)

    @given(st.text())
    def test_once_is_enough(self, text: str) -> None:
        assert plain(plain(text)) == plain(text)

    @given(st.text())
    def test_composed_or_not_is_the_same(self, text: str) -> None:
        forms = {
            plain(unicodedata.normalize(form, text)) for form in ("NFC", "NFD", "NFKC", "NFKD")
        }
        assert forms == {plain(text)}


@given(st.lists(st.lists(st.text(max_size=20), max_size=3), max_size=8))
def test_what_is_compared_is_never_empty_and_stays_as_it_is(lists: list[list[str]]) -> None:
    once = comparable(Texts.of_lists(lists))
    again = comparable(once)
    assert "" not in once.values.to_pylist()
    assert once.num_entities == len(lists)
    assert again.values.to_pylist() == once.values.to_pylist()
    assert again.owners.tolist() == once.owners.tolist()


@given(st.lists(st.from_regex(r"\A[Qqé]?[-#_ ]?[0-9０-９]{1,3}\Z|\A[A-Za-z ]{3,6}\Z"), max_size=12))
def test_so_do_texts_that_are_nearly_ids(texts: list[str]) -> None:
    once = compared(*texts)
    assert compared(*once) == once


def test_names_that_become_equal_are_one() -> None:
    texts = comparable(Texts.of_lists([["Zoë", "ZOE", "Zoë Kravitz"], ["zoe"]]))
    assert [texts.of(0), texts.of(1)] == [["zoe", "zoe kravitz"], ["zoe"]]


def test_the_begin_of_a_label_of_ten_megabytes_is_compared() -> None:
    long = "word " * 2_000_000
    assert compared(long, "Zoë") == [long[:LONGEST].strip(), "zoe"]

"""Answers of people, from SSSOM and from three columns of text."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterea.data.decisions import ReadAnswers, read_answers, valid_date
from clusterea.errors import DataError
from clusterea.types import Answer, Names, Pair

NAMES = Pair(
    Names(["http://a.org/Paris", "Rome", "http://a.org/Été", "b c"]),
    Names(["http://b.org/paris", "rome", "http://b.org/summer"]),
)
HEAD = "#curie_map:\n#  A: http://a.org/\n#  B: http://b.org/\n"
COLUMNS = "subject_id\tpredicate_id\tobject_id"


def read(folder: Path, text: str, name: str = "answers.tsv") -> ReadAnswers:
    path = folder / name
    path.write_text(text)
    return read_answers(path, NAMES)


def of_row(folder: Path, columns: str, *cells: str) -> ReadAnswers:
    """What a file of one mapping says."""
    return read(folder, f"{HEAD}{COLUMNS}{columns}\n" + "\t".join(cells) + "\n")


class TestSssom:
    @pytest.mark.parametrize(
        "predicate",
        [
            *("owl:sameAs", "skos:exactMatch", "owl:equivalentClass", "owl:equivalentProperty"),
            "http://www.w3.org/2004/02/skos/core#exactMatch",
        ],
    )
    def test_equivalences_and_their_negation(self, predicate: str, tmp_path: Path) -> None:
        row = ("A:Paris", predicate, "B:paris")
        assert of_row(tmp_path, "", *row).answers == [Answer(0, 0, "same")]
        negated = of_row(tmp_path, "\tpredicate_modifier", *row, "Not")
        assert negated.answers == [Answer(0, 0, "different")]

    @pytest.mark.parametrize("predicate", ["skos:closeMatch", "skos:broadMatch", "x:y"])
    @pytest.mark.parametrize("modifier", ["", "Not"])
    def test_other_predicates_say_nothing(
        self, predicate: str, modifier: str, tmp_path: Path
    ) -> None:
        row = ("A:Paris", predicate, "B:paris", modifier)
        assert of_row(tmp_path, "\tpredicate_modifier", *row) == ReadAnswers([], 0, 1)
        row = ("A:Paris", predicate, "sssom:NoTermFound", modifier)
        assert of_row(tmp_path, "\tpredicate_modifier", *row) == ReadAnswers([], 0, 1)

    def test_no_counterpart(self, tmp_path: Path) -> None:
        found = of_row(tmp_path, "", "A:Paris", "skos:exactMatch", "sssom:NoTermFound")
        assert found.answers == [Answer(0, None, "none")]
        found = of_row(tmp_path, "", "https://w3id.org/sssom/NoTermFound", "owl:sameAs", "rome")
        assert found.answers == [Answer(None, 1, "none")]
        negated = ("A:Paris", "owl:sameAs", "sssom:NoTermFound", "Not")
        assert of_row(tmp_path, "\tpredicate_modifier", *negated) == ReadAnswers([], 0, 1)
        nothing = ("sssom:NoTermFound", "owl:sameAs", "sssom:NoTermFound")
        assert of_row(tmp_path, "", *nothing) == ReadAnswers([], 0, 1)

    @pytest.mark.parametrize(
        ("other", "answer"),
        [
            ("", Answer(1, 1, "unsure")),
            ("answer=unsure", Answer(1, 1, "unsure")),
            ("answer=undone", Answer(1, 1, "undone")),
            ("x=y | answer=undone|asked=random", Answer(1, 1, "undone", is_random=True)),
        ],
    )
    def test_the_property_of_all_things_asserts_nothing(
        self, other: str, answer: Answer, tmp_path: Path
    ) -> None:
        row = ("Rome", "owl:topObjectProperty", "rome", other)
        assert of_row(tmp_path, "\tother", *row).answers == [answer]

    def test_an_answer_about_one_entity_can_be_taken_back(self, tmp_path: Path) -> None:
        row = ("Rome", "owl:topObjectProperty", "sssom:NoTermFound", "answer=undone")
        assert of_row(tmp_path, "\tother", *row).answers == [Answer(1, None, "undone")]

    def test_who_when_and_why(self, tmp_path: Path) -> None:
        columns = "\tauthor_id\tauthor_label\tmapping_date\tcomment\tother"
        row = ("Rome", "owl:sameAs", "rome")
        more = ("orcid:1", "Ann", "2026-01-31", '"6"" wide"', "asked=random")
        wanted = Answer(1, 1, "same", "Ann", "2026-01-31", '6" wide', is_random=True)
        assert of_row(tmp_path, columns, *row, *more).answers == [wanted]
        assert of_row(tmp_path, columns, *row, "orcid:1", "", "yesterday", "", "").answers == [
            Answer(1, 1, "same", "orcid:1")
        ]

    def test_names_are_found_as_those_of_links(self, tmp_path: Path) -> None:
        found = read(
            tmp_path,
            f"{HEAD}#  clusterea: 'urn:clusterea:'\n{COLUMNS}\n"
            "A:%C3%89t%C3%A9\towl:sameAs\thttp://b.org/summer\n"
            "clusterea:source:b%20c\towl:sameAs\tB:paris\n"
            "b c\towl:sameAs\tB:summer\n",
        )
        assert [(each.source, each.target) for each in found.answers] == [(2, 2), (3, 0), (3, 2)]

    def test_rows_keep_their_order(self, tmp_path: Path) -> None:
        rows = ["\t", "Not\t", "\tanswer=undone", "Not\t"]
        text = "".join(
            f"Rome\towl:{'topObjectProperty' if 'undone' in row else 'sameAs'}\trome\t{row}\n"
            for row in rows
        )
        found = read(tmp_path, f"{COLUMNS}\tpredicate_modifier\tother\n{text}")
        assert [each.verdict for each in found.answers] == [
            *("same", "different", "undone", "different")
        ]

    def test_rows_that_are_no_answers_are_counted(self, tmp_path: Path) -> None:
        rows = "Rome\towl:sameAs\trome\nX\towl:sameAs\trome\nRome\tskos:relatedMatch\trome\n"
        rows += "Rome\towl:sameAs\tX\nX\towl:sameAs\tsssom:NoTermFound\n"
        found = read(tmp_path, f"{COLUMNS}\n{rows}")
        assert found == ReadAnswers([Answer(1, 1, "same")], unknown=3, other=1)

    def test_a_file_without_rows_has_no_answers(self, tmp_path: Path) -> None:
        assert read(tmp_path, f"{HEAD}{COLUMNS}\n") == ReadAnswers([])


class TestTable:
    @pytest.mark.parametrize("header", ["", "source\ttarget\tanswer\n", "left\tright\t?\n"])
    def test_three_columns(self, header: str, tmp_path: Path) -> None:
        found = read(tmp_path, f"{header}Rome\trome\tsame\n\nb c\trome\tDifferent\nX\trome\tsame")
        answers = [Answer(1, 1, "same"), Answer(3, 1, "different")]
        assert found == ReadAnswers(answers, unknown=1)

    def test_a_header_gives_the_order(self, tmp_path: Path) -> None:
        found = read(tmp_path, "answer\ttarget\tsource\nsame\trome\tb c\n")
        assert found.answers == [Answer(3, 1, "same")]

    def test_a_gzip_is_unpacked(self, tmp_path: Path) -> None:
        import gzip

        path = tmp_path / "answers.tsv.gz"
        path.write_bytes(gzip.compress(b"Rome\trome\tsame\n"))
        assert read_answers(path, NAMES).answers == [Answer(1, 1, "same")]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "Rome\trome\tsame\n\nRome\trome\tyes\n",
            r"answers.tsv line 3: expected same or different, got 'yes'\.",
        ),
        ("Rome\trome\tnone\n", r"line 1: expected same or different, got 'none'\."),
        ("Rome\trome\n", "line 1: expected 3 tab-separated columns, got 2. Give source, target"),
        ("Rome\t\tsame\n", "line 1: expected a target, got an empty cell"),
        ("source\ttarget\tanswer\n", "expected answers, got none"),
        ("X\tY\tsame\n", "expected answers about entities .* none among 1; the first is of 'X'"),
        ("rome\tRome\tsame\n", "got none among 1. Are source and target the wrong way round"),
        (f"{COLUMNS}\nX\towl:sameAs\tY\n", "expected answers about entities of the two graphs"),
        (f"{COLUMNS}\nRome\towl:sameAs\n", "line 2: expected 3 tab-separated columns, got 2"),
        (f"{COLUMNS}\nRome\t\trome\n", "line 2: expected a predicate_id, got an empty cell"),
    ],
)
def test_what_is_wrong_is_said(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text)


def test_dates() -> None:
    assert valid_date("2026-01-31") == "2026-01-31"
    assert valid_date("2026-02-31") == valid_date("31.1.2026") == valid_date("") == ""

"""The file of answers: nothing that was acknowledged is lost, and any SSSOM tool reads it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterea.data.decisions import read_answers
from clusterea.errors import DataError
from clusterea.review import log as log_module
from clusterea.review.log import DecisionLog
from clusterea.types import Answer, Names, Pair, Texts
from clusterea.types.decisions import Verdict
from valid_sssom import valid_rows

NAMES = Pair(
    Names(
        [
            *("http://a.org/Paris", "http://a.org/Été", 'New York "City" 100%', "a\tb\nc"),
            *("<script>alert(1)</script>", "http://a.org/%C3%89", "sssom:NoTermFound"),
        ]
    ),
    Names(["http://b.org/paris", "http://b.org/é|è", "東", "owl:Thing", "x y", "urn:clusterea:a"]),
)
LABELS = Pair(
    Texts.of_lists([["Paris"], ['"Été"'], ["N\tY"], [], ["<b>"], [], ["none"]]),
    Texts.of_lists([["paris"], [], ["東\n京"], [], [], []]),
)
EVERY_KIND = [
    Answer(0, 0, "same", "Ann", "2026-01-31", "sure"),
    Answer(1, 1, "different", "Ann Å.", "2026-01-31", 'not the "same" one', is_random=True),
    Answer(2, None, "none", "Bo", "2026-02-01"),
    Answer(None, 2, "none"),
    Answer(3, 3, "unsure", "", "", "# 1 | 2"),
    Answer(0, 0, "undone", "Ann", "2026-02-02", "東", is_random=True),
    Answer(2, None, "undone", "Bo", "2026-02-01"),
    Answer(None, 2, "unsure"),
    Answer(4, 4, "same", is_random=True),
    Answer(5, 5, "same"),
    Answer(6, 1, "same"),
    Answer(6, None, "none"),
]
SLOTS = """
str(m.predicate_id), str(m.predicate_modifier), m.author_label, str(m.mapping_date), m.comment
"""
# Appends answers 0, 1, …, of as many entities, and prints the number of each that is in the file.
APPEND = """
import sys
from pathlib import Path
from clusterea.review.log import DecisionLog
from clusterea.types import Answer, Names, Pair
path, who, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
names = Pair(Names(map(str, range(100))), Names(map(str, range(100))))
log = DecisionLog(path, names)
input()
for number in range(count):
    log.append(Answer(number % 100, number // 100 % 100, "same", who, "", f"{number} é" * 9))
    print(number, flush=True)
"""
NUMBERED = Pair(Names(map(str, range(100))), Names(map(str, range(100))))


def appender(path: Path, who: str, count: int) -> subprocess.Popen[str]:
    """A process that appends answers as soon as it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", APPEND, str(path), who, str(count)],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "decisions.sssom.tsv"


@pytest.mark.parametrize("labels", [None, LABELS], ids=["no labels", "labels"])
def test_each_kind_of_answer_is_read_again(labels: Pair[Texts] | None, path: Path) -> None:
    log = DecisionLog(path, NAMES, labels)
    assert log.answers == []
    for number, answer in enumerate(EVERY_KIND, 1):
        log.append(answer)
        assert log.answers == EVERY_KIND[:number]
        assert DecisionLog(path, NAMES).answers == EVERY_KIND[:number]
    assert read_answers(path, NAMES).answers == EVERY_KIND
    decisions = log.decisions
    assert decisions.accepted.tolist() == [[4, 4], [5, 5]]
    assert decisions.rejected.tolist() == [[1, 1]]
    assert decisions.alone.source.tolist() == [6]


@pytest.mark.slow
@pytest.mark.parametrize("labels", [None, LABELS], ids=["no labels", "labels"])
def test_sssom_py_finds_it_valid(labels: Pair[Texts] | None, path: Path) -> None:
    DecisionLog(path, NAMES, labels).append(*EVERY_KIND)
    rows = valid_rows(path, SLOTS)
    assert len(rows) == len(EVERY_KIND)
    assert ["owl:sameAs", "None", ["Ann"], "2026-01-31", "sure"] in rows
    assert [*("owl:sameAs", "Not", ["Ann Å."], "2026-01-31", 'not the "same" one')] in rows
    assert sum(predicate == "owl:topObjectProperty" for predicate, *_ in rows) == 4


def test_the_head_has_a_prefix_for_every_entity(path: Path) -> None:
    log = DecisionLog(path, NAMES)
    log.append(Answer(0, 0, "same"))
    text = path.read_text()
    head = yaml.safe_load("\n".join(line[1:] for line in text.splitlines() if line[0] == "#"))
    assert head["mapping_set_id"].startswith("https://w3id.org/sssom/mappings/")
    assert head["license"] == "https://w3id.org/sssom/license/unspecified"
    inode = path.stat().st_ino
    log.append(*(Answer(each, None, "none") for each in range(len(NAMES.source))))
    log.append(*(Answer(None, each, "none") for each in range(len(NAMES.target))))
    assert path.read_text().startswith(text)  # it was never written anew
    assert path.stat().st_ino == inode


def test_text_that_breaks_lines_is_flattened(path: Path) -> None:
    log = DecisionLog(path, NAMES)
    assert log.answers == []
    log.append(Answer(0, 0, "same", "A\tB", "today", "x\r\ny\u2028z\x00 \ud800"))
    log.append(Answer(0, 0, "same", "", "2026-01-31", "a\nb"))
    wanted = [
        Answer(0, 0, "same", "A B", "", "x y z  ?"),
        Answer(0, 0, "same", "", "2026-01-31", "a b"),
    ]
    assert log.answers == wanted
    assert DecisionLog(path, NAMES).answers == wanted


ODD = st.text(
    st.sampled_from("\"'<>%|&#/:@ \té東😀\u2028\nab\\") | st.characters(codec="utf-8"), min_size=1
)
IRIS = st.builds("{}{}".format, st.sampled_from(["http://e.org/", "urn:clusterea:", "n:"]), ODD)
SIDES = st.lists(ODD | IRIS, min_size=1, max_size=5, unique=True)
LINES = st.text(
    st.sampled_from('" #|=') | st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"])
)


@st.composite
def answered(draw: st.DrawFn) -> tuple[Pair[Names], list[Answer]]:
    names = Pair(Names(draw(SIDES)), Names(draw(SIDES)))
    answers = []
    for _ in range(draw(st.integers(1, 5))):
        ends: list[int | None] = [draw(st.integers(0, len(side) - 1)) for side in names]
        verdicts: list[Verdict] = ["same", "different", "unsure", "undone"]
        missing = draw(st.sampled_from([None, 0, 1]))
        if missing is not None:
            ends[missing] = None
            verdicts = ["none", "unsure", "undone"]
        verdict = draw(st.sampled_from(verdicts))
        more = draw(st.tuples(LINES, st.sampled_from(["", "2026-01-31"]), LINES, st.booleans()))
        answers.append(Answer(ends[0], ends[1], verdict, *more))
    return names, answers


@settings(max_examples=200)
@given(answered())
def test_any_names_and_texts_come_back(case: tuple[Pair[Names], list[Answer]]) -> None:
    names, answers = case
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "decisions.sssom.tsv"
        log = DecisionLog(path, names)
        for answer in answers:
            log.append(answer)
        assert log.answers == answers
        assert DecisionLog(path, names).answers == answers


class TestSeveralWriters:
    @pytest.mark.slow
    def test_two_processes_at_once_lose_nothing(self, path: Path) -> None:
        processes = [appender(path, who, 100) for who in ("Ann", "Bo")]
        for process in processes:
            start(process)
        for process in processes:
            process.communicate()
            assert process.returncode == 0
        answers = DecisionLog(path, NUMBERED).answers
        for who in ("Ann", "Bo"):
            assert [each.source for each in answers if each.author == who] == [*range(100)]
        assert len(answers) == 200

    @pytest.mark.slow
    @pytest.mark.parametrize("after", [1, 7, 150])
    def test_a_killed_process_loses_nothing_it_acknowledged(self, after: int, path: Path) -> None:
        process = appender(path, "Ann", 10**6)
        start(process)
        assert process.stdout is not None
        told = [process.stdout.readline() for _ in range(after)]
        process.send_signal(signal.SIGKILL)
        told += process.communicate()[0].splitlines()
        log = DecisionLog(path, NUMBERED)
        numbers = [int(each.comment.split()[0]) for each in log.answers]
        assert numbers == [*range(len(numbers))]
        assert len(numbers) >= len(told)
        log.append(Answer(1, 1, "different"))
        assert log.answers[-1] == Answer(1, 1, "different")
        assert len(valid_rows(path, SLOTS)) == len(numbers) + 1

    def test_answers_of_another_are_seen(self, path: Path) -> None:
        first, second = DecisionLog(path, NAMES), DecisionLog(path, NAMES)
        first.append(EVERY_KIND[0])
        assert second.answers == EVERY_KIND[:1]
        first.append(EVERY_KIND[1])
        second.append(EVERY_KIND[2])
        assert first.answers == second.answers == EVERY_KIND[:3]
        path.unlink()
        assert first.answers == []

    def test_a_file_replaced_while_waiting_is_opened_again(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A writer that rewrites the head replaces the file that others wait for."""
        log = DecisionLog(path, NAMES)
        log.append(EVERY_KIND[0])

        def replaced_meanwhile(*_: object) -> None:
            monkeypatch.undo()
            copy = path.with_name("copy")
            copy.write_bytes(path.read_bytes())
            copy.replace(path)

        monkeypatch.setattr(log_module, "flock", replaced_meanwhile)
        log.append(EVERY_KIND[1])
        assert DecisionLog(path, NAMES).answers == EVERY_KIND[:2]


class TestTornLine:
    def test_at_any_byte(self, path: Path) -> None:
        """Of an unfinished last line, all or nothing counts; those before it always do."""
        log = DecisionLog(path, NAMES, LABELS)
        log.append(EVERY_KIND[0])
        begin = path.stat().st_size
        log.append(EVERY_KIND[1])
        whole = path.read_bytes()
        marked = whole.rindex(b"\t") + 1  # the cell `other` begins
        for size in range(begin, len(whole)):
            path.write_bytes(whole[:size])
            kept = DecisionLog(path, NAMES).answers
            assert len(kept) == (1 if size < marked else 2)
            torn = DecisionLog(path, NAMES, LABELS)
            torn.append(EVERY_KIND[2])
            assert torn.answers == DecisionLog(path, NAMES).answers == [*kept, EVERY_KIND[2]]
            assert path.read_bytes().endswith(b"\n")

    def test_a_last_line_of_an_editor_counts(self, path: Path) -> None:
        DecisionLog(path, NAMES).append(*EVERY_KIND[:3])
        path.write_bytes(path.read_bytes().rstrip(b"\n"))
        log = DecisionLog(path, NAMES)
        assert log.answers == EVERY_KIND[:3]
        log.append(EVERY_KIND[3])
        assert DecisionLog(path, NAMES).answers == EVERY_KIND[:4]

    def test_an_empty_file_is_started(self, path: Path) -> None:
        path.touch()
        log = DecisionLog(path, NAMES)
        assert log.answers == []
        log.append(*EVERY_KIND)
        assert DecisionLog(path, NAMES).answers == EVERY_KIND

    def test_a_full_disk_leaves_whole_lines(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        log = DecisionLog(path, NAMES)
        log.append(EVERY_KIND[0])
        before = path.read_bytes()

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match=r"can't be written: No space left on device\."):
            log.append(EVERY_KIND[1])
        assert path.read_bytes() == before
        assert log.answers == EVERY_KIND[:1]


class TestForeignFile:
    def test_it_gets_the_columns_and_prefixes_that_it_lacks(self, path: Path) -> None:
        path.write_text(
            "#mapping_set_id: http://m.org/1\n#mapping_date: 2024-01-01\n"
            "#curie_map: {ns1: 'http://other.org/', A: 'http://a.org/'}\n"
            "object_id\tother\tpredicate_id\tsubject_id\tmapping_justification\tconfidence\n"
            "http://b.org/paris\tk=v\tskos:exactMatch\tA:Paris\tsemapv:LexicalMatching\t0.5\r\n"
        )
        log = DecisionLog(path, NAMES, LABELS)
        assert log.answers == [Answer(0, 0, "same")]
        log.append(*EVERY_KIND)
        assert log.answers == DecisionLog(path, NAMES).answers == [log.answers[0], *EVERY_KIND]
        lines = path.read_text().splitlines()
        head = yaml.safe_load("\n".join(line[1:] for line in lines if line[0] == "#"))
        assert head["mapping_set_id"] == "http://m.org/1"
        assert head["curie_map"]["ns1"] == "http://other.org/"
        assert head["curie_map"]["A"] == "http://a.org/"
        assert "mapping_tool" not in head  # it did not make their mappings
        columns, row, *_ = [line.split("\t") for line in lines if line[0] != "#"]
        assert columns[:4] == ["object_id", "predicate_id", "subject_id", "mapping_justification"]
        assert columns[-1] == "other"
        found = dict(zip(columns, row, strict=True))
        assert (found["confidence"], found["other"]) == ("0.5", "k=v")
        assert any(line.split("\t")[2] == "A:Paris" for line in lines[-len(EVERY_KIND) :])

    @pytest.mark.slow
    def test_it_stays_valid(self, path: Path) -> None:
        path.write_text(
            "#curie_map:\n#  A: http://a.org/\n#  B: http://b.org/\n"
            "subject_id\tpredicate_id\tobject_id\tmapping_justification\n"
            "A:Paris\tskos:exactMatch\tB:paris\tsemapv:LexicalMatching\n"
        )
        DecisionLog(path, NAMES, LABELS).append(*EVERY_KIND)
        assert len(valid_rows(path, SLOTS)) == 1 + len(EVERY_KIND)

    def test_its_own_columns_and_prefixes_are_used_if_they_suffice(self, path: Path) -> None:
        columns = (
            "object_id\tsubject_id\tpredicate_id\tpredicate_modifier\tsubject_label\tobject_label\t"
            "author_label\tmapping_date\tcomment\tmapping_justification\tconfidence\tother\n"
        )
        text = f"#curie_map:\n#  AA: http://a.org/\n#  BB: http://b.org/\n{columns}"
        path.write_text(text)
        log = DecisionLog(path, NAMES)
        log.append(Answer(0, 0, "different", "Ann"))
        added = path.read_text().removeprefix(text)
        assert added.split("\t")[:4] == ["BB:paris", "AA:Paris", "owl:sameAs", "Not"]
        assert log.answers == [Answer(0, 0, "different", "Ann")]

    def test_a_prefix_of_ours_must_not_occur_in_it(self, path: Path) -> None:
        names = Pair(Names(["ns1:x", "http://a.org/x"]), Names(["http://a.org/y"]))
        path.write_text("subject_id\tpredicate_id\tobject_id\nns1:x\towl:sameAs\thttp://a.org/y\n")
        log = DecisionLog(path, names)
        log.append(Answer(1, 0, "different"))
        assert log.answers == [Answer(0, 0, "same"), Answer(1, 0, "different")]

    def test_what_is_no_sssom_is_left_alone(self, path: Path) -> None:
        path.write_text("a\tb\tsame\n")
        log = DecisionLog(path, NAMES)
        with pytest.raises(DataError, match="line 1: expected the columns subject_id"):
            log.append(EVERY_KIND[0])
        with pytest.raises(DataError, match="line 1: expected the columns subject_id"):
            _ = log.answers
        assert path.read_text() == "a\tb\tsame\n"


def test_none_is_about_one_entity(path: Path) -> None:
    with pytest.raises(ValueError, match="'none' must be about one entity"):
        DecisionLog(path, NAMES).append(Answer(0, 0, "none"))
    assert not path.exists()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    log = DecisionLog(tmp_path / "none" / "decisions.sssom.tsv", NAMES)
    with pytest.raises(DataError, match="can't be written: No such file"):
        log.append(EVERY_KIND[0])

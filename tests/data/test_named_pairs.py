"""Seeds from equal names: which they are, what they leave, and when they are dropped.

The pair is one random graph, twice. Each entity has a word for a name, and each side calls its
entities by IRIs or numbers of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clusterea
from clusterea.data.entity_names import entity_names
from clusterea.errors import InputError
from clusterea.types import Benchmark, IntArray, Names, Pair, Texts
from clusterea.workspace import fingerprint, task_key
from conftest import Ran, WriteFiles
from small_graphs import random_pair

Command = Callable[..., Ran]
SIZE = 60
LABEL = "<http://www.w3.org/2000/01/rdf-schema#label>"
WORDS = [f"{one}{two}an {three}or" for one in "bdfk" for two in "aeiou" for three in "lmn"]
TRIPLES = random_pair(0, entities=SIZE, triples=4 * SIZE).source.triples.tolist()
SHUFFLED = np.random.default_rng(0).permutation(SIZE).tolist()


def ntriples(
    call: Callable[[int], str], label: Callable[[int], str | None] = lambda _: None
) -> str:
    """The graph as N-Triples; `call` and `label` name entity i."""
    lines = [f"<{call(h)}> <http://r/{r}> <{call(t)}> .\n" for h, r, t in TRIPLES]
    labels = ((call(i), label(i)) for i in range(SIZE))
    return "".join(
        [*lines, *(f'<{iri}> {LABEL} "{text}" .\n' for iri, text in labels if text is not None)]
    )


def number(side: str, shift: int = 0) -> Callable[[int], str]:
    """Ids that tell nothing."""
    return lambda entity: f"http://{side}/Q{1000 * (shift + 1) + (7 * entity + shift) % SIZE}"


def word(entity: int) -> str:
    return WORDS[entity]


def links(benchmark: Benchmark, ids: IntArray) -> set[tuple[str, str]]:
    source, target = benchmark.names
    return {(source[left], target[right]) for left, right in ids.tolist()}


def right_ones(entities: Sequence[int] = range(SIZE)) -> set[tuple[str, str]]:
    return {(number("one")(each), number("two", 1)(each)) for each in entities}


@pytest.fixture
def files(write_files: WriteFiles) -> Path:
    """Opaque IRIs and equal labels; links of the first ten entities."""
    rows = sorted(right_ones(range(10)))
    return write_files(
        {
            "a.nt": ntriples(number("one"), word),
            "b.nt": ntriples(number("two", 1), lambda entity: word(entity).upper()),
            "links.tsv": "".join(f"{source}\t{target}\n" for source, target in rows),
        }
    )


class TestSeeds:
    def test_without_links_they_are_equal_names(self, files: Path) -> None:
        benchmark = clusterea.load(files / "a.nt", files / "b.nt")
        assert benchmark.seeds_from == {"names": SIZE, "iris": 0}
        assert links(benchmark, benchmark.task.presumed) == right_ones()
        assert not benchmark.task.num_seeds
        assert benchmark.task.num_undecided == Pair(SIZE, SIZE)  # they are matched like others

    def test_with_links_they_are_links_alone(self, files: Path) -> None:
        benchmark = clusterea.load(files / "a.nt", files / "b.nt", links=files / "links.tsv")
        assert benchmark.seeds_from == {"links": 10, "iris": 0}
        assert not len(benchmark.task.presumed)
        assert benchmark.task.names is not None  # but names are compared

    def test_links_and_names(self, files: Path) -> None:
        benchmark = clusterea.load(
            files / "a.nt", files / "b.nt", links=files / "links.tsv", seeds_from="links,names"
        )
        assert benchmark.seeds_from == {"links": 10, "names": SIZE - 10}
        assert links(benchmark, benchmark.task.seeds) == right_ones(range(10))
        assert links(benchmark, benchmark.task.presumed) == right_ones(range(10, SIZE))

    def test_test_links_of_their_entities_stay(self, files: Path) -> None:
        benchmark = clusterea.load(
            files / "a.nt", files / "b.nt", links=files / "links.tsv", seeds_from="names"
        )
        assert links(benchmark, benchmark.test_links) == right_ones(range(10))
        assert links(benchmark, benchmark.task.presumed) == right_ones()
        assert benchmark.dropped == {
            "source triples with a literal": SIZE,
            "target triples with a literal": SIZE,
        }

    def test_test_links_do_not_change_them(self, files: Path) -> None:
        """No leak."""
        asked: dict[str, Any] = {"links": files / "links.tsv", "seeds_from": "names"}
        one = clusterea.load(files / "a.nt", files / "b.nt", **asked)
        wrong = [f"{number('one')(each)}\t{number('two', 1)(each + 1)}\n" for each in range(20)]
        (files / "links.tsv").write_text("".join(wrong))
        other = clusterea.load(files / "a.nt", files / "b.nt", **asked)
        assert task_key(one.task) == task_key(other.task)

    def test_a_name_of_two_is_no_seed(self, files: Path) -> None:
        (files / "a.nt").write_text(ntriples(number("one"), lambda i: word(max(i, 1))))
        benchmark = clusterea.load(files / "a.nt", files / "b.nt")
        assert links(benchmark, benchmark.task.presumed) == right_ones(range(2, SIZE))

    def test_identical_iris_count_more(self, write_files: WriteFiles) -> None:
        folder = write_files({"a.nt": ntriples(number("one"), word)})
        benchmark = clusterea.load(folder / "a.nt", folder / "a.nt")
        assert benchmark.seeds_from == {"names": 0, "iris": SIZE}
        names = clusterea.load(folder / "a.nt", folder / "a.nt", seeds_from="names")
        assert names.seeds_from == {"names": SIZE}
        assert links(benchmark, benchmark.task.seeds) == links(names, names.task.presumed)

    def test_readable_iris_are_names_too(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {
                "a.nt": ntriples(lambda i: f"http://one/{word(i).title().replace(' ', '')}"),
                "b.nt": ntriples(lambda i: f"http://two#{word(i).replace(' ', '_')}"),
            }
        )
        benchmark = clusterea.load(folder / "a.nt", folder / "b.nt")
        assert benchmark.seeds_from == {"names": SIZE, "iris": 0}
        assert benchmark.labels is None

    def test_terms_of_vocabularies_and_blank_nodes_are_never_among_them(
        self, write_files: WriteFiles
    ) -> None:
        label = f'{LABEL} "same"'
        term = "<http://www.w3.org/2002/07/owl#Class>"
        folder = write_files(
            {
                "a.nt": f"<u:x> <u:r> {term} .\n{term} {label} .\n<u:x> {LABEL} 'x' .\n".replace(
                    "'", '"'
                ),
                "b.nt": f'<v:y> <u:r> <v:z> .\n<v:z> {label} .\n<v:y> {LABEL} "x" .\n',
            }
        )
        benchmark = clusterea.load(folder / "a.nt", folder / "b.nt")
        assert links(benchmark, benchmark.task.presumed) == {("u:x", "v:y")}


class TestDropped:
    """A source of seeds that is mostly wrong."""

    NOTE = "are not used as seeds: most of the {0} pairs are wrong. The neighbors of {0} of them"

    @pytest.fixture
    def shuffled_iris(self, write_files: WriteFiles) -> Path:
        call = number("one")
        return write_files(
            {
                "a.nt": ntriples(call, word),
                "b.nt": ntriples(lambda entity: call(SHUFFLED[entity]), word),
            }
        )

    @pytest.fixture
    def shuffled_labels(self, write_files: WriteFiles) -> Path:
        rows = sorted(right_ones(range(10)))
        return write_files(
            {
                "a.nt": ntriples(number("one"), word),
                "b.nt": ntriples(number("two", 1), lambda entity: word(SHUFFLED[entity])),
                "links.tsv": "".join(f"{source}\t{target}\n" for source, target in rows),
            }
        )

    def test_iris(self, shuffled_iris: Path) -> None:
        benchmark = clusterea.load(shuffled_iris / "a.nt", shuffled_iris / "b.nt")
        assert benchmark.seeds_from == {"names": SIZE, "iris": 0}
        assert not benchmark.task.num_seeds
        [note] = [each for each in benchmark.notes if "not used as seeds" in each]
        assert note.startswith(f"Identical IRIs {self.NOTE.format(SIZE)}")

    def test_names(self, shuffled_labels: Path) -> None:
        files = shuffled_labels / "a.nt", shuffled_labels / "b.nt"
        benchmark = clusterea.load(
            *files, links=shuffled_labels / "links.tsv", seeds_from="links,names"
        )
        assert benchmark.seeds_from == {"links": 10, "names": 0}
        [note] = [each for each in benchmark.notes if "not used as seeds" in each]
        assert note.startswith(f"Equal names {self.NOTE.format(42)}")  # 18 have a link

    def test_right_ones_are_not(self, files: Path) -> None:
        benchmark = clusterea.load(files / "a.nt", files / "b.nt")
        assert not [each for each in benchmark.notes if "not used as seeds" in each]

    def test_both_are_told(self, shuffled_labels: Path, clusterea_command: Command) -> None:
        files = shuffled_labels / "a.nt", shuffled_labels / "b.nt"
        ran = clusterea_command("info", *files)
        assert ran.code == 2
        assert ran.err == (
            "error: there is no known pair to learn from: no IRI is in both graphs. Equal names "
            "are not used as seeds: most of the 60 pairs are wrong. The neighbors of 60 of them "
            "were compared, and they are paired with each other hardly more often than by chance. "
            "Give pairs that are known with --links.\n"
        )

    def test_the_links_are_told(self, shuffled_labels: Path, clusterea_command: Command) -> None:
        files = shuffled_labels / "a.nt", shuffled_labels / "b.nt"
        asked = ["--links", shuffled_labels / "links.tsv", "--seeds-from", "names"]
        ran = clusterea_command("info", *files, *asked)
        assert ran.code == 2
        assert ran.err.startswith(
            "error: there is no known pair to learn from. Equal names are not used"
        )
        assert ran.err.endswith("Add links to --seeds-from.\n")


class TestNothingToLearnFrom:
    """One message that says what would help."""

    def told(self, write_files: WriteFiles, command: Command, *options: str) -> str:
        folder = write_files(
            {
                "a.nt": ntriples(number("one")),
                "b.nt": ntriples(number("two", 1)),
                "a.tsv": "1\tr\t2\n2\tr\t3\n",
                "b.tsv": "4\tr\t5\n5\tr\t6\n",
                "readable.nt": "<u:Anna> <u:r> <u:Bert> .\n",
                "others.nt": "<v:Anton> <v:r> <v:Berta> .\n",
            }
        )
        graphs = [folder / each if "." in each else each for each in options]
        ran = command("info", *graphs)
        assert ran.code == 2
        [line] = ran.err.splitlines()
        return line

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (
                ["a.nt", "b.nt"],
                "the entities have no names that can be compared; no IRI is in both graphs. Give "
                "pairs that are known with --links, or names with --name-files or "
                "--label-property.",
            ),
            (
                ["a.tsv", "b.tsv"],
                "the entities have no names that can be compared; no IRI is in both graphs. Give "
                "pairs that are known with --links, or names with --name-files.",
            ),
            (
                ["readable.nt", "b.nt"],
                "the entities of the target have no names that can be compared; no IRI is in both "
                "graphs. Give pairs that are known with --links, or names with --name-files or "
                "--label-property.",
            ),
            (
                ["a.nt", "b.nt", "--seeds-from", "iris"],
                "no IRI is in both graphs. Give pairs that are known with --links, or names with "
                "--name-files or --label-property.",
            ),
            (
                ["readable.nt", "others.nt", "--names", "none"],
                "no IRI is in both graphs. Give pairs that are known with --links, or use equal "
                "names with --names auto --seeds-from names.",
            ),
            (
                ["readable.nt", "others.nt"],
                "no name belongs to exactly one entity in each graph; no IRI is in both graphs. "
                "Give pairs that are known with --links.",
            ),
            (
                ["readable.nt", "others.nt", "--seeds-from", "iris"],
                "no IRI is in both graphs. Give pairs that are known with --links, or use equal "
                "names with --seeds-from names.",
            ),
        ],
    )
    def test_message(
        self,
        options: list[str],
        message: str,
        write_files: WriteFiles,
        clusterea_command: Command,
    ) -> None:
        told = self.told(write_files, clusterea_command, *options)
        assert told == f"error: there is no known pair to learn from: {message}"

    def test_python_names_arguments(self, write_files: WriteFiles) -> None:
        folder = write_files({"a.nt": ntriples(number("one")), "b.nt": ntriples(number("two", 1))})
        with pytest.raises(InputError, match="with links, or .* name_files or label_properties.$"):
            clusterea.load(folder / "a.nt", folder / "b.nt")


class TestNames:
    """Which names are compared."""

    def folder(self, write_files: WriteFiles) -> Path:
        triples = "".join(f"n{h}\tr{r}\tn{t}\n" for h, r, t in TRIPLES)
        labels = "".join(f"n{each}\t{word(each)}\n" for each in range(SIZE))
        return write_files(
            {
                "rel_triples_1": triples,
                "rel_triples_2": triples.replace("n", "m"),
                "ent_links": "".join(f"n{each}\tm{each}\n" for each in range(SIZE)),
                "labels_1": labels,
                "labels_2": "".join(f"m{each}\t{word(each)}\n" for each in range(0, SIZE, 2)),
            }
        )

    def test_a_folder_has_labels_that_are_compared_where_asked_for(
        self, write_files: WriteFiles
    ) -> None:
        folder = self.folder(write_files)
        plain = clusterea.load(folder, seeds_share=0.3)
        assert plain.task.names is None
        assert plain.labels is not None
        assert plain.labels.source.of(plain.names.source.index("n7")) == [word(7)]
        named = clusterea.load(folder, seeds_share=0.3, names="labels")
        assert named.task.names is not None
        assert named.task.names.map(lambda side: side.share) == Pair(1.0, 0.5)
        assert task_key(named.task) != task_key(plain.task)
        assert "Names: labels for 100 % and 50 % of entities." in named.notes
        seeds = clusterea.load(folder, names="labels", seeds_from="names")
        assert seeds.seeds_from == {"names": SIZE // 2}
        assert len(seeds.test_links) == SIZE

    def test_line_ends_of_windows(self, write_files: WriteFiles) -> None:
        folder = self.folder(write_files)
        before = clusterea.load(folder, names="labels")
        for name in ("labels_1", "labels_2", "rel_triples_1", "ent_links"):
            path = folder / name
            path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert fingerprint(clusterea.load(folder, names="labels")) == fingerprint(before)

    def test_labels_that_are_only_shown_are_no_part_of_the_task(
        self, write_files: WriteFiles
    ) -> None:
        with_labels = clusterea.load(self.folder(write_files))
        assert with_labels.labels is not None
        folder = self.folder(write_files)
        (folder / "labels_1").unlink()
        (folder / "labels_2").unlink()
        without = clusterea.load(folder)
        assert without.labels is None
        assert task_key(with_labels.task) == task_key(without.task)
        assert fingerprint(with_labels) != fingerprint(without)

    def test_seeds_from_names_need_names(self, write_files: WriteFiles) -> None:
        folder = self.folder(write_files)
        with pytest.raises(InputError, match="^seeds_from names needs names that are compared"):
            clusterea.load(folder, seeds_from="links,names")

    def test_opaque_ids_are_not_compared(self, write_files: WriteFiles) -> None:
        triples = "".join(f"{h}\t{r}\t{t}\n" for h, r, t in TRIPLES)
        ids = "".join(f"{each}\thttp://x/Q{each}\n" for each in range(SIZE))
        folder = write_files(
            {
                "triples_1": triples,
                "triples_2": triples,
                "ent_ids_1": ids,
                "ent_ids_2": ids.replace("Q", "P"),
                "ref_ent_ids": "".join(f"{each}\t{each}\n" for each in range(SIZE)),
            }
        )
        none = clusterea.load(folder, seeds_share=0.3, names="none")
        auto = clusterea.load(folder, seeds_share=0.3, names="auto")
        assert auto.task.names is None
        assert task_key(auto.task) == task_key(none.task)
        [note] = set(auto.notes) - set(none.notes)
        assert note.startswith("No names are used: ids such as 'Q")

    @pytest.mark.parametrize(
        ("how", "wanted"),
        [
            ("auto", [["anna"], ["bert"], []]),
            ("labels", [["anna"], [], []]),
            ("iris", [["a smith"], ["bert"], []]),
        ],
    )
    def test_labels_and_ids(self, how: str, wanted: list[list[str]]) -> None:
        entities = Names(["http://x/A_Smith", "http://x/Bert", "http://x/Q7"])
        labels = Texts.of_lists([["Anna"], [], ["42"]])
        found = entity_names(how, Pair(entities, entities), Pair(labels, labels)).texts
        assert found is not None
        assert [found.source.of(each) for each in range(3)] == wanted

    def test_none(self) -> None:
        entities = Names(["Anna"])
        assert entity_names("none", Pair(entities, entities), Pair(None, None)).texts is None

    def test_one_side_without_names_is_none(self) -> None:
        found = entity_names("auto", Pair(Names(["Anna"]), Names(["Q1"])), Pair(None, None))
        assert found.texts is None
        assert found.note == "No names are used: ids such as 'Q1' are not readable."

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            (
                Pair(None, None),
                "^--names labels: neither graph has labels. Name their RDF property",
            ),
            (
                Pair(None, Texts.of_lists([["A"]])),
                "^--names labels: the source graph has no labels",
            ),
        ],
    )
    def test_labels_where_there_are_none(self, labels: Any, message: str) -> None:
        entities = Names(["Anna"])
        with pytest.raises(InputError, match=message):
            entity_names("labels", Pair(entities, entities), labels)

    def test_an_unknown_way_is_refused(self) -> None:
        with pytest.raises(InputError, match="unknown source of names 'label'; .*'labels'"):
            clusterea.load([("a", "r", "b")], [("x", "s", "y")], links={"a": "x"}, names="label")

    @pytest.mark.parametrize(
        ("share", "shown"), [(1, "100 %"), (0.9999, "99.9 %"), (0.5, "50 %"), (0.0001, "0.1 %")]
    )
    def test_shares_are_never_rounded_to_all_or_nothing(self, share: float, shown: str) -> None:
        size = 10_000
        entities = Names([f"{'Anna' if i < share * size else 'Q'}{i}x" for i in range(size)])
        labels = Texts.of_lists([["Anna"] if i < share * size else [] for i in range(size)])
        note = entity_names("labels", Pair(entities, entities), Pair(labels, labels)).note
        assert note == f"Names: labels for {shown} and {shown} of entities."


def test_rows_in_another_order_give_the_same_task_and_labels(files: Path) -> None:
    one = clusterea.load(files / "a.nt", files / "b.nt")
    draw = np.random.default_rng(3)
    for name in ("a.nt", "b.nt"):
        rows = (files / name).read_text().splitlines(keepends=True)
        (files / name).write_text("".join(draw.permutation(rows)))
    other = clusterea.load(files / "a.nt", files / "b.nt")
    assert task_key(one.task.in_order()) == task_key(other.task.in_order())
    assert one.labels is not None
    assert other.labels is not None
    assert one.task.names is not None
    assert other.task.names is not None
    for before, after in [*one.labels.zip(other.labels), *one.task.names.zip(other.task.names)]:
        assert before.offsets.tolist() == after.offsets.tolist()
        assert before.values.equals(after.values)
    for names, labels in one.names.zip(one.labels):
        known = dict(zip(names, labels.values.to_pylist(), strict=True))
        assert len(set(known.values())) == SIZE
    assert one.labels.source.of(one.names.source.index(number("one")(5))) == [word(5)]


def test_the_warning_of_one_sided_seeds_counts_equal_names(
    write_files: WriteFiles, tmp_path: Path, clusterea_command: Command
) -> None:
    def call(side: str) -> Callable[[int], str]:
        return lambda each: f"http://same/Q{each}" if each < 20 else number(side)(each)

    folder = write_files({"a.nt": ntriples(call("one"), word), "b.nt": ntriples(call("two"), word)})
    asked = ["align", folder / "a.nt", folder / "b.nt", "--out", tmp_path / "run", "--dry-run"]
    ran = clusterea_command(*asked)
    assert "60 seeds (20 from identical IRIs, 40 from equal names)" in ran.out
    assert "seeds are identical IRIs" not in ran.out
    alone = clusterea_command(*asked, "--names", "none")
    assert "20 of 20 seeds are identical IRIs" in alone.out

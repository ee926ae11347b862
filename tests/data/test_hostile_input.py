"""Input made to do harm: refused with one line, in no time and with little memory."""

from __future__ import annotations

import gzip
import resource
import subprocess
import sys
from collections.abc import Callable

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import clusterea
from clusterea.data.delimited import read_delimited
from clusterea.data.formats import read_graph
from clusterea.data.hostile_rdf import DEEPEST_TRIPLE, LONGEST_ENTITY, MOST_ENTITIES
from clusterea.data.inputs import reading
from clusterea.data.links import read_links
from clusterea.errors import DataError
from conftest import Ran, WriteFiles

Command = Callable[..., Ran]
RDF = (
    "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>{}"
    "<rdf:Description rdf:about='{}'><e:r rdf:resource='http://y/'/></rdf:Description></rdf:RDF>"
)


def with_entities(declared: dict[str, str], about: str, *, late: bool = False) -> str:
    lines = "".join(f'  <!ENTITY {name} "{value}" >\n' for name, value in declared.items())
    doctype = f"<!DOCTYPE rdf:RDF [\n{lines}]>\n"
    return RDF.format(doctype, about) if late else doctype + RDF.format("", about)


LAUGHS = {"a0": "http://ha/"} | {f"a{n}": f"&a{n - 1};" * 10 for n in range(1, 10)}
BOMBS = {
    "billion laughs": with_entities(LAUGHS, "&a9;"),
    "after the root": with_entities(LAUGHS, "&a9;", late=True),
    "one long entity": with_entities({"a": "http://a/" + "x" * LONGEST_ENTITY}, "&a;"),
    "an endless entity": f'<!DOCTYPE r [<!ENTITY a "{"x" * 200_000}"',
    "many entities": with_entities({f"a{n}": "x" for n in range(MOST_ENTITIES + 1)}, "&a1;"),
    # Further than one look of the reader goes.
    "after much text": "<!--" + "x" * 65_530 + "-->" + with_entities(LAUGHS, "&a9;"),
}


@pytest.mark.parametrize("case", BOMBS)
def test_entity_bombs(case: str, write_files: WriteFiles) -> None:
    path = write_files({"g.owl": BOMBS[case]}) / "g.owl"
    with pytest.raises(DataError, match="g.owl: expected at most 1,000 XML entities of at most"):
        read_graph(path)


def test_many_references_to_one_entity(write_files: WriteFiles) -> None:
    path = write_files({"g.owl": with_entities({"a": "x" * 290}, "http://" + "&a;" * 100_000)})
    with pytest.raises(DataError, match="expected XML entities to make it at most 10 times as lo"):
        read_graph(path / "g.owl")


def test_entities_as_ontologies_have_them(write_files: WriteFiles) -> None:
    spaces = {f"ns{n}": f"http://example.org/ontologies/{n}#" for n in range(200)}
    declared = {"org": "http://example.org/", "ont": "&org;ontologies/", "pizza": "&ont;pizza#"}
    text = with_entities({**spaces, **declared}, "&pizza;Topping")
    # Wherever the reader's looks end, a declaration is seen whole.
    for shift in (0, 1, 65_536 - 120, 65_536 - 60, 65_536 - 7):
        path = write_files({"g.owl": f"<!--{' ' * shift}-->{text}"}) / "g.owl"
        assert list(read_graph(path).entities) == [
            "http://example.org/ontologies/pizza#Topping",
            "http://y/",
        ]


@pytest.mark.parametrize("shift", range(0, 400, 7))
def test_no_cut_hides_a_bomb(shift: int, write_files: WriteFiles) -> None:
    path = write_files(
        {"g.owl": "<!--" + " " * (65_536 - 420 + shift) + "-->" + BOMBS["billion laughs"]}
    )
    with pytest.raises(DataError, match="expected at most 1,000 XML entities"):
        read_graph(path / "g.owl")


def test_unknown_entities(write_files: WriteFiles) -> None:
    path = write_files({"g.owl": with_entities({"a": "&nobody;x"}, "&a;")}) / "g.owl"
    with pytest.raises(DataError, match="g.owl: expected known XML entities, got &nobody;"):
        read_graph(path)


def test_triples_in_triples(write_files: WriteFiles) -> None:
    # Deep enough to overflow the parser's stack and end the process, so it runs in one of its own.
    depth = 100_000
    text = "<a:a> <a:b> " + "<<( <a:a> <a:b> " * depth + "<a:c>" + " )>>" * depth + " .\n"
    path = write_files({"g.nt": text}) / "g.nt"
    program = (
        "import sys, pathlib; from clusterea.data.formats import read_graph\n"
        "read_graph(pathlib.Path(sys.argv[1]))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, path], capture_output=True, text=True, check=False
    )
    assert "expected triples in triples at most 100 deep, got more." in ran.stderr
    few = "<a:a> <a:b> " + "<<( <a:a> <a:b> " * 50 + "<a:c>" + " )>>" * 50 + " .\n"
    path.write_text(few * 3 + "<a:a> <a:b> <a:c> .\n")
    assert read_graph(path).dropped["triples about triples"] == 3


@pytest.mark.parametrize("before", range(4))
def test_a_bracket_that_the_reader_cuts_counts(before: int, write_files: WriteFiles) -> None:
    start = "\n<a:a> <a:b> "
    comment = "#" * (65_536 - len(start) - before)  # so many bytes of the bracket are read with it
    for depth in (DEEPEST_TRIPLE, DEEPEST_TRIPLE + 1):
        triples = "<<( <a:a> <a:b> " * depth + "<a:c>" + " )>>" * depth
        path = write_files({"g.nt": f"{comment}{start}{triples} .\n<a:a> <a:b> <a:c> .\n"}) / "g.nt"
        if depth == DEEPEST_TRIPLE:
            assert read_graph(path).dropped["triples about triples"] == 1
        else:
            with pytest.raises(DataError, match="expected triples in triples at most 100 deep"):
                read_graph(path)


@pytest.mark.parametrize("start", ['{"@id":"a:a","a:b":', "[", '{"@graph":['])
def test_json_in_json(start: str, write_files: WriteFiles) -> None:
    path = write_files({"g.jsonld": start * 5000}) / "g.jsonld"  # takes the parser minutes
    with pytest.raises(DataError, match="g.jsonld: expected JSON at most 200 brackets deep"):
        read_graph(path)


@pytest.mark.parametrize("shift", range(-3, 4))
def test_brackets_in_strings_are_text(shift: int, write_files: WriteFiles) -> None:
    start, unit = '{"@id": "a:a", "a:b": {"@id": "a:c"}, "a:n": "', r"\"\\" + "[" * 300
    # The reader's look ends before or inside of what is escaped.
    room = 65_536 - len(start) - 100 * len(unit) - shift
    path = write_files({"g.jsonld": " " * room + start + unit * 300 + '"}'}) / "g.jsonld"
    assert read_graph(path).graph.num_triples == 1


def test_a_compressed_file_without_end(write_files: WriteFiles) -> None:
    packed = gzip.compress(b"<a:a> <a:b> <a:c> .\n" * 5_000_000, compresslevel=1)  # of 100 MB
    folder = write_files({"g.nt.gz": packed, "t.tsv": "x\tr\ty\n", "l.tsv": "a:a\tx\n"})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DataError, match="g.nt.gz: expected at most 1,000,000 bytes once unpacked"):
        clusterea.load(
            *(folder / "g.nt.gz", folder / "t.tsv"),
            links=folder / "l.tsv",
            max_input_size=1_000_000,
        )
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000  # KiB


@pytest.mark.parametrize("name", ["l.tsv", "l.tsv.gz"])
def test_the_option(name: str, write_files: WriteFiles, clusterea_command: Command) -> None:
    links = b"".join(b"a%d\tx%d\n" % (n, n) for n in range(1000))
    folder = write_files(
        {"s": "a0\tr\ta1\n", "t": "x0\tr\tx1\n", "l.tsv": links, "l.tsv.gz": gzip.compress(links)}
    )
    command = ("info", folder / "s", folder / "t", "--links", folder / name, "--max-input-size")
    ran = clusterea_command(*command, "9kB")
    assert ran.code == 2
    assert ran.err == (
        f"error: {folder / name}: expected at most 9,000 bytes once unpacked, got more. "
        "Allow more with --max-input-size.\n"
    )
    assert clusterea_command(*command, "12kB").code == 0
    assert "--max-input-size must be a size" in clusterea_command(*command, "much").err


@pytest.mark.parametrize("name", ["g.tsv.gz", "g.csv.gz"])
def test_the_limit_holds_where_arrow_reads_in_a_thread(name: str, write_files: WriteFiles) -> None:
    row = b"a,r,b\n" if "csv" in name else b"a\tr\tb\n"
    rows = row * (4_000_000 // len(row))  # more than one buffer
    path = write_files({name: gzip.compress(rows, compresslevel=1)}) / name
    with reading(3_000_000), pytest.raises(DataError, match="expected at most 3,000,000 bytes"):
        read_delimited(path, ("head", "relation", "tail"), delimiter="," if "csv" in name else "\t")


def test_a_small_parquet_file_of_many_rows(write_files: WriteFiles) -> None:
    folder = write_files({"t.tsv": "x\tr\ty\n"})
    name = pa.DictionaryArray.from_arrays(pa.array([0] * 100_000, pa.int8()), ["n" * 1000])
    table = pa.table({"head": name, "relation": name, "tail": name})
    pq.write_table(table, folder / "g.parquet", compression="zstd")
    assert (folder / "g.parquet").stat().st_size < 100_000
    with reading(10_000_000), pytest.raises(DataError, match="g.parquet: expected at most"):
        read_graph(folder / "g.parquet")


@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_that_is_not_utf8(dictionary: bool, write_files: WriteFiles) -> None:
    folder = write_files({"t.tsv": "x\tr\ty\n"})
    names = pa.array(["a", "b", "WRONG"])
    head = names.dictionary_encode() if dictionary else names
    table = pa.table({"head": head, "relation": names, "tail": names})
    path = folder / "g.parquet"
    pq.write_table(table, path, compression="none", use_dictionary=dictionary)
    path.write_bytes(path.read_bytes().replace(b"WRONG", b"WR\xff\xfeG"))
    with pytest.raises(DataError, match=r"g.parquet: (can't be read as Parquet|expected UTF-8)"):
        read_graph(path)


class TestMessages:
    LONG = "x" * 100_000

    def said(self, write_files: WriteFiles, content: str, name: str) -> str:
        folder = write_files({name: content, "t.tsv": "x\tr\ty\n", "l.tsv": "a\tx\n"})
        with pytest.raises(DataError) as refused:
            clusterea.load(folder / name, folder / "t.tsv", links=folder / "l.tsv")
        return str(refused.value).removeprefix(str(folder))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("g.ttl", f"<http://a> e:{LONG} <http://b> ."),
            ("g.nt", f"<http://a b{LONG}> <http://b> <http://c> ."),
            ("g.rdf", f"<{LONG}:RDF>"),
            ("g.csv", f"head,relation,tail,{LONG},{LONG}\na,b,c,d,e\n"),
            ("g.csv", f"subject_{'_' * 100_000}id,predicate_id,object_id\n"),
            ("g.csv", f"subject_{'_' * 100_000}id,predicate_id,object_id\n,b,c\n"),
            ("g.jsonld", f'{{"@context": {{"a": "b", "@{LONG}": 1}}, "@id": 1}}'),
        ],
    )
    def test_what_is_quoted_is_cut(self, name: str, content: str, write_files: WriteFiles) -> None:
        assert len(self.said(write_files, content, name)) < 500

    def test_links_of_long_names(self, write_files: WriteFiles) -> None:
        folder = write_files(
            {"s": "a\tr\tb\n", "t": "x\tr\ty\n", "l": f"{self.LONG}\t{self.LONG}y\n"}
        )
        with pytest.raises(DataError, match="got none among 1; the first is of 'xxx") as refused:
            clusterea.load(folder / "s", folder / "t", links=folder / "l")
        assert len(str(refused.value)) < 1000

    def test_seeds_of_long_names(self, write_files: WriteFiles) -> None:
        long = self.LONG
        folder = write_files(
            {"s": f"{long}\tr\tb\n", "t": "x\tr\ty\n", "l": f"{long}\tx\n{long}\ty\n"}
        )
        with pytest.raises(DataError, match="l line 2: expected one counterpart") as refused:
            clusterea.load(folder / "s", folder / "t", seeds=folder / "l")
        assert len(str(refused.value)) < 1000

    def test_control_characters_are_escaped(self, write_files: WriteFiles) -> None:
        said = self.said(write_files, "<\x1b[2J> <b> <c> .\n", "g\x1b.nt")
        assert "\x1b" not in said
        assert "g\\x1b.nt" in said


def test_a_line_that_never_ends(write_files: WriteFiles) -> None:
    folder = write_files({"g.tsv": b"x" * (9 << 20)})
    with pytest.raises(DataError, match="g.tsv line 1: expected lines of less than 8,388,608"):
        read_graph(folder / "g.tsv")


def test_a_yaml_bomb(write_files: WriteFiles) -> None:
    laughs = "".join(f"#a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    head = f"#a0: &a0 [ha, ha]\n{laughs}#curie_map:\n#  e: *a11\n"
    text = f"{head}subject_id\tpredicate_id\tobject_id\ne:a\towl:sameAs\te:b\n"
    path = write_files({"l.sssom.tsv": text}) / "l.sssom.tsv"
    with pytest.raises(DataError, match="expected an address for each prefix in curie_map"):
        read_links(path)


def test_a_yaml_head_too_deep(write_files: WriteFiles) -> None:
    text = f"#x: {'[' * 5000}\nsubject_id\tpredicate_id\tobject_id\ne:a\towl:sameAs\te:b\n"
    path = write_files({"l.sssom.tsv": text}) / "l.sssom.tsv"
    with pytest.raises(DataError, match="expected a YAML head in its comment lines"):
        read_links(path)


def test_a_cell_longer_than_the_csv_module_reads(write_files: WriteFiles) -> None:
    long = "x" * 200_000
    path = write_files({"g.csv": f'head,relation,tail,note\na,r,b,"{long}, ""y"""\n \n'}) / "g.csv"
    assert read_graph(path).graph.num_triples == 1
    path.write_text(f'head,relation,tail,note\na,r,b,"{long}, y",more\n')
    with pytest.raises(DataError, match="line 2: expected 4 comma-separated columns, got 5"):
        read_graph(path)


class TestXmlThatIsCutOff:
    NODE = "<rdf:Description rdf:about='http://x/{}'><e:r rdf:resource='http://y/'/></rdf:Description>\n"
    ROOT = "<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='http://e/'>\n"

    @pytest.mark.parametrize("nodes", [1, 2000])
    def test_between_two_elements(self, nodes: int, write_files: WriteFiles) -> None:
        text = "<?xml version='1.0'?>\n" + self.ROOT + "".join(map(self.NODE.format, range(nodes)))
        path = write_files({"g.rdf": text}) / "g.rdf"
        with pytest.raises(
            DataError, match="g.rdf: expected </rdf:RDF> at its end; the file is cu"
        ):
            read_graph(path)
        path.write_text(f"{text}</rdf:RDF>")
        assert read_graph(path).graph.num_triples == nodes

    @pytest.mark.parametrize(
        "end", ["</rdf:RDF >\n\n", "</rdf:RDF><!-- <x> -->\n", "</rdf:RDF><?x?>"]
    )
    def test_ends_that_are_good(self, end: str, write_files: WriteFiles) -> None:
        text = f"<!-- <a> -->{self.ROOT}{self.NODE.format(1)}{end}"
        assert read_graph(write_files({"g.rdf": text}) / "g.rdf").graph.num_triples == 1

    def test_a_remark_at_any_place(self, write_files: WriteFiles) -> None:
        whole = self.ROOT + self.NODE.format(1) + "</rdf:RDF>"
        for shift in range(12):  # the reader's look ends inside the remark
            room = 65_536 - len(whole) - len("<!---->") - shift
            path = write_files({"g.rdf": f"<!--{' ' * room}-->{whole}<!-- end -->\n"}) / "g.rdf"
            assert read_graph(path).graph.num_triples == 1

    @pytest.mark.parametrize("size", [5_000, 200_000])
    @pytest.mark.parametrize("after", ["{}", "<!--{}-->", "<!-- <x> --><?x {}?>\n"])
    def test_much_may_follow_the_root(self, after: str, size: int, write_files: WriteFiles) -> None:
        text = self.ROOT + self.NODE.format(1)
        rest = after.format("\n" * size)
        path = write_files({"g.rdf": f"{text}</rdf:RDF>{rest}"}) / "g.rdf"
        assert read_graph(path).graph.num_triples == 1
        path.write_text(text + rest)
        with pytest.raises(DataError, match="expected </rdf:RDF> at its end"):
            read_graph(path)

    @pytest.mark.parametrize("size", [0, 200_000])
    def test_an_end_in_a_comment_is_none(self, size: int, write_files: WriteFiles) -> None:
        text = f"<!--{'x' * size}-->{self.ROOT}{self.NODE.format(1)}<!--{'x' * size}</rdf:RDF>-->"
        with pytest.raises(DataError, match="expected </rdf:RDF> at its end"):
            read_graph(write_files({"g.rdf": text}) / "g.rdf")

    @pytest.mark.parametrize("size", [0, 200_000])
    def test_long_literals(self, size: int, write_files: WriteFiles) -> None:
        literal = f"<e:n>{'x' * size}</e:n><e:n><![CDATA[{'<!--' * size}]]></e:n>"
        node = self.NODE.format(1).replace("<e:r", f"{literal}<e:r")
        path = write_files({"g.rdf": f"{self.ROOT}{node}</rdf:RDF>"}) / "g.rdf"
        assert read_graph(path).graph.num_triples == 1

    def test_utf16(self, write_files: WriteFiles) -> None:
        text = f"<?xml version='1.0'?>{self.ROOT}{self.NODE.format(1)}</rdf:RDF>"
        path = write_files({"g.rdf": text.encode("utf-16")}) / "g.rdf"
        with pytest.raises(DataError, match="g.rdf line 1: expected UTF-8, got UTF-16."):
            read_graph(path, "rdfxml")

    def test_an_only_node_that_is_empty(self, write_files: WriteFiles) -> None:
        root = self.ROOT.replace("<rdf:RDF", "<e:Thing rdf:about='http://x/'").replace(">\n", "/>")
        assert read_graph(write_files({"g.rdf": root}) / "g.rdf").graph.num_triples == 1

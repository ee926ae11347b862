"""Commands that the documents show are run, so that they stay true."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import Ran

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]

TRIPLES = (
    "<http://e/{0}1> <http://e/r> <http://e/{0}2> .\n"
    "<http://e/{0}2> <http://e/q> <http://e/{0}3> .\n"
)
KNOWN = "http://e/a1\thttp://e/b1\nhttp://e/a2\thttp://e/b2\nhttp://e/a3\thttp://e/b3\n"


def shown_commands() -> list[str]:
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line.split("  #")[0].strip() for line in lines]


@pytest.fixture
def shown_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the README's commands speak of."""
    import gzip

    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.chdir(tmp_path)
    Path("mine.nt").write_text(TRIPLES.format("a"))
    Path("theirs.ttl.gz").write_bytes(gzip.compress(TRIPLES.format("b").encode()))
    Path("known.tsv").write_text(KNOWN)
    Path("dbpedia").mkdir()
    Path("dbpedia/rel_triples_1").write_text("a\tr\tb\nb\tr\tc\nc\tr\td\n")
    Path("dbpedia/rel_triples_2").write_text("x\tr\ty\ny\tr\tz\nz\tr\tw\n")
    Path("dbpedia/ent_links").write_text("a\tx\nb\ty\nc\tz\nd\tw\n")
    columns = ("subject", "predicate", "object")
    pq.write_table(
        pa.table(dict(zip(columns, (["e:a"], ["e:r"], ["e:b"]), strict=True))), "a.parquet"
    )
    Path("b.csv").write_text("subject,predicate,object\ne:x,e:s,e:y\n")
    Path("known.sssom.tsv").write_text(
        "subject_id\tpredicate_id\tobject_id\ne:a\tskos:exactMatch\te:x\n"
    )


@pytest.mark.usefixtures("shown_files")
@pytest.mark.parametrize("command", [c for c in shown_commands() if c.startswith("clusterea")])
def test_the_readme_shows_commands_that_work(
    command: str, clusterea_command: Callable[..., Ran]
) -> None:
    ran = clusterea_command(*shlex.split(command)[1:])
    assert ran.code == 0, ran.err


def test_the_readme_shows_commands() -> None:
    assert {"make demo", "make test"} <= set(shown_commands())


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = document.read_text()
    for address in re.findall(r"\]\(([^)#]+)", text):
        if not address.startswith("http"):
            assert (document.parent / address).exists(), f"{document.name}: {address}"


@pytest.mark.parametrize(
    "document", sorted((ROOT / "docs/decisions").glob("*.md")), ids=lambda path: path.name
)
def test_a_decision_is_short_and_whole(document: Path) -> None:
    text = document.read_text()
    assert len(text.splitlines()) < 40
    assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences"))

"""What documents show is true: commands and code run, links lead somewhere, pages are current."""

from __future__ import annotations

import ast
import gzip
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import reduce
from operator import getitem
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clusterea.data.label_properties import LABEL_PROPERTIES
from clusterea.data.synthetic import SHAPES, LabelShape, generate, write_openea
from clusterea.types import Pair
from conftest import Ran

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "docs").glob("**/*.md")),
]
WIDE = [ROOT / "docs/results.md", ROOT / "docs/speed.md", ROOT / "benchmarks/README.md"]
WRAPPED = [ROOT / "CHANGELOG.md", *(path for path in DOCUMENTS if path not in WIDE)]
DECISIONS = sorted((ROOT / "docs/decisions").glob("0*.md"))
COMMANDS = ["README.md", "docs/tutorial.md"]  # whose commands are run, one after the other
CODE = [
    *("README.md", "docs/extending.md", "docs/fusion.md", "docs/generator.md"),
    *("docs/names.md", "docs/python.md"),
]
WITH_TABLES = [
    *("README.md", "docs/speed.md", "docs/beyond.md", "docs/training.md"),
    *("docs/few-seeds.md", "docs/names.md"),
]
SHELL = ("awk ", "head ", "tail ", "test ")  # what a tutorial may need besides clusterea
QUICK = ["--set", "training.epochs=1", "--set", "training.dimension=16", "--device", "cpu"]
# More links than the tutorial's 700, and names that are in it.
SHAPE = replace(
    SHAPES["demo"], entities=Pair(1200, 1100), triples=Pair(5000, 4500), relations=Pair(20, 15)
)


def shown_commands(document: str) -> list[str]:
    """The lines after a `$`, without the comments behind them."""
    blocks = re.findall(r"```console\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line.split("  #")[0].strip() for line in lines]


def shown_code(document: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


@pytest.fixture(scope="module")
def small_pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents") / "pair"
    write_openea(generate(SHAPE, seed=0), folder)
    return folder


@pytest.fixture
def shown_files(small_pair: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that the documents speak of, in the working directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("DATA", "dbpedia", "demo/pair", "path/to/openea-folder"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).symlink_to(small_pair)
    triples = [
        "".join(
            "<{}> <{}> <{}> .\n".format(*line.split("\t"))
            for line in (small_pair / f"rel_triples_{side}").read_text().splitlines()
        )
        for side in (1, 2)
    ]
    Path("mine.nt").write_text(triples[0])
    Path("theirs.ttl.gz").write_bytes(gzip.compress(triples[1].encode()))
    labeled = generate(SHAPE, 0, LabelShape())
    assert labeled.labels is not None
    for name, lines, names, labels in zip(
        "ab", triples, labeled.names, labeled.labels, strict=True
    ):
        of = zip(names.arrow.take(pa.array(labels.owners)), labels.values, strict=True)
        stated = (f'<{entity}> <{LABEL_PROPERTIES[1]}> "{label}" .\n' for entity, label in of)
        Path(f"{name}.nt").write_text(lines + "".join(stated))
    Path("known.tsv").write_text((small_pair / "ent_links").read_text())
    columns = ("subject", "predicate", "object")
    pq.write_table(
        pa.table(dict(zip(columns, (["e:a"], ["e:r"], ["e:b"]), strict=True))), "a.parquet"
    )
    Path("b.csv").write_text("subject,predicate,object\ne:x,e:s,e:y\n")
    Path("known.sssom.tsv").write_text(
        "subject_id\tpredicate_id\tobject_id\ne:a\tskos:exactMatch\te:x\n"
    )


@pytest.mark.slow
@pytest.mark.usefixtures("shown_files")
@pytest.mark.parametrize("document", COMMANDS)
def test_commands_that_a_document_shows_work(
    document: str, clusterea_command: Callable[..., Ran]
) -> None:
    commands = shown_commands(document)
    ran = 0
    for command in commands + commands:  # who reads it again has the files of the first time
        if command.startswith(SHELL):
            subprocess.run(["bash", "-c", command], check=True)
        elif command.startswith("clusterea "):
            _, name, *arguments = shlex.split(command)
            if name == "align":  # an option given twice counts as given last
                arguments += ["--preset", "fast", *QUICK]
            elif name == "train":
                arguments += QUICK
            done = clusterea_command(name, *arguments)
            assert done.code == 0, f"{command}\n{done.err}"
            ran += 1
        else:  # run by other tests, or by whoever checks out the repository
            assert command.startswith(("make ", "pip install clusterea")), command
    assert ran >= 10


NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
MACHINE = ("Expected ", "Disk ", "…", "│ …")  # lines that depend on the machine, or stand for more


def shown_outputs(document: str) -> Iterator[tuple[str, list[str]]]:
    """Each command of a document with the lines that it shows below it."""
    for block in re.findall(r"```console\n(.*?)```", (ROOT / document).read_text(), re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *lines = part.splitlines()
            yield command, [line for line in lines if not line.startswith(MACHINE)]


def is_alike(shown: str, printed: str) -> bool:
    """Whether two lines have the same words, and numbers within 2, or 5 % of large ones.

    The default preset gives other bits with another number of threads or another processor.
    """
    words = [NUMBER.sub("#", line).split() for line in (shown, printed)]
    numbers = [[float(n.replace(",", "")) for n in NUMBER.findall(x)] for x in (shown, printed)]
    return words[0] == words[1] and all(
        abs(a - b) <= max(2, 0.05 * b) for a, b in zip(*numbers, strict=True)
    )


@pytest.mark.slow
def test_the_tutorial_shows_what_its_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusterea_command: Callable[..., Ran]
) -> None:
    """With the demo pair and the default preset: takes minutes."""
    monkeypatch.chdir(tmp_path)
    write_openea(generate(SHAPES["demo"], seed=0), Path("demo/pair"))
    compared = 0
    for command, lines in shown_outputs("docs/tutorial.md"):
        if command.startswith("clusterea "):
            _, name, *arguments = shlex.split(command)
            own = ["--device", "cpu"] if name == "align" else []
            done = clusterea_command(name, *arguments, *own)
            assert done.code == 0, done.err
            printed = (done.out + done.err).splitlines()
            for line in lines:
                assert any(is_alike(line, each) for each in printed), f"{line}\n{done.out}"
                compared += 1
        else:
            subprocess.run(["bash", "-c", command], check=True)
    assert compared > 30


def test_every_make_target_shown_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for document in DOCUMENTS:
        shown = re.findall(r"(?:^\$ |`)make ([a-z]+)", document.read_text(), re.MULTILINE)
        assert set(shown) <= targets, document.name
    assert "make demo" in shown_commands("README.md")


@pytest.fixture
def clean_registries() -> Iterator[None]:
    """What a document's code registers is gone after it."""
    from clusterea.models import ENCODERS
    from clusterea.samplers import SAMPLERS

    with pytest.MonkeyPatch.context() as patch:
        # An entry that is set, and then put back as it was, is absent again.
        for registry, name in ((ENCODERS, "mean"), (SAMPLERS, "nearest-seed")):
            patch.setitem(registry, name, None)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("shown_files", "clean_registries")
@pytest.mark.parametrize(
    ("document", "place"), [(name, i) for name in CODE for i in range(len(shown_code(name)))]
)
def test_code_that_a_document_shows_works(document: str, place: int) -> None:
    code = shown_code(document)[place]
    if "to_pandas" in code:
        pytest.importorskip("pandas")
    if "sentence_transformers" in code:  # it would fetch a model
        pytest.skip("needs a sentence encoder")
    exec(compile(code, f"{document}, block {place + 1}", "exec"), {"__name__": "shown"})


@pytest.mark.slow
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cells one after the other, and what each would show; no kernel is needed for that."""
    pytest.importorskip("pandas")
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "docs/notebook.ipynb").read_text())["cells"]
    space: dict[str, Any] = {"__name__": "shown"}
    shown = []
    for cell in (each for each in cells if each["cell_type"] == "code"):
        assert cell["outputs"] == []
        parsed = ast.parse("".join(cell["source"]))
        last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
        exec(compile(parsed, cell["id"], "exec"), space)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), space)
            shown.append(value._repr_html_() if hasattr(value, "_repr_html_") else repr(value))
    assert len(shown) >= 8
    told = "".join(shown)
    for words in ("Benchmark: ", "links; ", "Metrics on ", "source neighbor", "has no link"):
        assert words in told, words
    hits = space["result"].evaluate().test_candidates.source.hits[1]
    assert hits > 0.5
    assert (tmp_path / "report.html").stat().st_size
    assert (tmp_path / "same-as.nt").read_text().startswith("<http")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for address in re.findall(r"\]\(([^)#]+)", text):
        if not address.startswith("http"):
            assert (document.parent / address).is_file(), f"{document.name}: {address}"


@pytest.mark.parametrize("document", DECISIONS, ids=lambda path: path.name)
def test_a_decision_is_short_and_whole(document: Path) -> None:
    text = document.read_text()
    assert len(text.splitlines()) < 40
    assert all(f"**{part}.**" in text for part in ("Context", "Decision", "Consequences"))
    assert text.startswith(f"# {int(document.name[:4])}. ")


def test_decisions_are_numbered_in_a_row_and_listed() -> None:
    assert [int(path.name[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
    listed = (ROOT / "docs/decisions/index.md").read_text()
    for path in DECISIONS:
        title = path.read_text().splitlines()[0].partition(". ")[2]
        assert f"[{title}]({path.name})" in listed


def _resolve(name: str) -> object:
    """What a dotted name stands for: a module, or an attribute of one."""
    package, *parts = name.split(".")
    value: object = importlib.import_module(package)
    for count, part in enumerate(parts, start=1):
        if not hasattr(value, part):
            importlib.import_module(".".join([package, *parts[:count]]))
        value = getattr(value, part)
    return value


def test_the_map_from_the_paper_to_the_code_names_what_exists() -> None:
    text = (ROOT / "docs/reading.md").read_text()
    names = re.findall(r"`(clusterea(?:\.\w+)+)`", text)
    assert len(names) > 30
    for name in names:
        assert callable(_resolve(name)) or name.rpartition(".")[2].isupper(), name
    for path in re.findall(r"`(benchmarks/\w+\.py)`", text):
        assert (ROOT / path).is_file(), path


def test_the_map_from_the_paper_to_the_code_is_complete() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (ROOT / "docs/reading.md").read_text(), re.MULTILINE)
    assert [row for row in rows if row.startswith("(")] == [f"({n})" for n in range(1, 7)]
    sections = ("3", "4.1, figure 2", "4.2", "4.3", "4.4", "5.1", "5.2, 5.3", "5.4")
    assert set(sections) | {f"appendix {letter}" for letter in "ABCDE"} <= set(rows)


def test_the_source_cites_only_the_six_numbered_equations_of_the_paper() -> None:
    for path in (ROOT / "src").glob("**/*.py"):
        cited = re.findall(r"equations? \(?(\d+)", path.read_text(), re.IGNORECASE)
        assert all(1 <= int(number) <= 6 for number in cited), path.name


@pytest.mark.parametrize("document", WRAPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_lines_of_a_document_have_100_columns_at_most(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    for line in text.splitlines():
        is_table_or_image = line.startswith(("|", "!["))
        assert len(line) <= 100 or is_table_or_image or " " not in line.strip(), line


@pytest.fixture(scope="module")
def settings_page() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "generate_settings", ROOT / "docs/generate_settings.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_settings_page_is_current(settings_page: ModuleType) -> None:
    assert settings_page.PAGE.read_text() == settings_page.page(), "run `make docs`"


def test_the_results_are_what_the_records_say(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name in WITH_TABLES:  # tables are written into these
        (tmp_path / name).write_text((ROOT / name).read_text())
    command = [sys.executable, "benchmarks/reproduce.py", "--write", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True)
    for name in (*WITH_TABLES, "docs/results.md", "docs/results.tsv"):
        written = (tmp_path / name).read_text()
        assert written == (ROOT / name).read_text(), "run `benchmarks/reproduce.py --write`"
    drawn, kept = (
        (folder / "docs/images/few_seeds.svg").read_text() for folder in (tmp_path, ROOT)
    )
    by = [re.findall(r"<dc:title>(.*)</dc:title>", plot) for plot in (drawn, kept)]
    if by[0] == by[1]:  # another version of matplotlib draws other bytes
        assert drawn == kept, "run `benchmarks/reproduce.py --write`"


FIGURE = re.compile(r"([\d,.]+)[^\d<]*<!-- figure: (\S+) (.*?)(\S+) -->")  # benchmarks/README.md
UNITS = {"": 1, "%": 0.01, "ms": 1e-3, "min": 60, "GB": 1e9, "GiB": 2**30}


def recorded(file: str, wanted: str, field: str) -> float:
    """The mean of a field over the records that match `name=pattern …`."""
    lines = (ROOT / "benchmarks/results" / file).read_text().splitlines()
    patterns = dict(each.split("=", 1) for each in wanted.split())
    path, _, unit = field.partition("/")
    values: list[float] = []
    for record in map(json.loads, lines):
        found = (str(record.get(name)) for name in patterns)
        if all(map(fnmatchcase, found, patterns.values())):
            values.append(reduce(getitem, path.split("."), record))
    return sum(values) / len(values) / UNITS[unit]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_marked_figures_are_what_the_records_say(document: Path) -> None:
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    marked = FIGURE.findall(text)
    assert len(marked) == text.count("<!-- figure:")
    for shown, file, wanted, field in marked:
        decimals = len(shown.partition(".")[2])
        value = f"{recorded(file, wanted, field):.{decimals}f}"
        assert value == shown.replace(",", ""), f"{shown}: {file} {wanted}{field}"


# Documents whose figures come from elsewhere: whole pages are generated, decision records are notes
# of their day, and the tutorial is compared with what its commands print.
UNMARKED = [
    *("docs/results.md", "docs/settings.md", "docs/tutorial.md", "benchmarks/README.md"),
    *(str(path.relative_to(ROOT)) for path in (ROOT / "docs/decisions").glob("*.md")),
]
MEASURED = re.compile(
    r"\b\d\d\.\d\b|\b\d[\d,.]*\s?(?:%|s\b|ms\b|[KMG]i?B\b|(?:seconds|minutes|points)\b)"
)
GIVEN = (  # definitions, settings, targets and the shares of seeds
    *("% seeds", "% of the links as seeds", "papers use 30 %", "refined from 30 %"),
    *("30 % of the links, averaged", "are equal to 3 %", "64 GiB after decompression"),
    "(73.5, 82.5, 86.0 and 90.0)",
)


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if str(path.relative_to(ROOT)) not in UNMARKED],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_measured_figures_are_marked_or_generated(document: Path) -> None:
    """As far as a unit or a metric's name tells a measured figure."""
    text = document.read_text()
    for generated in re.findall(r"<!-- (\w+) -->", text):
        text = re.sub(f"<!-- {generated} -->.*<!-- /{generated} -->", "", text, flags=re.DOTALL)
    text = re.sub(r"```.*?```|`[^`]*`", "", FIGURE.sub("", text), flags=re.DOTALL)
    for found in MEASURED.finditer(text):
        around = text[max(found.start() - 40, 0) : found.end() + 40]
        assert any(given in around for given in GIVEN), f"mark {found[0]!r} in: {around}"


def test_numbers_of_seeds_in_the_documents_are_those_of_the_code() -> None:
    from clusterea.pipeline.learning import ENOUGH, FEWEST_SEEDS, MOST_HELD_OUT
    from clusterea.types.alignment import ENOUGH_EXAMPLES, ENOUGH_SEEDS

    text = (ROOT / "docs/few-seeds.md").read_text()
    assert f"| 1 to {FEWEST_SEEDS - 1} |" in text
    assert f"| {FEWEST_SEEDS} to {ENOUGH_SEEDS - 1} |" in text
    assert f"| {ENOUGH_SEEDS} or more |" in text
    text = (ROOT / "docs/matching.md").read_text()
    assert f"A confidence takes {ENOUGH_EXAMPLES} links" in text
    assert f"| at least {ENOUGH / MOST_HELD_OUT:,.0f}, and" in text
    assert f"| the share, at least {ENOUGH} |" in text
    assert f"| the share, at least {ENOUGH // 2}, at most half of the seeds |" in text
    assert f"| fewer than {FEWEST_SEEDS} | 1 | none |" in text


def test_the_settings_page_has_every_setting_and_symbol(settings_page: ModuleType) -> None:
    from dataclasses import fields

    text = settings_page.page()
    for config in settings_page.CONFIGS.values():
        for field in fields(config):
            assert f"| `{field.name}` |" in text
    for symbol in ("K", "K_s", "K_r", "K_n", "N_p", "N_n", "F", "D", "λ", "γ"):
        assert f"| *{symbol}* |" in text
    known = {f"{stage}.{f.name}" for stage, c in settings_page.CONFIGS.items() for f in fields(c)}
    assert set(settings_page.WORDS) <= known


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    if importlib.util.find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install 'clusterea[docs]'")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    for page in ("index", "tutorial", "settings", "decisions/index"):
        assert (tmp_path / "site" / f"{page}.html").is_file()
    assert not (tmp_path / "site/generate_settings.py").exists()

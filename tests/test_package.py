"""The package as others get it: a wheel, in an environment that holds nothing else of ours."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable
from email import message_from_bytes, policy
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from packaging.requirements import Requirement
from packaging.version import Version

import clusterea

ROOT = Path(__file__).resolve().parents[1]
KINDS_OF_CHANGES = ("Added", "Changed", "Deprecated", "Removed", "Fixed", "Security")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and with the wheel that was built from it."""
    out = tmp_path_factory.mktemp("built")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def about(wheel: Path) -> Message:
    """The wheel's metadata; its payload is the long description."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("dist-info/METADATA"))
        return message_from_bytes(archive.read(name), policy=policy.default)


def declared(requirements: Iterable[str]) -> dict[str, Distribution]:
    """The distributions that these need and all that those need in turn, but for extras."""
    found: dict[str, Distribution] = {}
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        key = requirement.name.lower().replace("_", "-")
        if key not in found:
            found[key] = distribution(requirement.name)
            waiting += [(Requirement(each), "") for each in found[key].requires or ()]
        for wanted in requirement.extras:
            waiting += [(Requirement(each), wanted) for each in found[key].requires or ()]
    return found


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(
    wheel: Path, about: Message, tmp_path: Path
) -> None:
    """pip installs the wheel; its dependencies are links to those that run this test.

    So there is nothing to download, and nothing in the environment that the wheel doesn't declare.
    """
    place = tmp_path / "environment"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    (site,) = (place / "lib").glob("python*/site-packages")
    for each in declared(about.get_all("Requires-Dist", [])).values():
        for top in {file.parts[0] for file in each.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(each.locate_file(top))))
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def run(*command: str | Path) -> str:
        ran = subprocess.run(
            list(map(str, command)),
            check=False,
            capture_output=True,
            text=True,
            cwd=folder,
            env=environment,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check")
    run(*pip, "install", "--no-deps", "--no-index", wheel)
    assert "No broken requirements" in run(*pip, "check")
    for undeclared in ("pandas", "pytest", "ray", "xgboost"):
        assert not (site / undeclared).exists()
    found = Path(run(python, "-c", "import clusterea; print(clusterea.__file__)").strip())
    assert found.is_relative_to(place)
    tool = place / "bin" / "clusterea"
    assert run(tool, "--version") == f"clusterea {clusterea.__version__}\n"
    run(tool, "generate", "pair", "--entities", "200", "--relations", "9")
    options = ("--seeds-share", "0.3", "--preset", "fast", "--device", "cpu")
    assert "Hits@1" in run(tool, "align", "pair", *options, "--out", "run")
    for name in ("alignment.tsv", "report.html", "metrics.json"):
        assert (folder / "run" / name).stat().st_size
    run(tool, "export", "run", "--format", "ntriples")


@pytest.mark.slow
def test_the_project_page_says_where_things_are(about: Message) -> None:
    labels = [each.partition(",")[0] for each in about.get_all("Project-URL", [])]
    assert labels == ["Homepage", "Documentation", "Changelog", "Issues"]
    assert {"dev", "docs", "ray", "review", "xgboost"} == set(about.get_all("Provides-Extra", []))
    assert about["Requires-Python"] == ">=3.11"
    assert about["License-Expression"] == "Apache-2.0"


@pytest.mark.slow
def test_the_project_page_shows_the_readme_with_links_that_work_anywhere(about: Message) -> None:
    assert about["Description-Content-Type"] == "text/markdown"
    payload = about.get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode()
    links = _links(text)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)
    home = str(about.get_all("Project-URL", [])[0]).partition(", ")[2]
    at_home = text.replace(f"{home}/blob/main/", "").replace(f"{home}/raw/main/", "")
    assert at_home.strip() == (ROOT / "README.md").read_text().strip()


def _links(markdown: str) -> list[str]:
    """The addresses of links and images, in the order in which they come."""
    tokens = [token for block in MarkdownIt().parse(markdown) for token in block.children or ()]
    return [
        str(token.attrs.get("href") or token.attrs["src"])
        for token in tokens
        if token.type in ("link_open", "image")
    ]


@pytest.mark.slow
def test_the_source_distribution_has_what_a_build_needs(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as members:
        names = {name.partition("/")[2] for name in members.getnames()}
    needed = {"hatch_build.py", "README.md", "LICENSE", "tests/test_package.py", "Makefile"}
    assert needed <= names


@pytest.mark.slow
def test_the_wheel_holds_the_license_and_the_types(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "clusterea/py.typed" in names
    assert "clusterea/presets/training.toml" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "benchmarks", "docs")) for name in names)


def test_reading_data_needs_neither_torch_nor_the_parsers_of_other_formats(tmp_path: Path) -> None:
    (tmp_path / "rel_triples_1").write_text("a\tr\tb\n")
    (tmp_path / "rel_triples_2").write_text("x\ts\ty\n")
    (tmp_path / "ent_links").write_text("a\tx\n")
    code = (
        "import sys\n"
        "for name in ('torch', 'pyoxigraph', 'pooch', 'yaml', 'typer', 'rich'):\n"
        "    sys.modules[name] = None\n"  # importing it now fails
        "import clusterea\n"
        f"print(clusterea.load({str(tmp_path)!r}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Benchmark(1 seeds")


def test_the_changelog_has_the_form_that_it_names() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    titles = re.findall(r"^## \[(.+)\](?: - \d{4}-\d\d-\d\d)?$", text, re.MULTILINE)
    assert len(titles) == len(sections)
    assert titles[0] in ("Unreleased", clusterea.__version__)
    released = [Version(title) for title in titles if title != "Unreleased"]
    assert released == sorted(set(released), reverse=True)
    assert all(each <= Version(clusterea.__version__) for each in released)
    for section in sections:
        kinds = re.findall(r"^### (.+)$", section, re.MULTILINE)
        assert kinds == [each for each in KINDS_OF_CHANGES if each in kinds]


def test_the_citation_has_the_version() -> None:
    assert f"\nversion: {clusterea.__version__}\n" in (ROOT / "CITATION.cff").read_text()

"""The package as others get it: a wheel, in an environment that holds nothing else of ours."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

import clusterea

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out)]
    subprocess.run([*command, str(ROOT)], check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The environment has the dependencies, but neither our sources nor our editable install."""
    place = tmp_path / "env"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    (site,) = (place / "lib").glob("python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    # A path file inside a folder that is itself added by one is not read: so no editable install.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}

    def run(*arguments: str) -> str:
        return subprocess.run(
            [str(python), *arguments],
            check=True,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
        ).stdout

    found = Path(run("-c", "import clusterea; print(clusterea.__file__)").strip())
    assert found.is_relative_to(place)
    assert run("-m", "clusterea", "--version") == f"clusterea {clusterea.__version__}\n"
    run("-m", "clusterea", "generate", "pair", "--entities", "200", "--relations", "9")
    assert "200" in run("-m", "clusterea", "info", "pair", "--seeds-share", "0.3")


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
        "for name in ('torch', 'pyoxigraph', 'httpx', 'platformdirs', 'yaml', 'typer', 'rich'):\n"
        "    sys.modules[name] = None\n"  # importing it now fails
        "import clusterea\n"
        f"print(clusterea.load({str(tmp_path)!r}))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("Benchmark(1 seeds")


def test_the_changelog_knows_this_version_or_what_comes_next() -> None:
    text = (ROOT / "CHANGELOG.md").read_text()
    assert "## [Unreleased]" in text or f"## [{clusterea.__version__}]" in text

"""The type hints, as a user's own type checker sees them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mypy import api

SOURCES = Path(__file__).resolve().parents[1] / "src"
USE = """\
from pathlib import Path

import networkx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import rdflib

import clusterea

benchmark = clusterea.load("folder", seeds_share=0.3)
reveal_type(benchmark)  # Benchmark
reveal_type(clusterea.align(benchmark, preset="fast"))  # AlignmentResult
clusterea.align(benchmark, "fast")
clusterea.align(benchmark.task, settings={"training.epochs": 10}, run="folder")
triples = [("a", "r", "b"), ("a", "s", "c")]
clusterea.load(triples, Path("theirs.nt"), links=[("a", "x")])
clusterea.load(pd.DataFrame(triples), pl.DataFrame(triples), links={"a": "x"})
clusterea.load(pa.table({}), np.zeros((3, 3), dtype=np.int64), seeds=pd.DataFrame())
clusterea.load(networkx.DiGraph(), rdflib.Graph(), links=np.zeros((3, 2), dtype=np.int64))
result = clusterea.align(triples, iter(triples), links=[("a", "x")], preset="fast")
reveal_type(result.alignment)  # Alignment
reveal_type(result.evaluate())  # Metrics
result.report("report.html")
result.export(Path("links.nt"), format="ntriples")
similarity = clusterea.fuse(np.eye(3), np.eye(3), candidates=2)
reveal_type(similarity)  # Similarity
"""
MISUSE = {
    "clusterea.load(7)": "arg-type",
    "clusterea.load(['abc'], 'b.nt', links='c.tsv')": "list-item",
    "clusterea.load('a.nt', 'b.nt', links=[('a', 'b', 'c')])": "list-item",
    "clusterea.load('a.nt', 'b.nt', link='c.tsv')": "call-arg",
    "clusterea.align('a.nt', links='c.tsv')": "call-overload",
    "clusterea.align(clusterea.load('folder'), 7)": "call-overload",
    "clusterea.align(clusterea.load('folder'), presets='fast')": "call-overload",
}


def checked(folder: Path, code: str) -> list[str]:
    """What mypy says of the code, line by line."""
    (folder / "use.py").write_text(code)
    settings = folder / "mypy.ini"
    untyped = "".join(
        f"[mypy-{each}.*]\nignore_missing_imports = true\n"
        for each in ("networkx", "pandas", "pyarrow", "scipy")
    )
    settings.write_text(f"[mypy]\nstrict = true\nmypy_path = {SOURCES}\n{untyped}")
    options = ["--config-file", str(settings), "--cache-dir", str(folder / "cache")]
    out, err, _ = api.run([*options, "--no-error-summary", str(folder / "use.py")])
    assert not err
    return out.splitlines()


@pytest.mark.slow
def test_what_users_write_is_typed(tmp_path: Path) -> None:
    calls = "".join(f"{call}\n" for call in MISUSE)
    lines = checked(tmp_path, USE + calls)
    start = len(USE.splitlines())
    notes = [line for line in lines if "Revealed type" in line]
    wanted = ["Benchmark", "AlignmentResult", "Alignment", "Metrics", "Similarity"]
    assert [line.rpartition(".")[2].rstrip('"') for line in notes] == wanted
    errors = {int(line.split(":")[1]) - start - 1: line for line in lines if ": error:" in line}
    assert [list(MISUSE)[place] for place in errors if place >= 0] == list(MISUSE), lines
    for place, (call, code) in enumerate(MISUSE.items()):
        assert f"[{code}]" in errors[place], call
    assert min(errors) == 0, lines  # the right calls have none

"""How long it takes to read a pair of DBP1M's size, and 3 million lines of N-Triples.

    .venv/bin/python benchmarks/read_speed.py [--pair FOLDER] [--out results.json]

Bars: the pair (10.0 M triples of URIs as TSV, about 1 GB) in at most 40 s and 8 GiB, the N-Triples
in at most 30 s, on two cores. Without --pair one is generated. Each reading is its own process,
so that its peak memory is its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from itertools import islice
from pathlib import Path

NT_LINES = 3_000_000

READ_PAIR = """
import json, resource, sys, time
import clusterea
start = time.perf_counter()
benchmark = clusterea.load(sys.argv[1])
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"what": repr(benchmark), "seconds": seconds, "peak_gib": peak}))
"""
READ_RDF = """
import json, resource, sys, time
from pathlib import Path
from clusterea.data.formats import read_graph
start = time.perf_counter()
named = read_graph(Path(sys.argv[1]))
seconds = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(json.dumps({"what": repr(named.graph), "seconds": seconds, "peak_gib": peak}))
"""


def measure(script: str, path: Path) -> dict[str, object]:
    """What the script printed, run in a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    )
    result: dict[str, object] = json.loads(ran.stdout)
    return result


def write_ntriples(triples: Path, out: Path, lines: int) -> None:
    """The first triples of a TSV file as N-Triples; every tenth line a literal."""
    with triples.open() as source, out.open("w") as target:
        for number, line in enumerate(islice(source, lines)):
            head, relation, tail = line.rstrip("\n").split("\t")
            value = f'"literal number {number}"@en' if number % 10 == 9 else f"<{tail}>"
            target.write(f"<{head}> <{relation}> {value} .\n")


def main() -> None:
    """Measures both and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pair", type=Path, help="an OpenEA folder of DBP1M's size")
    parser.add_argument("--out", type=Path, help="write the figures here, as JSON")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        pair = arguments.pair
        if pair is None:
            pair = Path(scratch) / "pair"
            command = [sys.executable, "-m", "clusterea", "generate", str(pair)]
            subprocess.run([*command, "--like", "dbp1m-en-fr"], check=True)
        size = sum((pair / f"rel_triples_{side}").stat().st_size for side in (1, 2))
        ntriples = Path(scratch) / "triples.nt"
        write_ntriples(pair / "rel_triples_1", ntriples, NT_LINES)
        results = {
            "tsv_pair": {"megabytes": size / 1e6, **measure(READ_PAIR, pair)},
            "ntriples": {
                "megabytes": ntriples.stat().st_size / 1e6,
                "lines": NT_LINES,
                **measure(READ_RDF, ntriples),
            },
        }
    print(json.dumps(results, indent=2))
    if arguments.out:
        arguments.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()

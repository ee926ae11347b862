"""How long a pair takes to generate and to write, and how much memory.

.venv/bin/python benchmarks/generate_speed.py --like dbp1m-en-fr
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

from clusterea.data.synthetic import SHAPES, generate, write_openea


def main() -> None:
    """Prints one line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--like", choices=SHAPES, default="dbp1m-en-fr")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="keep the folder here")
    options = parser.parse_args()

    begin = time.perf_counter()
    benchmark = generate(SHAPES[options.like], options.seed)
    generated = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch) / options.like
        write_openea(benchmark, folder)
        written = time.perf_counter()
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())

    print(benchmark)
    print(f"generating: {generated - begin:.1f} s")
    print(f"writing: {written - generated:.1f} s for {size / 1e9:.2f} GB")
    # Linux counts in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"peak resident memory: {peak:.2f} GiB")


if __name__ == "__main__":
    main()

"""A benchmark as an artifact: arrays in one safetensors file, names in Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clusterea.checksums import file_checksum
from clusterea.errors import DamagedError
from clusterea.files import replacing
from clusterea.in_threads import in_threads
from clusterea.types import (
    AlignmentTask,
    Benchmark,
    KnowledgeGraph,
    Names,
    Pair,
    Texts,
)
from clusterea.workspace.tensors import (
    AGAIN,
    read_sealed,
    read_tensors,
    write_sealed,
    write_tensors,
)

SIDES = Pair("source", "target")
TENSORS = "tensors.safetensors"
ABOUT = "about.json"
FILES = (  # of every benchmark; one with names or labels has more
    TENSORS,
    *(f"{side}_{kind}.parquet" for kind in ("entities", "relations") for side in SIDES),
)


def write_benchmark(benchmark: Benchmark, folder: Path, key: str) -> None:
    """Writes a benchmark as the artifact `key` into a folder."""
    from torch import from_numpy

    task = benchmark.task
    pairs: dict[str, Pair[Any]] = {
        "triples": task.graphs.map(lambda graph: graph.triples),
        "keys": task.tie_keys,
        "structural": task.structural,
        "alone": task.alone,
    }
    if benchmark.dangling is not None:
        pairs["dangling"] = benchmark.dangling
    texts = {"names": task.names, "labels": benchmark.labels}
    for kind, both in texts.items():
        if both is not None:
            pairs[kind] = both.map(lambda side: side.offsets)
    if task.features is not None:
        pairs["features"] = task.features
    arrays = {
        "seeds": task.seeds,
        "presumed": task.presumed,
        "rejected": task.rejected,
        "chosen": task.chosen,
        "test_links": benchmark.test_links,
    }
    for name, pair in pairs.items():
        arrays |= {f"{side}_{name}": array for side, array in SIDES.zip(pair)}
    strings: dict[str, Pair[pa.Array]] = {
        "entities": benchmark.names.map(lambda side: side.arrow),
        "relations": benchmark.relation_names.map(lambda side: side.arrow),
        **{kind: both.map(lambda side: side.values) for kind, both in texts.items() if both},
    }
    columns = {
        f"{side}_{kind}.parquet": column
        for kind, both in strings.items()
        for side, column in SIDES.zip(both)
    }

    def write(name: str) -> tuple[str, str]:
        if name == TENSORS:
            tensors = {k: from_numpy(v.copy()) for k, v in arrays.items()}
            write_tensors(folder / TENSORS, tensors, key)
        else:
            with replacing(folder / name) as beside:
                pq.write_table(pa.table({"name": columns[name]}), beside)
        return name, file_checksum(folder / name)

    about = {
        "dropped": dict(benchmark.dropped),
        "format": benchmark.format,
        "seeds_from": dict(benchmark.seeds_from),
        "files": dict(in_threads(write, [TENSORS, *columns])),
    }
    write_sealed(folder / ABOUT, key, about)


def check_files(folder: Path) -> dict[str, Any]:
    """The contents of `about.json`, after comparing the other files with their checksums."""
    about = read_sealed(folder / ABOUT, folder.name)
    for name in {*FILES, *about["files"]}:
        path = folder / name
        if not path.is_file():
            raise DamagedError(path, f"is missing; {AGAIN}")
        if file_checksum(path) != about["files"].get(name):
            raise DamagedError(path, f"is damaged; {AGAIN}")
    return about


def read_benchmark(folder: Path) -> Benchmark:
    """Reads the benchmark that `write_benchmark` wrote."""
    try:
        return _read(folder)
    except DamagedError:
        raise
    except (FileNotFoundError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        raise DamagedError(folder, f"is damaged; {AGAIN}") from error


def _read(folder: Path) -> Benchmark:
    about = check_files(folder)
    arrays = {k: v.numpy() for k, v in read_tensors(folder / TENSORS, folder.name).items()}

    def pair(name: str) -> Pair[Any]:
        return SIDES.map(lambda side: arrays[f"{side}_{name}"])

    def strings(kind: str) -> Pair[pa.Array]:
        tables = SIDES.map(lambda side: pq.read_table(folder / f"{side}_{kind}.parquet"))
        return tables.map(lambda table: table["name"].combine_chunks())

    def names(kind: str) -> Pair[Names]:
        return strings(kind).map(Names.of_distinct)

    def texts(kind: str) -> Pair[Texts] | None:
        if f"source_{kind}" not in arrays:
            return None
        return pair(kind).zip(strings(kind)).map(lambda side: Texts(*side))

    entities, relations = names("entities"), names("relations")
    sizes = entities.zip(relations)
    graphs = (
        pair("triples")
        .zip(sizes)
        .map(lambda side: KnowledgeGraph(side[0], len(side[1][0]), len(side[1][1])))
    )
    return Benchmark(
        AlignmentTask(
            graphs,
            arrays["seeds"],
            pair("keys"),
            pair("structural"),
            arrays["presumed"],
            texts("names"),
            pair("features") if "source_features" in arrays else None,
            arrays["rejected"],
            pair("alone"),
            arrays["chosen"],
        ),
        arrays["test_links"],
        entities,
        relations,
        pair("dangling") if "source_dangling" in arrays else None,
        about["dropped"],
        about["format"],
        about["seeds_from"],
        labels=texts("labels"),
    )

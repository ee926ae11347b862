"""The public datasets that `fetch` knows by name, and where they come from."""

from __future__ import annotations

from dataclasses import dataclass

from clusterea.errors import unknown_name


@dataclass(frozen=True, slots=True)
class Archive:
    """A published file that holds one or more datasets.

    Attributes:
        name: Its file name in the cache.
        url: Where it is published.
        sha512: The checksum it must have, wherever it was downloaded from.
    """

    name: str
    url: str
    sha512: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """One pair of knowledge graphs with its known links.

    Attributes:
        name: What a user types.
        archive: The file it is published in.
        folder: Its path inside that file.
        description: One line for a list.
    """

    name: str
    archive: Archive
    folder: str
    description: str


OPENEA = Archive(
    name="OpenEA_dataset_v2.0.zip",
    url="https://figshare.com/ndownloader/files/34234391",
    sha512=(
        "c1589f185f86e05c497de147b4d6c243c66775cb4b50c6b41ecc71b36cfafb4c"
        "9f86fbee94e1e78a7ee056dd69df1ce3fc210ae07dc64955ad2bfda7450545ef"
    ),
)

_GRAPHS = {
    "en-fr": "English and French DBpedia",
    "en-de": "English and German DBpedia",
    "d-w": "DBpedia and Wikidata",
    "d-y": "DBpedia and YAGO",
}
_SIZES = {"15k": "15,000", "100k": "100,000"}
_VERSIONS = {"V1": ("", "as sparse as the source"), "V2": ("-v2", "twice as dense")}


def _openea_datasets() -> dict[str, Dataset]:
    """OpenEA's sixteen datasets by name; the V1 ones, which the paper uses, have no suffix."""
    datasets = {}
    for version, (suffix, density) in _VERSIONS.items():
        for size, entities in _SIZES.items():
            for graphs, title in _GRAPHS.items():
                name = f"ids{size}-{graphs}{suffix}"
                datasets[name] = Dataset(
                    name=name,
                    archive=OPENEA,
                    folder=(
                        "OpenEA_dataset_v2.0/"
                        f"{graphs.replace('-', '_').upper()}_{size.upper()}_{version}"
                    ),
                    description=f"{title}, {entities} entities a side, {density} ({version})",
                )
    return datasets


DATASETS: dict[str, Dataset] = _openea_datasets()


def find_dataset(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        InputError: There is none; the message lists the known names.
    """
    if name not in DATASETS:
        raise unknown_name("dataset", name, DATASETS)
    return DATASETS[name]

from __future__ import annotations

import re

import pytest

from clusterea.data.datasets.catalog import DATASETS, find_dataset
from clusterea.errors import InputError


def test_the_names_are_openeas_sixteen() -> None:
    expected = {
        f"ids{size}-{graphs}{suffix}"
        for size in ("15k", "100k")
        for graphs in ("en-fr", "en-de", "d-w", "d-y")
        for suffix in ("", "-v2")
    }
    assert set(DATASETS) == expected
    assert len(DATASETS) == 16


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("ids15k-en-fr", "OpenEA_dataset_v2.0/EN_FR_15K_V1"),
        ("ids100k-en-de", "OpenEA_dataset_v2.0/EN_DE_100K_V1"),
        ("ids15k-d-w", "OpenEA_dataset_v2.0/D_W_15K_V1"),
        ("ids100k-d-y-v2", "OpenEA_dataset_v2.0/D_Y_100K_V2"),
    ],
)
def test_a_name_leads_to_its_folder_in_the_archive(name: str, folder: str) -> None:
    assert find_dataset(name).folder == folder
    assert find_dataset(name).name == name


def test_no_two_datasets_share_a_folder_or_a_description() -> None:
    assert len({dataset.folder for dataset in DATASETS.values()}) == 16
    assert len({dataset.description for dataset in DATASETS.values()}) == 16


def test_every_archive_has_a_whole_sum_and_a_safe_address() -> None:
    for dataset in DATASETS.values():
        assert re.fullmatch("[0-9a-f]{128}", dataset.archive.sha512)
        assert dataset.archive.url.startswith("https://")


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"unknown dataset 'ids15k-en-rf'.*Did you mean 'ids15k-"):
        find_dataset("ids15k-en-rf")

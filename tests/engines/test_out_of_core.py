from __future__ import annotations

import gc
import resource
from pathlib import Path

import engine_units as units
import torch

from clusterea.engines.out_of_core import OutOfCore

ROWS = 1_000_000


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_goes_with_its_reference(tmp_path: Path) -> None:
    engine = OutOfCore(2, tmp_path)
    held = engine.submit(units.double, engine.put(torch.ones(ROWS)))
    gc.collect()
    (file,) = files(tmp_path)
    assert file.stat().st_size >= 4 * ROWS
    (value,) = engine.get([held])
    del held
    gc.collect()
    assert not files(tmp_path)
    assert float(value.sum()) == 2 * ROWS  # what was read stays
    engine.close()


def test_small_values_need_no_file(tmp_path: Path) -> None:
    engine = OutOfCore(2, tmp_path)
    held = engine.put(torch.ones(ROWS)[:10])
    assert not list(tmp_path.iterdir())
    (value,) = engine.get([held])
    assert value.untyped_storage().nbytes() == 40  # not all the rows
    engine.close()


def test_closed_it_leaves_nothing(tmp_path: Path) -> None:
    engine = OutOfCore(2, tmp_path)
    held = engine.put(torch.ones(ROWS))
    place = engine.empty((ROWS,), torch.float32)
    engine.close()
    assert not list(tmp_path.iterdir())
    place[:] = 1
    assert float(place.sum()) == ROWS
    del held  # its file is gone already


def test_a_unit_that_writes_changes_nothing_that_is_held(tmp_path: Path) -> None:
    engine = OutOfCore(2, tmp_path)
    held = engine.put(torch.ones(ROWS))
    engine.get([held])[0].zero_()
    assert float(engine.get([held])[0].sum()) == ROWS
    engine.close()


def test_more_values_than_open_files(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    engine = OutOfCore(2, tmp_path)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 200), hard))
    try:
        held = [engine.put(torch.full((20_000,), float(n))) for n in range(300)]
        values = engine.get(held)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert [int(value[-1]) for value in values] == list(range(300))
    engine.close()

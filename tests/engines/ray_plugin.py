"""A plugin of pytest: Ray on this machine, started once for all tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from clusterea.engines.ray_cluster import RayCluster


@pytest.fixture(scope="session")
def ray_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RayCluster]:
    folder = tmp_path_factory.mktemp("ray")
    with closing(RayCluster(2, folder=folder, cpus=2)) as engine:
        yield engine
    assert not list(folder.iterdir())

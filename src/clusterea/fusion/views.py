"""The views of the fusion. A new one is a file and a line in `VIEWS`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterea.errors import look_up
from clusterea.fusion.global_view import global_view
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.local import local, local_cosine
from clusterea.fusion.sinkhorn_view import sinkhorn_view
from clusterea.fusion.support import support
from clusterea.types import Similarity


@dataclass(frozen=True, slots=True)
class View:
    """How a view is made, and what it needs."""

    make: Callable[[ViewInput], Similarity]
    in_mini_batches: bool = False  # needs embeddings and samplers; left out without samplers
    needs_graphs: bool = False


VIEWS: dict[str, View] = {
    "local": View(local, in_mini_batches=True),  # M_L of the paper
    "local-cosine": View(local_cosine, in_mini_batches=True),  # its ablation without Sinkhorn
    "global": View(global_view),  # M_G of the paper
    "sinkhorn": View(sinkhorn_view),
    "support": View(support, needs_graphs=True),
}


def find_view(name: str) -> View:
    """The view called `name`. The error for an unknown name lists the known ones."""
    return look_up("view", name, VIEWS)

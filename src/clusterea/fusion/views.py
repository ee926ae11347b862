"""The views of the fusion. A new one is a file and a line in `VIEWS`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusterea.errors import InputError, look_up
from clusterea.fusion.global_view import global_view
from clusterea.fusion.inputs import ViewInput
from clusterea.fusion.local import local, local_cosine
from clusterea.types import Similarity


@dataclass(frozen=True, slots=True)
class View:
    """How a view is made, and what it needs."""

    make: Callable[[ViewInput], Similarity] | None = None  # None: Sinkhorn on all candidates
    in_mini_batches: bool = False  # needs embeddings and samplers; left out without samplers
    needs_graphs: bool = False  # for the evidence of neighbors


VIEWS: dict[str, View] = {
    "local": View(local, in_mini_batches=True),  # M_L of the paper
    "local-cosine": View(local_cosine, in_mini_batches=True),  # its ablation without Sinkhorn
    "global": View(global_view),  # M_G of the paper
    "sinkhorn": View(),  # on the candidates of all entities at once; not in the paper
    "support": View(needs_graphs=True),  # the same, weighted by neighbor evidence
}


def find_views(
    names: Sequence[str], *, has_mini_batches: bool, has_graphs: bool = True
) -> list[View]:
    """The views to compute. Those of mini-batches are left out without samplers.

    Raises:
        InputError: A view is unknown or lacks what it needs, or none is left.
    """
    named = {name: look_up("view", name, VIEWS) for name in names}
    for name, view in named.items():
        if view.needs_graphs and not has_graphs:
            raise InputError(f"the view '{name}' needs the graphs, but only embeddings were given.")
    kept = [view for view in named.values() if has_mini_batches or not view.in_mini_batches]
    if not kept:
        raise InputError(
            f"nothing to fuse: there are no mini-batches for {','.join(named)}. Name samplers with "
            "--samplers cmcs,iscs, or another view with --set fusion.views=global."
        )
    return kept

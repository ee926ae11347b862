"""`Trust`: how much more likely a pair is the same for similar names or features.

Encoders of content (names, features) do not depend on the seeds, and how far they can be trusted
differs from pair to pair: names of two languages may be equal or have nothing in common. So the
trust is fitted. Examples are pairs that are probable by structure alone. Given one entity of such a
pair, a softmax over all entities of the other side must find the other one, by content alone. The
logit is a rising, piecewise linear function of the cosine; its values, in natural logarithms of
odds, are the gains. Structure and content are taken as independent, so the gains are added to
structure's logits. If content tells nothing, all gains are zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from clusterea.numerics.dots import pair_dots
from clusterea.seeding import generator
from clusterea.types import Pair

SEGMENTS = 9  # linear pieces of a gain
RIVALS = 100  # entities of the other side, the nearest, that an example is compared with one by one
SAMPLED = 30  # entities that stand for all others
MOST_COMPARED = 1 << 16  # entities of the other side that rivals are chosen from
LOOKED_AT = 4000  # source entities that examples are looked for among
MOST_COSINES = 2_000_000_000  # fewer are looked at, if that would take more
MOST_EXAMPLES = 1000
ROWS_AT_ONCE = 1 << 14  # of the other side
FEWEST = 20  # examples; with fewer, the gain is `USUAL`
USUAL = 10.0  # gain of an equal name by all encoders together, where nothing can be fitted
LEAST = 1.0  # an encoder whose largest gain is smaller is ignored
LEAST_EVIDENCE = (
    15.0  # log likelihood of the examples that it must add; random vectors add up to 10
)
PENALTY = 1.0  # of each unit of gain, against the examples' total log likelihood
UNITS_OF_ONE = 256  # gains and knots are rounded, so that the order of sums does not matter


@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """The gain of each content encoder: linear between knots, zero below the first."""

    knots: Tensor  # (encoders, SEGMENTS + 1) float64: cosines, ascending
    gains: Tensor  # (encoders, SEGMENTS + 1) float64: at the knots, ascending from 0

    def __post_init__(self) -> None:
        if self.knots.ndim != 2 or self.knots.shape != self.gains.shape:
            raise ValueError(
                f"knots and gains must have one shape. Got {tuple(self.knots.shape)} and "
                f"{tuple(self.gains.shape)} instead."
            )

    @property
    def num_encoders(self) -> int:
        return len(self.knots)

    @property
    def most(self) -> Tensor:
        """(encoders,): the largest gain of each."""
        return self.gains[:, -1]

    def gain(self, encoder: int, cosines: Tensor) -> Tensor:
        """The gain of each cosine, float64, on the device of the cosines."""
        knots = self.knots[encoder].to(cosines.device)
        gains = self.gains[encoder].to(cosines.device)
        return _ramps(cosines.double(), knots) @ gains.diff()

    def slope(self, encoder: int) -> float:
        """The mean rise of the gain from the first to the last knot."""
        span = self.knots[encoder, -1] - self.knots[encoder, 0]
        return float(self.gains[encoder, -1] / span)

    def tensors(self) -> dict[str, Tensor]:
        """How it is stored: see `Stored`."""
        return {"knots": self.knots, "gains": self.gains}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Trust:
        del num_entities
        return cls(tensors["knots"], tensors["gains"])


@torch.no_grad()
def fit_trust(
    contents: Sequence[Pair[Tensor]],
    examples: Tensor,
    device: torch.device | None = None,
    seed: int = 0,
) -> Trust:
    """The trust in each content encoder, all fitted together.

    Args:
        contents: (entities, dim) of each side for each encoder: rows of unit length, or zeros.
        examples: (n, 2): pairs that are probably the same, found without these encoders.
        device: Where rivals are looked for; the host if not given.
        seed: Of the choice of entities that examples are compared with.
    """
    if len(examples) < FEWEST:
        return _usual(len(contents))
    device = device or torch.device("cpu")
    sides = [_compared(contents, examples, device, seed)]
    turned = [each.swap() for each in contents]
    sides.append(_compared(turned, examples.flip(1), device, seed + 1))
    own, rivals = (torch.cat([getattr(side, name) for side in sides]) for name in ("own", "rivals"))
    floor = torch.stack([side.floor for side in sides]).amin(0)
    # Not below 0, the cosine of an entity without a vector: its gain is always 0.
    lowest = (floor.clamp(0.0, 0.9) * UNITS_OF_ONE).floor() / UNITS_OF_ONE
    knots = torch.stack(
        [torch.linspace(float(low), 1.0, SEGMENTS + 1, dtype=torch.float64) for low in lowest]
    )
    seen = _Seen(
        _features(own.unsqueeze(1), knots).squeeze(1).numpy(),
        _features(rivals, knots).numpy(),
        torch.cat([side.weight for side in sides]).numpy(),
    )
    rises = _fitted(seen).reshape(len(contents), SEGMENTS)
    gains = np.concatenate([np.zeros((len(contents), 1)), rises.cumsum(1)], axis=1)
    rounded = torch.from_numpy(gains * UNITS_OF_ONE).round() / UNITS_OF_ONE
    is_ignored = (rounded[:, -1] < LEAST) | (_evidence(seen, rises) < LEAST_EVIDENCE)
    rounded[is_ignored] = 0.0
    return Trust(knots, rounded)


def _usual(count: int) -> Trust:
    knots = torch.linspace(0, 1, SEGMENTS + 1).double().repeat(count, 1)
    return Trust(knots, USUAL / count * knots)


@dataclass(frozen=True, slots=True, eq=False)
class _Compared:
    """The cosines of examples and of their rivals, in one direction."""

    own: Tensor  # (examples, encoders)
    rivals: Tensor  # (examples, rivals, encoders): the nearest, and a sample of the others
    weight: Tensor  # (examples, rivals): log of the entities that a rival stands for
    floor: Tensor  # (encoders,): the usual cosine of the last rival


def _compared(
    contents: Sequence[Pair[Tensor]], examples: Tensor, device: torch.device, seed: int
) -> _Compared:
    sources, targets = examples[:, 0], examples[:, 1]
    total = len(contents[0].target)
    chosen = torch.arange(total)
    if total > MOST_COMPARED:
        draw = generator(seed, "rivals")
        chosen = torch.randperm(total, generator=draw)[:MOST_COMPARED].sort().values
    count = min(RIVALS, len(chosen) - 1)
    sums: Tensor | float = 0.0
    floors = []
    is_own = chosen.unsqueeze(0) == targets.unsqueeze(1)  # (examples, chosen)
    for each in contents:
        cosines = each.source[sources].to(device) @ each.target[chosen].to(device).T
        cosines[is_own.to(device)] = -1.0
        floors.append(cosines.topk(count, dim=1).values[:, -1].median().cpu())
        sums = sums + cosines
    assert isinstance(sums, Tensor)
    near = sums.topk(count, dim=1).indices.cpu()  # (examples, rivals)
    is_other = ~is_own.scatter(1, near, True)
    draw = generator(seed, "others")
    some = torch.randperm(len(chosen), generator=draw)[:SAMPLED]
    is_used = is_other[:, some]  # (examples, sampled)
    each_for = total / len(chosen)
    shares = each_for * is_other.sum(1, keepdim=True) / is_used.sum(1, keepdim=True).clamp(min=1)
    counts = torch.cat([torch.full(near.shape, each_for), shares * is_used], dim=1)
    rivals = chosen[torch.cat([near, some.expand(len(near), -1)], dim=1)]
    rows = sources.repeat_interleave(rivals.shape[1])
    own = [pair_dots(each.source, each.target, sources, targets) for each in contents]
    theirs = [
        pair_dots(each.source, each.target, rows, rivals.flatten()).view_as(rivals)
        for each in contents
    ]
    return _Compared(
        torch.stack(own, 1).double(),
        torch.stack(theirs, 2).double(),
        counts.double().log(),
        torch.stack(floors),
    )


def _ramps(cosines: Tensor, knots: Tensor) -> Tensor:
    """(…, SEGMENTS): how much of each segment lies below the cosine, from 0 to 1."""
    return ((cosines.unsqueeze(-1) - knots[:-1]) / knots.diff()).clamp(0, 1)


def _features(cosines: Tensor, knots: Tensor) -> Tensor:
    """(examples, n, encoders · SEGMENTS): the ramps of all encoders."""
    return torch.cat([_ramps(cosines[..., k], knots[k]) for k in range(len(knots))], dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """The features of examples and of their rivals, as the gains are fitted to them."""

    own: NDArray[np.float64]  # (examples, features)
    rivals: NDArray[np.float64]  # (examples, rivals, features)
    weight: NDArray[np.float64]  # (examples, rivals)

    def surprise(self, rises: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The negative log likelihood of the examples, and its slope."""
        from scipy.special import logsumexp

        flat = self.rivals.reshape(-1, self.rivals.shape[-1])  # (examples · rivals, features)
        mine = self.own @ rises  # (examples,)
        theirs = (flat @ rises).reshape(self.rivals.shape[:2]) + self.weight
        every = np.concatenate([mine[:, None], theirs], axis=1)
        total = logsumexp(every, axis=1)
        chances = np.exp(every - total[:, None])
        slope = (chances[:, 0] - 1) @ self.own + chances[:, 1:].ravel() @ flat
        return float((total - mine).sum()), slope


def _fitted(seen: _Seen) -> NDArray[np.float64]:
    """(features,): rises ≥ 0 that maximize the likelihood of the examples. A convex problem."""
    from scipy.optimize import minimize

    def loss(rises: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        surprise, slope = seen.surprise(rises)
        return surprise + PENALTY * float(rises.sum()), slope + PENALTY

    start = np.ones(seen.own.shape[1])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(start))
    solution: NDArray[np.float64] = found.x
    return solution


def _evidence(seen: _Seen, rises: NDArray[np.float64]) -> Tensor:
    """(encoders,): the log likelihood that the examples lose without each encoder."""
    least, _ = seen.surprise(rises.ravel())
    without = [rises * (np.arange(len(rises)) != k)[:, None] for k in range(len(rises))]
    return torch.tensor([seen.surprise(each.ravel())[0] - least for each in without])


@torch.no_grad()
def surest_pairs(
    encodings: Sequence[Pair[Tensor]],
    shares: Sequence[float],
    free: Pair[Tensor],
    device: torch.device | None = None,
    seed: int = 0,
) -> Tensor:
    """(n, 2): entities that are each other's nearest by structure, with a clear lead.

    Args:
        encodings: The vectors of structure: (entities, dim) of each side for each encoder.
        shares: The weight of each encoder.
        free: Entities of each side to choose from.
        device: Where to compare them; the host if not given.
        seed: Of the choice of entities that are looked at.
    """
    if not encodings or not all(len(side) for side in free):
        return torch.empty(0, 2, dtype=torch.int64)
    draw = generator(seed, "examples")
    count = min(LOOKED_AT, MOST_COSINES // max(map(len, free)))
    some = free.source[torch.randperm(len(free.source), generator=draw)[:count]]
    device = device or torch.device("cpu")
    turned = [each.swap() for each in encodings]
    targets, lead = _nearest(encodings, shares, some, free.target, device)
    back, lead_back = _nearest(turned, shares, targets, free.source, device)
    is_mutual = back == some
    leads = torch.minimum(lead, lead_back)
    if not bool(is_mutual.any()):
        return torch.empty(0, 2, dtype=torch.int64)
    is_clear = is_mutual & (leads >= leads[is_mutual].median()) & (leads > 0)
    return torch.stack([some, targets], dim=1)[is_clear][:MOST_EXAMPLES]


def _nearest(
    encodings: Sequence[Pair[Tensor]],
    shares: Sequence[float],
    rows: Tensor,
    others: Tensor,
    device: torch.device,
) -> tuple[Tensor, Tensor]:
    """(rows,) each: the nearest of the others, and its lead over the second nearest."""

    def vectors(tables: Sequence[Tensor], ids: Tensor) -> Tensor:
        parts = zip(tables, shares, strict=True)
        chosen = [share**0.5 * rows[ids].to(device).float() for rows, share in parts]
        return torch.cat(chosen, dim=1)

    own = vectors([each.source for each in encodings], rows)
    best = torch.full((len(rows), 2), -2.0, device=device)
    best_at = torch.zeros(len(rows), 2, dtype=torch.int64, device=device)
    for block in torch.split(others, ROWS_AT_ONCE):
        near = vectors([each.target for each in encodings], block)
        now = (own @ near.T).topk(min(2, len(block)), dim=1)
        values = torch.cat([best, now.values], dim=1)
        ids = torch.cat([best_at, block.to(device)[now.indices]], dim=1)
        best, order = values.topk(2, dim=1)
        best_at = ids.gather(1, order)
    return best_at[:, 0].cpu(), (best[:, 0] - best[:, 1]).cpu()

"""`LinkGains`: the vectors of names and features in a run, and what they say about links."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from clusterea.pipeline.store import Made
from clusterea.types import NO_ENTITIES, Embeddings, IntArray, Pair
from clusterea.types.alignment import BY_FEATURES, BY_NAMES, BY_STRUCTURE

if TYPE_CHECKING:
    from torch import Tensor

    from clusterea.fusion import Trust

CONTENTS = ("names", "features", "translation")  # in this order, also in `Trust`
GROUNDS = {"names": BY_NAMES, "translation": BY_NAMES, "features": BY_FEATURES}
Contents: TypeAlias = Mapping[str, Made[Embeddings]]  # by encoder: names, features, translation
LEAST_GAIN = 1.0  # of a link that an encoder supports: its odds rise by a factor of e


@dataclass(frozen=True, slots=True, eq=False)
class LinkGains:
    """The gains of links by names and features, with the trust of one fit."""

    vectors: Contents
    trust: Made[Trust]
    hidden: Pair[IntArray]  # entities whose names and features may not be seen

    @classmethod
    def by(
        cls,
        trust: Made[Trust] | None,
        vectors: Contents,
        hidden: Pair[IntArray] = NO_ENTITIES,
    ) -> LinkGains | None:
        """None where names and features are not compared."""
        return None if trust is None else cls(vectors, trust, hidden)

    def of(self, links: Tensor) -> dict[str, Tensor]:
        """Encoder → (links,) float32 on the host: the gain of each link."""
        from torch import isin, tensor

        from clusterea.fusion import link_gains

        own = links.cpu()
        gains = {
            name: link_gains(made.value, self.trust.value, encoder, own)
            for encoder, (name, made) in enumerate(self.vectors.items())
        }
        for ends, ids in zip(own.T, self.hidden, strict=True):
            unseen = isin(ends, tensor(ids))
            gains = {name: values.masked_fill(unseen, 0.0) for name, values in gains.items()}
        return gains

    def total(self, links: Tensor) -> Tensor:
        """(links,) float32 on the host: the sum over the encoders."""
        gains = list(self.of(links).values())
        return sum(gains[1:], gains[0])

    def grounds(self, links: Tensor, has_neighbors: Tensor) -> Tensor:
        """(links,) uint8 on the host: what speaks for each link (`Alignment.grounds`)."""
        found = has_neighbors.cpu().to(dtype=links.dtype) * BY_STRUCTURE
        for name, values in self.of(links).items():
            found = found | (values >= LEAST_GAIN).to(found.dtype) * GROUNDS[name]
        return found.byte()

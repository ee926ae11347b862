"""`Alignment`: the links, their confidence or score, and the unmatched entities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from clusterea.types.html import html_table
from clusterea.types.names import Names
from clusterea.types.pair import Pair
from clusterea.types.stored import check_ids, check_links

if TYPE_CHECKING:
    import pandas
    import torch
    from torch import Tensor

Measure = Literal["confidence", "score"]
ENOUGH_EXAMPLES = 90  # links of held-out seeds that suffice for a calibration
ENOUGH_SEEDS = 100  # that have so many with the preset default; fast, with one fit, takes twice
BY_STRUCTURE, BY_NAMES, BY_FEATURES = 1, 2, 4  # bits of `Alignment.grounds`
NOT_CALIBRATED = (
    "The score only orders the links; it is not a probability. To calibrate it takes "
    f"about {ENOUGH_SEEDS:,} seeds with the preset default, or {2 * ENOUGH_SEEDS:,} with fast."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alignment:
    """Links between source and target entities, with a confidence in [0, 1] for each.

    If it is not calibrated, the confidence is only a score: see `measure`.
    """

    links: Tensor  # (n, 2) int64: source entity, target entity
    confidence: Tensor  # (n,) floating point
    unmatched: Pair[Tensor]  # entities of each side without a link
    examples: int = 0  # judged links that the confidence was fitted on
    # (n,) uint8: what speaks for each link, as bits; None: structure alone was compared.
    grounds: Tensor | None = None

    def __post_init__(self) -> None:
        if self.links.ndim != 2 or self.links.shape[1] != 2:
            raise ValueError(
                f"links must have shape (n, 2). Got {tuple(self.links.shape)} instead."
            )
        if self.confidence.shape != self.links.shape[:1]:
            raise ValueError(
                f"confidence must have shape ({len(self.links)},). "
                f"Got {tuple(self.confidence.shape)} instead."
            )
        if self.grounds is not None and self.grounds.shape != self.confidence.shape:
            raise ValueError(
                f"grounds must have shape ({len(self.links)},). "
                f"Got {tuple(self.grounds.shape)} instead."
            )
        if len(self.links) and not bool(((self.confidence >= 0) & (self.confidence <= 1)).all()):
            raise ValueError(
                "confidence must lie in [0, 1]. Got values from "
                f"{float(self.confidence.min())} to {float(self.confidence.max())} instead."
            )

    @property
    def is_calibrated(self) -> bool:
        """Whether confidence is a probability, fitted on enough judged links."""
        return self.examples >= ENOUGH_EXAMPLES

    @property
    def measure(self) -> Measure:
        """What users see `confidence` called: if it is not calibrated, a score."""
        return "confidence" if self.is_calibrated else "score"

    @property
    def confidence_note(self) -> str:
        """What the confidence or score means, for users."""
        if not self.is_calibrated:
            return NOT_CALIBRATED
        return (
            "Confidence is the probability that a link is right, calibrated on "
            f"{self.examples:,} links of held-out seeds."
        )

    def to(self, device: torch.device | str) -> Alignment:
        """The same on another device."""
        return replace(
            self,
            links=self.links.to(device),
            confidence=self.confidence.to(device),
            unmatched=self.unmatched.map(lambda side: side.to(device)),
            grounds=None if self.grounds is None else self.grounds.to(device),
        )

    def at_least(self, confidence: float) -> Alignment:
        """The links with at least this confidence; entities of the others become unmatched."""
        return self.only(self.confidence >= confidence)

    def bounded(self, confidence: float = 0.0, top: int | None = None) -> Alignment:
        """The links with at least this confidence, and of these the `top` most confident."""
        kept = self.at_least(confidence) if confidence else self
        return kept if top is None else kept.top(top)

    def top(self, count: int) -> Alignment:
        """The `count` most confident links; entities of the others become unmatched.

        Of links with equal confidence, it takes the first ones.
        """
        import torch

        kept = torch.zeros_like(self.confidence, dtype=torch.bool)
        kept[self.confidence.argsort(descending=True, stable=True)[:count]] = True
        return self.only(kept)

    def only(self, kept: Tensor) -> Alignment:
        """The links where the (n,) mask is true; entities of the others become unmatched."""
        import torch

        links, left = self.links[kept], self.links[~kept]

        def lone(before: Tensor, side: int) -> Tensor:
            entities = torch.unique(torch.cat([before, left[:, side]]))
            # Some may have another link.
            left_alone: Tensor = entities[~torch.isin(entities, links[:, side])]
            return left_alone

        unmatched = Pair(lone(self.unmatched.source, 0), lone(self.unmatched.target, 1))
        grounds = None if self.grounds is None else self.grounds[kept]
        return Alignment(links, self.confidence[kept], unmatched, self.examples, grounds)

    def to_pandas(self, names: Pair[Names] | None = None) -> pandas.DataFrame:
        """A table of source, target and `measure`, with names if given, else ids."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas.") from error
        source, target = self.links.cpu().numpy().T
        columns: dict[str, Any] = {"source": source, "target": target}
        if names is not None:
            columns = {"source": names.source.take(source), "target": names.target.take(target)}
        return pd.DataFrame({**columns, self.measure: self.confidence.cpu().numpy()})

    def swap(self) -> Alignment:
        """The same alignment with source and target exchanged."""
        return replace(self, links=self.links.flip(1), unmatched=self.unmatched.swap())

    def _repr_html_(self) -> str:
        """The most confident links, for notebooks."""
        return self.to_html()

    def to_html(self, names: Pair[Names] | None = None, limit: int = 10) -> str:
        """The most confident links as a table, with names if given, else ids."""
        order = self.confidence.argsort(descending=True, stable=True)[:limit]
        ids = self.links[order].cpu().numpy()
        source, target = ids.T.tolist()
        if names is not None:
            source, target = names.source.take(ids[:, 0]), names.target.take(ids[:, 1])
        sure = self.confidence[order].tolist()
        left = len(self.links) - len(ids)
        title = f"{self!r}" + (f", {left:,} of them not shown" if left else "")
        rows = zip(source, target, sure, strict=True)
        header = ("source", "target", self.measure)
        return html_table(title, header, rows, note=self.confidence_note)

    def tensors(self) -> dict[str, Tensor]:
        """The tensors to store, see `Stored`."""
        from torch import tensor

        return {
            "links": self.links,
            "confidence": self.confidence,
            "unmatched_source": self.unmatched.source,
            "unmatched_target": self.unmatched.target,
            "examples": tensor([self.examples]),
            **({} if self.grounds is None else {"grounds": self.grounds}),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], num_entities: Pair[int]) -> Alignment:
        unmatched = Pair(tensors["unmatched_source"], tensors["unmatched_target"])
        check_links(tensors["links"], num_entities)
        for side, size in unmatched.zip(num_entities):
            check_ids(side, "unmatched entities", size)
        examples, grounds = int(tensors["examples"]), tensors.get("grounds")
        return cls(tensors["links"], tensors["confidence"], unmatched, examples, grounds)

    def __repr__(self) -> str:
        source, target = self.unmatched
        return (
            f"Alignment({len(self.links):,} links; {source.numel():,} source and "
            f"{target.numel():,} target entities unmatched)"
        )

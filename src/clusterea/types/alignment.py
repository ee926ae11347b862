"""`Alignment`: the links found, how sure each is, and who was left alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clusterea.types.html import html_table
from clusterea.types.names import Names
from clusterea.types.pair import Pair

if TYPE_CHECKING:
    import pandas
    import torch
    from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Alignment:
    """Links between source and target entities, with a confidence in [0, 1] for each."""

    links: Tensor  # (n, 2) int64: source entity, target entity
    confidence: Tensor  # (n,) floating point
    unmatched: Pair[Tensor]  # entities of each side without a link

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
        if len(self.links) and not bool(((self.confidence >= 0) & (self.confidence <= 1)).all()):
            raise ValueError(
                "confidence must lie in [0, 1]. Got values from "
                f"{float(self.confidence.min())} to {float(self.confidence.max())} instead."
            )

    def to(self, device: torch.device | str) -> Alignment:
        """The same on another device."""
        unmatched = self.unmatched.map(lambda side: side.to(device))
        return Alignment(self.links.to(device), self.confidence.to(device), unmatched)

    def at_least(self, confidence: float) -> Alignment:
        """The links that are at least so sure; the entities of the others are unmatched."""
        if not 0 <= confidence <= 1:
            raise ValueError(f"confidence must lie in [0, 1]. Got {confidence} instead.")
        import torch

        kept = self.confidence >= confidence
        left = self.links[~kept]
        return Alignment(
            self.links[kept],
            self.confidence[kept],
            Pair(
                torch.unique(torch.cat([self.unmatched.source, left[:, 0]])),
                torch.unique(torch.cat([self.unmatched.target, left[:, 1]])),
            ),
        )

    def to_pandas(self, names: Pair[Names] | None = None) -> pandas.DataFrame:
        """A table of source, target and confidence: ids, or names where they are given."""
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install pandas.") from error
        source, target = self.links.cpu().numpy().T
        columns: dict[str, Any] = {"source": source, "target": target}
        if names is not None:
            columns = {"source": names.source.take(source), "target": names.target.take(target)}
        return pd.DataFrame({**columns, "confidence": self.confidence.cpu().numpy()})

    def swap(self) -> Alignment:
        """The same alignment seen from the other side."""
        return Alignment(self.links.flip(1), self.confidence, self.unmatched.swap())

    def _repr_html_(self) -> str:
        """For notebooks: the surest links."""
        return self.to_html()

    def to_html(self, names: Pair[Names] | None = None, limit: int = 10) -> str:
        """The surest links as a table: ids, or names where they are given."""
        order = self.confidence.argsort(descending=True, stable=True)[:limit]
        ids = self.links[order].cpu().numpy()
        source, target = ids.T.tolist()
        if names is not None:
            source, target = names.source.take(ids[:, 0]), names.target.take(ids[:, 1])
        sure = self.confidence[order].tolist()
        left = len(self.links) - len(ids)
        title = f"{self!r}" + (f", {left:,} of them not shown" if left else "")
        return html_table(
            title, ("source", "target", "confidence"), zip(source, target, sure, strict=True)
        )

    def __repr__(self) -> str:
        source, target = self.unmatched
        return (
            f"Alignment({len(self.links):,} links; {source.numel():,} source and "
            f"{target.numel():,} target entities unmatched)"
        )

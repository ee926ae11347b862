"""What the wheel says of the project: addresses, and a README whose links work anywhere."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface


class ProjectPage(MetadataHookInterface):
    """Fills in `urls` and `readme` from the repository's address, which pyproject.toml has once."""

    def update(self, metadata: dict[str, Any]) -> None:
        repository = self.config["repository"]
        metadata["urls"] = {
            "Homepage": repository,
            "Documentation": f"{repository}/blob/main/docs/index.md",
            "Changelog": f"{repository}/blob/main/CHANGELOG.md",
            "Issues": f"{repository}/issues",
        }
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": with_absolute_links(text, repository),
        }


def with_absolute_links(text: str, repository: str) -> str:
    """Markdown whose relative links lead into the repository; images to the bare file."""
    places = {"!": f"{repository}/raw/main/", "": f"{repository}/blob/main/"}
    return re.sub(
        r"(!?)(\[[^\]]*\]\()(?![a-z]+:|#)([^)]+)",
        lambda link: f"{link[1]}{link[2]}{places[link[1]]}{link[3]}",
        text,
    )

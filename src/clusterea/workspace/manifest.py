"""`Manifest`: how a run describes itself, in one file that is written whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterea.config import Config
from clusterea.errors import DamagedError, DataError, InputError
from clusterea.workspace.tensors import AGAIN, read_sealed, write_sealed

NAME = "run"  # of `run.json`, and of what its checksum is bound to


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of `run.json`: data, settings, artifacts, and what each stage cost."""

    folder: Path
    values: Mapping[str, Any]

    @classmethod
    def path(cls, folder: Path) -> Path:
        return folder / f"{NAME}.json"

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of the run in a folder.

        Raises:
            DataError: The folder holds no run, or one that never came to an end.
            DamagedError: The manifest is not as it was written.
        """
        if not cls.path(folder).is_file():
            raise DataError(folder, "expected a run, as `clusterea train` makes one; got none.")
        found = cls(folder, read_sealed(cls.path(folder), NAME))
        if not all(name in found.values for name in ("data", "config", "artifacts")):
            raise DamagedError(cls.path(folder), f"is of another version; {AGAIN}")
        return found

    def write(self) -> None:
        """Replaces the manifest of the folder."""
        write_sealed(self.path(self.folder), NAME, self.values)

    @property
    def task(self) -> str:
        """The key of the task, as `task_key` makes it."""
        return str(self.values["data"]["task"])

    @property
    def artifacts(self) -> Mapping[str, str]:
        """Artifact keys by name: data, train, train-2, …, each sampler, fuse, match."""
        found: Mapping[str, str] = self.values["artifacts"]
        return found

    def artifact(self, stage: str) -> str:
        """The key of what a stage made.

        Raises:
            DataError: The run did not get that far.
        """
        if stage not in self.artifacts:
            raise DataError(
                self.folder, f"has no result of `clusterea {stage}` yet. Run that, or `align`."
            )
        return self.artifacts[stage]

    @property
    def config(self) -> Config:
        """The settings of the run."""
        try:
            return Config.from_dict(self.values["config"])
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise DataError(
                self.path(self.folder), f"has settings of another version; {AGAIN}"
            ) from error

    @property
    def bounds(self) -> tuple[float, int | None]:
        """The least confidence and the most links that `alignment.tsv` was asked to have."""
        asked = self.values.get("bounds", {})
        return asked.get("min_confidence", 0.0), asked.get("top")

"""`Manifest`: the file that describes a run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterea.config import Config
from clusterea.errors import DamagedError, DataError, InputError
from clusterea.workspace.tensors import AGAIN, read_sealed, write_sealed

NAME = "run"  # of `run.json`, and in its checksum


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of `run.json`: data, settings, artifacts, and the cost of each stage."""

    folder: Path
    values: Mapping[str, Any]

    @classmethod
    def path(cls, folder: Path) -> Path:
        return folder / f"{NAME}.json"

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest of the run in a folder.

        Raises:
            DataError: The folder has no run, or one that never finished a stage.
            DamagedError: The manifest is damaged.
        """
        if not cls.path(folder).is_file():
            raise DataError(folder, "expected a run, made by `clusterea align`; got none.")
        found = cls(folder, read_sealed(cls.path(folder), NAME))
        has_all = {"data", "config", "artifacts", "leaves"} <= found.values.keys()
        if not has_all or "data" not in found.artifacts:
            raise DamagedError(cls.path(folder), f"is of another version; {AGAIN}")
        return found

    def write(self) -> None:
        """Replaces the manifest of the folder."""
        write_sealed(self.path(self.folder), NAME, self.values)

    @property
    def task(self) -> str:
        """The key of the task, from `task_key`."""
        return str(self.values["data"]["task"])

    @property
    def artifacts(self) -> Mapping[str, str]:
        """Artifact keys by name: data, train, train-2, …, each sampler, fuse, match."""
        found: Mapping[str, str] = self.values["artifacts"]
        return found

    def reaching(self, stage: str) -> Manifest:
        """This manifest or, if its run was stopped before `stage`, that of the last finished run.

        Raises:
            DataError: No run in the folder has finished `stage`.
        """
        if stage in self.artifacts:
            return self
        if "finished" in self.values:
            return Manifest(self.folder, self.values["finished"]).reaching(stage)
        raise DataError(
            self.folder, f"has no result of `clusterea {stage}` yet. Run that, or `align`."
        )

    def followed_by(self, described: Mapping[str, Any]) -> dict[str, Any]:
        """The contents of the manifest after a run that was stopped early.

        A run with the same settings and data adds its artifacts. Another run keeps the last whole
        run as `finished`, so that `export`, `explain` and `report` still find its links.
        """
        whole = self.values if "match" in self.artifacts else self.values.get("finished", {})
        for before in (self.values, whole):
            if before and _is_same_run(before, described):
                return _with_stages_of(before, described)
        return {**described, **({"finished": whole} if whole else {})}

    @property
    def data(self) -> str:
        """The key of the data's artifact."""
        return self.artifacts["data"]

    @property
    def config(self) -> Config:
        """The settings of the run."""
        try:
            config = Config.from_dict(self.values["config"])
            if _text(config.to_dict()) != _text(self.values["config"]):
                raise KeyError("a setting")  # without it, its default would be taken
            return config
        except (KeyError, TypeError, AttributeError, InputError) as error:
            raise DataError(
                self.path(self.folder), f"has settings of another version; {AGAIN}"
            ) from error

    @property
    def bounds(self) -> tuple[float, int | None]:
        """The `--min-confidence` and `--top` of `alignment.tsv`."""
        asked = self.values.get("bounds", {})
        return asked.get("min_confidence", 0.0), asked.get("top")


def _text(values: Any) -> str:
    return json.dumps(values, sort_keys=True)


def _is_same_run(before: Mapping[str, Any], described: Mapping[str, Any]) -> bool:
    """Whether settings, data and all artifacts that both name are the same."""
    old, new = before["artifacts"], described["artifacts"]
    return all(
        json.dumps(before[name]) == json.dumps(described[name]) for name in ("config", "data")
    ) and all(new[name] == key for name, key in old.items() if name in new)


def _with_stages_of(before: Mapping[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest `before` with the stages that only `described` has."""
    known = {cost["stage"] for cost in before["stages"]}
    later = described if "fuse-1" in described["artifacts"] else before  # it knows all fits
    new = [cost for cost in described["stages"] if cost["stage"] not in known]
    return {
        **before,
        "leaves": later["leaves"],
        "artifacts": {**before["artifacts"], **described["artifacts"]},
        "num_batches": {**before["num_batches"], **described["num_batches"]},
        "stages": [*before["stages"], *new],
        "seconds": round(before["seconds"] + sum(cost["seconds"] for cost in new), 3),
    }

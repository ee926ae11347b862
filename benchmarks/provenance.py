"""Where a record comes from, and the names of its stages."""

from __future__ import annotations

import os
import platform
import re
import subprocess

import torch


def commit() -> str | None:
    """The one that is checked out, `-dirty` if files were changed; None outside a repository.

    CLUSTEREA_COMMIT names it where only the files are.
    """
    if told := os.environ.get("CLUSTEREA_COMMIT"):
        return told
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def device_name(device: torch.device) -> str:
    """As people call it. CLUSTEREA_BESIDE says how many other runs share it, which seconds show."""
    name = f"cpu ({platform.processor() or platform.machine()})"
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    others = os.environ.get("CLUSTEREA_BESIDE")
    return f"{name}, beside {others} other runs" if others else name


def without_round(stage: str) -> str:
    """A stage's name, the same in every round of self-training."""
    return re.sub(r", (round \d+|all seeds)$", "", stage)

"""What sssom-py finds in a file: an oracle for the SSSOM that we write."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# In a process of its own: sssom-py warns as it is imported, and warnings are errors in our tests.
VALIDATE = """
import json, sys
from sssom.parsers import parse_sssom_table, to_mapping_set_document
from sssom.validators import validate
table = parse_sssom_table(sys.argv[1])
problems = [result.message for report in validate(table).values() for result in report.results]
expand = lambda curie: table.converter.expand(curie, strict=True)
mappings = to_mapping_set_document(table).mapping_set.mappings
rows = [[SLOTS] for m in mappings]
print(json.dumps({"problems": problems, "rows": rows}))
"""


def valid_rows(path: Path, slots: str) -> list[list[Any]]:
    """These slots of each mapping `m` in a file, which must be valid: `m.comment, m.confidence`."""
    if find_spec("sssom") is None:
        pytest.skip("sssom-py is not installed")
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", VALIDATE.replace("SLOTS", slots), str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "well-formed" not in ran.stderr  # it only warns of the mappings that it drops
    found = json.loads(ran.stdout)
    assert found["problems"] == []
    rows: list[list[Any]] = found["rows"]
    return rows

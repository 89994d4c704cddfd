"""docs/reference/sync-guarantees.md names tests; they exist, and so do the model's scenarios."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from specifications import SPECIFICATIONS
from specifications.processes import SHARED

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "sync-guarantees.md").read_text()
NAMED = re.findall(r"`((?:\w+/)+test_\w+\.py)::(\w+)(?:\[(\w+)\])?`", PAGE)
ROWS = {one.__name__ for one in [*SPECIFICATIONS, *SHARED]}
SCENARIOS = re.findall(r"`((?:[a-z]+-)+\d(?:-[a-z]+)*)`", PAGE)


def test_every_test_that_is_named_exists() -> None:
    assert len(NAMED) > 80
    missing = [
        f"{path}::{name}"
        for path, name, _ in NAMED
        if not re.search(rf"^(?:def|async def|class) {name}\b", (ROOT / "tests" / path).read_text(), re.M)
    ]
    assert missing == []
    assert {row for _, _, row in NAMED if row} - ROWS == set()


def test_every_scenario_that_is_named_is_run_by_the_model() -> None:
    model = "".join(path.read_text() for path in (ROOT / "native" / "tests").rglob("*.c"))
    assert len(SCENARIOS) > 50
    assert [name for name in SCENARIOS if f'{{"{name}",' not in model] == []


def test_every_hazard_has_a_row_with_a_test_or_a_reason() -> None:
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \|$", PAGE, re.M)
    assert [int(number) for number, _ in rows] == list(range(1, 26))
    assert [number for number, tests in rows if "`" not in tests] == []

"""Targets of the benchmarks: met or missed where the rounds settle it, and open where they do not."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.ends

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def harness(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("harness")


@pytest.mark.parametrize(
    ("values", "bounds", "how", "verdict"),
    [
        ([0.5, 0.52, 0.51], {"at_most": 1.0}, "median", "met"),
        ([1.5, 1.52, 1.51], {"at_most": 1.0}, "median", "MISSED"),
        ([0.9, 1.05, 0.95], {"at_most": 1.0}, "median", "open"),
        ([0.5, 0.5], {"at_most": 1.0}, "median", "open"),
        ([2.0, 2.1, 2.0], {"at_least": 1.9, "at_most": 2.3}, "median", "open"),
        ([2.1, 2.11, 2.1], {"at_least": 1.9, "at_most": 2.3}, "median", "met"),
        ([0.1, 0.1, 3.0], {"at_most": 1.0}, "every", "MISSED"),
        ([0.1, 0.1], {"at_most": 1.0}, "every", "met"),
        ([0.0, 0.0, 0.1], {"at_most": 1.0}, "median", "met"),
    ],
)
def test_a_target_is_judged_by_the_interval_over_rounds(
    harness: Any, values: list[float], bounds: dict[str, float], how: str, verdict: str
) -> None:
    assert harness.Target("seconds", "ours", how=how, **bounds).verdict(values) == verdict

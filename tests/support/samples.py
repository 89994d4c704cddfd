"""Samples and planned series as the lab has them, made up."""

from __future__ import annotations

from typing import Any

from fairlead.lab.run.plan import PlannedSeries
from fairlead.record.sample import Sample


def sample(experiment: str, n: int, wall_s: float | None = None, **changes: Any) -> Sample:
    """One that went well, unless it is said to have another status; of nothing that is known."""
    known = {"interpreter": {}, "environment": {}, "status": "ok", "params": {"n": n}, "wall_s": wall_s}
    return Sample(experiment=experiment, **{**known, **changes})


def planned(
    experiment: str = "square.mutex", sizes: tuple[int, ...] = (10, 20), **changes: Any
) -> PlannedSeries:
    known: dict[str, Any] = {
        "params": {"policy": "other", "cores": "all"}, "interpreter": "3.13", "cpus": (0,), "timeout_s": 9,
    }  # fmt: skip
    return PlannedSeries(experiment=experiment, sizes=sizes, **{**known, **changes})

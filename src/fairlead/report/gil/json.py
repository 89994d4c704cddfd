"""A recording of the GIL as JSON: the records of ``fairlead.record.gil_summary`` under their own names."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from fairlead.record.gil_summary import GilSummary
from fairlead.report.gil.text import thread_names

SCHEMA = 1


def render(summary: GilSummary) -> str:
    """One object: schema, process, wall_seconds, gils, threads, blame, stacks, findings, trust, problems.

    Blame and stacks have the threads' names beside their serials. Numbers that JSON cannot say are null.
    """
    data = asdict(summary)
    name = thread_names(summary)
    for cell in (*data["blame"], *data["stacks"]):
        cell["waiter_name"] = name.get(cell["waiter"], f"thread {cell['waiter']}")
        cell["holder_name"] = (
            None if cell["holder"] == 0 else name.get(cell["holder"], f"thread {cell['holder']}")
        )
    return json.dumps({"schema": SCHEMA, **_finite(data)}, indent=1, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value

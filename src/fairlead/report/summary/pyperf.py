"""The summary as a file of pyperf (its format's version 1.0), which ``pyperf compare_to`` and ``stats`` read.

A benchmark is one size of one series, and its name says which: "square.mutex, n = 100". The interpreter is in
it only where several were measured, so that the same run on two machines or two interpreters can be compared.
Every sample is a run of its own with one value, because it came from a process of its own.
"""

from __future__ import annotations

import json
from typing import Any

from fairlead.record.summary import Cell, Series, Summary
from fairlead.report.common import names


def render(summary: Summary) -> str:
    """The suite, with a line end at the end; what was not measured is left out."""
    roster = names.Roster(summary.series)
    benchmarks = [
        _benchmark(summary, series, cell, roster.of(series).label if len(roster) > 1 else "")
        for series in summary.series
        for cell in series.cells
        if cell.values
    ]
    return json.dumps({"version": "1.0", "benchmarks": benchmarks}, indent=1, allow_nan=False) + "\n"


def _benchmark(summary: Summary, series: Series, cell: Cell, interpreter: str) -> dict[str, Any]:
    parts = [series.experiment, names.clean(series.label), interpreter, f"n = {cell.n}"]
    record, environment = series.interpreter, summary.environment
    metadata: dict[str, Any] = {
        "name": ", ".join(filter(None, parts)),
        "unit": "second",
        "loops": 1,
        "python_implementation": str(record.get("implementation", "")).lower(),
        "python_version": str(record.get("version", "")),
        "cpu_count": environment.get("cores"),
        "hostname": environment.get("hostname"),
        "platform": environment.get("kernel"),
        "description": f"fairlead {environment.get('fairlead', '')}".strip(),
    }
    return {
        "metadata": {key: thing for key, thing in metadata.items() if thing not in (None, "")},
        "runs": [{"values": [value]} for value in cell.values],
    }

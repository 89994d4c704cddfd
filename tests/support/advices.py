"""Advice and its parts, made by hand."""

from __future__ import annotations

from typing import Any

from fairlead.advice import choosing
from fairlead.record.advice import Advice, Candidate, Curve, Kind, Work


def work(**changes: Any) -> Work:
    """A function that computes with the GIL for 10 ms."""
    known: dict[str, Any] = {
        "looked_at": 20, "call_s": 0.01, "shortest_s": 0.009, "longest_s": 0.011, "gil": 0.98, "free": 0.01,
        "waiting": 0.01, "gil_from": "observation", "coroutines": False, "cannot_be_sent": None,
        "argument_bytes": 80.0, "result_bytes": 20.0, "cannot_load": {}, "accumulates": (), "caches": (),
        "guarded": False, "changes_items": False, "varies": False,
    }  # fmt: skip
    return Work(**known | changes)


def candidate(kind: Kind, workers: int, total_s: float | None, **changes: Any) -> Candidate:
    """One of three rounds that agree, 2 % to each side, against a second without a pool."""
    known: dict[str, Any] = {"interpreter": "CPython 3.14.0", "status": "measured"}
    if total_s is not None:
        known |= {
            "total_s": total_s, "rounds": tuple((number, total_s) for number in (1, 2, 3)),
            "speedup": 1 / total_s, "low": 0.98 / total_s, "high": 1.02 / total_s,
            "start_s": 0.0 if kind == "sequential" else 0.02, "once_s": 0.0, "calls": 900,
            "cpu": 1.0, "cpu_call_s": 0.01,
            "memory_kib": 20_000, "foreign": 0.01,
            "p50_s": 0.01, "p99_s": 0.012 if kind == "sequential" else 0.02,
        }  # fmt: skip
    known |= changes
    if total_s is not None:  # of a hundred calls
        known.setdefault("call_s", (known["total_s"] - known["start_s"] - known["once_s"]) / 100)
    return Candidate(kind=kind, workers=workers, **known)


def advice(*candidates: Candidate, seen: Work | None = None, **changes: Any) -> Advice:
    """What is chosen of these."""
    found = list(candidates) or [
        candidate("sequential", 1, 1.0),
        candidate("threads", 2, 1.01),
        candidate("interpreters", 2, 0.54, memory_kib=29_000),
        candidate("interpreters", 4, 0.55),
        candidate("interpreters", 8, 0.56),
        candidate("processes", 2, 0.64, start_s=0.08),
        candidate("async", 0, None, status="refused", reason="the function is no coroutine function"),
    ]
    seen = seen or work()
    choice = choosing.choose(found, seen, 100, 2)
    points = {1: 1.0}
    points |= {one.workers: 1 / one.total_s for one in found if one.kind == "interpreters" and one.total_s}
    known: dict[str, Any] = {
        "target": "shop:price", "made": "2026-03-01T10:00:00+00:00", "python": "CPython 3.14.0", "cores": 2,
        "gil": True, "environment": {"hostname": "here", "cores": 2, "load": 0.1}, "requests": 100,
        "items": 100, "memory_mib": None, "budget_s": 30.0, "used_s": 12.5, "calls": 4000,
        "work": seen, "choice": choice,
        "candidates": tuple(found), "curves": (Curve(kind="interpreters", points=tuple(points.items())),),
        "code": 'from shop import price\n\n\nif __name__ == "__main__":\n    results = []\n',
        "again": choosing.again(choice, seen, 2),
        "notes": choosing.notes(choice, seen, found, 4000),
    }  # fmt: skip
    return Advice(**known | changes)

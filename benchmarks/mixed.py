"""The server of requests of mixed length (subjects/mixed_server.py) under open-loop load."""

from __future__ import annotations

import time

from load import Requests, openloop
from processes import FIGURES, Way, request_cpu_seconds, steps_per_ms, subject, work_seconds

CONNECTIONS = 32


def requests_of(mixture: str, load: float) -> list[Requests]:
    """Of "0.1=45,1=40": milliseconds of work, and the parts of the load that the classes have."""
    parts = {float(ms): float(part) for ms, _, part in (one.partition("=") for one in mixture.split(","))}
    whole = sum(parts.values())
    return [
        Requests(f"{ms:g} ms", load * part / whole / ms * 1000, ms, f"{ms:g}") for ms, part in parts.items()
    ]


def figures(way: Way, requests: list[Requests], cpu_threads: int, *, seconds: float, seed: int) -> FIGURES:
    """What the load has seen of a server of its own, beside so many threads that compute."""
    steps = {one.text: round(one.service_ms * steps_per_ms()) for one in requests}
    marks: list[tuple[float, float, float]] = []
    with subject("mixed_server", way, cpu_threads=cpu_threads, steps=steps) as (_, facts):

        def mark() -> None:
            worked = work_seconds(facts) if "work" in facts else 0.0
            marks.append((time.monotonic(), worked, request_cpu_seconds(facts)))

        seen = openloop(
            facts["port"],
            requests,
            seconds=seconds,
            warm_up=seconds / 4,
            seed=seed,
            protocol="line",
            connections=CONNECTIONS,
            open_first=CONNECTIONS,
            at_begin=mark,
            at_end=mark,
        )
    found: FIGURES = {}
    for name, one in seen["classes"].items():
        found |= {f"{name} {part}, ms": one[part] for part in ("p50", "p99", "max") if one["requests"]}
    found |= {name: seen[name] for name in ("slowdown mean", "slowdown p99")}
    found["requests/s"] = seen["throughput"]
    (begun, worked, used), (ended, worked_then, used_then) = marks
    found["CPU, us a request"] = (used_then - used) / seen["throughput"] / (ended - begun) * 1e6
    if cpu_threads:
        found["CPU share"] = (worked_then - worked) / (ended - begun)
    return found | {name: seen[name] for name in ("errors", "unanswered", "queued") if seen[name]}

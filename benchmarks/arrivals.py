"""Requests that arrive at a threaded server at random, whether it keeps up or not (open loop).

A load of .5 is half a core of Python work; each service time (in ms) of a mixture contributes its part of
that load. Receiving and sending come on top, so the short ones need more than their work. The server has a
thread for each of 32 connections, and the load generator queues what finds all of them busy. Latency counts
from the instant at which a request was due; slowdown is latency over the request's own work, over all
requests.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from load import Requests, openloop
from processes import FIGURES, Way, request_cpu_seconds, subject, work_seconds

CONNECTIONS = 32
MIXTURE = {0.1: 45.0, 1.0: 40.0, 20.0: 15.0}


def requests_of(mixture: Mapping[float, float], load: float) -> list[Requests]:
    """The classes whose work adds up to this load, each to its part."""
    parts = sum(mixture.values())
    return [
        Requests(f"{ms:g} ms", load * part / parts / ms * 1000, ms, f"{ms:g}") for ms, part in mixture.items()
    ]


def measured(
    way: Way, requests: list[Requests], *, cpu_threads: int, rate: float, seconds: float, seed: int
) -> FIGURES:
    """One server under load, of whose work a core does so many steps in a millisecond."""
    marks: list[tuple[float, float, float]] = []
    steps = {one.text: round(one.service_ms * rate) for one in requests}
    with subject("mixed_server", way, cpu_threads=cpu_threads, steps=steps) as (_, facts):

        def mark() -> None:
            spun = work_seconds(facts) if cpu_threads else 0.0
            marks.append((time.monotonic(), spun, request_cpu_seconds(facts)))

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
    figures: FIGURES = {}
    for name, one in seen["classes"].items():
        figures |= {f"{name} {part}, ms": one[part] for part in ("p50", "p99", "max") if one["requests"]}
    figures |= {name: seen[name] for name in ("slowdown mean", "slowdown p99")}
    figures["requests/s"] = seen["throughput"]
    took, spun, used = (after - before for before, after in zip(*marks, strict=True))
    figures["CPU, us a request"] = used / seen["throughput"] / took * 1e6
    if cpu_threads:
        figures["CPU share"] = spun / took
    figures |= {name: seen[name] for name in ("errors", "unanswered", "queued") if seen[name]}
    return {**figures, "generator p99 late, us": seen["lateness us"]["p99"]}

"""Do requests of mixed length stay quick in a threaded server, at every load, beside CPU-bound threads?

    python benchmarks/gil_open_loop.py [--loads 0.3,0.5,0.8] [--cpu-threads 0,1,4] [--foreign 2]
                                       [--mixture 0.1=45,1=40,20=15] [--rounds 5] [--free-threaded PYTHON]

Requests arrive as Poisson processes, whether the server keeps up or not (open loop), and latency counts from
the instant at which a request was due. A load of .5 is half a core of Python work; each service time (in ms)
of the mixture contributes its part of that load; receiving and sending come on top, so the short ones need
more than their work. The server has a thread for each of 32 connections, and the load generator queues what
finds all of them busy. `--foreign` adds busy processes to the machine.

Stock CPython, `sys.setswitchinterval(.0005)`, `fairlead run`, two processes of the stock server (each with
its CPU-bound threads) and, with `--free-threaded`, an interpreter without a GIL take turns. Slowdown is
latency over the request's own work, over all requests. Each figure is the median of the rounds
[lowest..highest].
"""

from __future__ import annotations

import time
from typing import Any

from harness import (
    FIGURES,
    MachineShares,
    Row,
    Target,
    Way,
    instead,
    request_cpu_seconds,
    run,
    server_arguments,
    subject,
    ways,
    work_seconds,
)
from load import Requests, openloop
from processes import REFERENCE, steps_per_ms

CONNECTIONS = 32


def requests_of(mixture: dict[float, float], load: float) -> list[Requests]:
    """The classes whose work adds up to this load, each to its part."""
    parts = sum(mixture.values())
    return [
        Requests(f"{ms:g} ms", load * part / parts / ms * 1000, ms, f"{ms:g}") for ms, part in mixture.items()
    ]


class Cell:
    """A load and a number of CPU-bound threads. All modes of a round have the same arrivals and steps."""

    def __init__(self, load: float, cpu_threads: int, modes: dict[str, Way], options: Any) -> None:
        self.requests = requests_of(options.mixture, load)
        self.load, self.cpu_threads, self.modes, self.options = load, cpu_threads, modes, options
        self.taken = 0
        self.rate = 0.0

    def take(self, mode: str) -> FIGURES:
        turn, first = divmod(self.taken, len(self.modes))
        if first == 0:
            self.rate = steps_per_ms()
        self.taken += 1
        steps = {one.text: round(one.service_ms * self.rate) for one in self.requests}
        with subject("mixed_server", self.modes[mode], cpu_threads=self.cpu_threads, steps=steps) as (
            _,
            facts,
        ):
            figures = self.measure(facts, seed=self.options.seed + turn)
        if "workers" in self.modes[mode].settings:
            del figures["CPU, us a request"]  # which is that of one of them
        return figures

    def measure(self, facts: dict[str, Any], seed: int) -> FIGURES:
        marks: list[tuple[float, float, float]] = []
        shares: list[MachineShares] = []
        machine: FIGURES = {}

        def mark() -> None:
            spun = work_seconds(facts) if "work" in facts else 0.0
            marks.append((time.monotonic(), spun, request_cpu_seconds(facts)))

        def begin() -> None:
            mark()
            shares.append(MachineShares())

        def end() -> None:
            mark()
            machine.update(shares[0].figures())

        seen = openloop(
            facts["port"],
            self.requests,
            seconds=self.options.seconds,
            warm_up=self.options.seconds / 4,
            seed=seed,
            protocol="line",
            connections=CONNECTIONS,
            open_first=CONNECTIONS,
            at_begin=begin,
            at_end=end,
        )
        figures: FIGURES = {}
        for name, one in seen["classes"].items():
            figures |= {f"{name} {part}, ms": one[part] for part in ("p50", "p99", "max") if one["requests"]}
        figures |= {name: seen[name] for name in ("slowdown mean", "slowdown p99")}
        figures["requests/s"] = seen["throughput"]
        (begun, spun_before, used_before), (ended, spun, used) = marks
        figures["CPU, us a request"] = (used - used_before) / seen["throughput"] / (ended - begun) * 1e6
        if self.cpu_threads:
            figures["CPU share"] = (spun - spun_before) / (ended - begun)
        for name in ("errors", "unanswered", "queued"):
            if seen[name]:
                figures[name] = seen[name]
        return {**figures, **machine, "generator p99 late, us": seen["lateness us"]["p99"]}

    def row(self) -> Row:
        name = f"load {self.load:g}, {self.cpu_threads} CPU threads, {self.options.foreign} foreign processes"
        return Row(name, self.take, list(self.modes), [t for mode in self.modes for t in self.targets(mode)])

    def targets(self, mode: str) -> list[Target]:
        if mode != "fairlead":
            return []
        worse = [
            Target(f"{one.name} {part}, ms", mode, of=REFERENCE, which=max, at_most=1.1)
            for one in self.requests
            for part in ("p50", "p99", "max")
        ]
        slowdowns = [
            Target(figure, mode, of=REFERENCE, at_most=1) for figure in ("slowdown mean", "slowdown p99")
        ]
        return slowdowns + worse


def mixture(text: str) -> dict[float, float]:
    return {float(ms): float(part) for ms, _, part in (one.partition("=") for one in text.split(","))}


def main() -> None:
    parser = server_arguments(__doc__ or "", rounds=5)
    parser.add_argument("--loads", default="0.3,0.5,0.8")
    parser.add_argument("--cpu-threads", default="0,1,4")
    parser.add_argument("--mixture", type=mixture, default="0.1=45,1=40,20=15")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.quick:
        options.loads, options.cpu_threads, options.seconds = "0.3", "1", 0.4
    modes = {**ways(), **instead(options)}
    rows = [
        Cell(float(load), int(cpu_threads), modes, options).row()
        for load in options.loads.split(",")
        for cpu_threads in options.cpu_threads.split(",")
    ]
    run("Do requests of mixed length stay quick in a threaded server?", rows, options)


if __name__ == "__main__":
    main()

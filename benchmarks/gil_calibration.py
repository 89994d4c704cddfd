"""How well does the simulator predict a real server: its latencies, and what its computing threads get?

    python benchmarks/gil_calibration.py [--rounds 1] [--seconds 4] [--simulated 20] [--json FILE]

Twenty cells: a threaded server whose requests arrive at random (arrivals.py), beside no, one or four
computing threads. Each is measured under stock CPython, under `sys.setswitchinterval(.0005)` and under
`fairlead run`, and simulated in the same three ways. A figure of the last column is predicted / measured.

The simulator is given what a request costs, as the kernel counted it: first, by requests without work, what
receiving and answering one costs; then, in each cell, how much slower the cores did the work than when its
rate was measured. It is given nothing of waiting.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

from arrivals import Cell, requests_of
from harness import Row, Sample, Way, arguments, run, show, ways
from load import Requests
from processes import SWITCH_INTERVAL_S

from fairlead.gil import simulation as sim

CELLS = [
    *itertools.product(("0.1=45,1=40,20=15", "1=1"), (0.3, 0.5, 0.7), (0, 1, 4)),
    ("5=1", 0.5, 0),
    ("5=1", 0.5, 1),
]
"""The mixture, the load and the computing threads of each."""
BARE = "requests without work"
PER_REQUEST = "CPU, us a request"
WITHIN = 1.25
WORSE = 1.1
"""A ratio to a rival above this is worse; a verdict is whether it is."""
SIMULATED: dict[str, dict[str, Any]] = {
    "stock": {"policy": "stock"},
    "interval": {"policy": "stock", "interval_seconds": SWITCH_INTERVAL_S},
    "fairlead": {"cpu_share": 0.05},
}


@dataclass(frozen=True)
class Comparison:
    row: str
    mode: str
    figure: str
    measured: float
    predicted: float

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured if self.measured else math.inf

    @property
    def within(self) -> bool:
        return 1 / WITHIN <= self.ratio <= WITHIN


def cell(mixed: str, load: float, cpu_threads: int, modes: dict[str, Way], options: Any) -> Cell:
    parts = {float(ms): float(part) for ms, _, part in (one.partition("=") for one in mixed.split(","))}
    return Cell(requests_of(parts, load), cpu_threads, modes, options.seconds, options.seed)


class Costs:
    """What requests need of a core, in one way: measured, and given to the simulator."""

    def __init__(self, bare: Cell, mode: str, samples: list[Sample], options: Any) -> None:
        seen = [one.figures[PER_REQUEST] for one in samples if (one.row, one.mode) == (BARE, mode)]
        self.measured_us = median(seen) - mean_us(bare.requests)
        """Beside its work, of one request."""
        kinds = {one.name: one.service_ms * 1e6 for one in bare.requests}
        ran = simulated(bare, mode, kinds, options)
        server = sum(thread.cpu_seconds for thread in ran.threads if thread.group == "server")
        requests = sum(ran.groups[name].requests for name in kinds)
        self.simulated_us = server / requests * 1e6 - mean_us(bare.requests)

    def kinds(self, one: Cell, samples: list[Sample]) -> dict[str, float]:
        """The GIL time (ns) of each kind of request in a cell."""
        seen = median(sample.figures[PER_REQUEST] for sample in samples)
        slower = max(seen - self.measured_us, 1) / mean_us(one.requests)
        more = max(self.measured_us - self.simulated_us, 0)
        return {kind.name: kind.service_ms * 1e6 * slower + more * 1e3 for kind in one.requests}


def mean_us(requests: list[Requests]) -> float:
    return sum(one.service_ms * one.rate for one in requests) / sum(one.rate for one in requests) * 1e3


def simulated(one: Cell, mode: str, kinds: dict[str, float], options: Any) -> sim.Simulation:
    rates = {kind.name: kind.rate for kind in one.requests}
    load = sum(rates[name] * ns for name, ns in kinds.items())
    parts = {name: (round(ns), rates[name] * ns / load) for name, ns in kinds.items()}
    return sim.simulate(
        sim.open_server(parts, load=load / 1e9, cpu_threads=one.cpu_threads),
        cores=os.cpu_count() or 1, seed=options.seed, until_seconds=options.simulated, **SIMULATED[mode],
    )  # fmt: skip


def predicted(one: Cell, mode: str, kinds: dict[str, float], options: Any) -> dict[str, float]:
    """The figures of arrivals.py, simulated."""
    ran = simulated(one, mode, kinds, options)
    figures: dict[str, float] = {}
    slowdowns, requests = 0.0, 0
    for kind in one.requests:
        group = ran.groups[kind.name]
        if group.requests:
            assert group.mean_seconds is not None
            assert group.p50_seconds is not None
            assert group.p99_seconds is not None
            figures |= {
                f"{kind.name} p50, ms": group.p50_seconds * 1e3,
                f"{kind.name} p99, ms": group.p99_seconds * 1e3,
            }
            slowdowns += group.requests * group.mean_seconds * 1e3 / kind.service_ms
            requests += group.requests
    figures["slowdown mean"] = slowdowns / max(requests, 1)
    if one.cpu_threads:
        figures["CPU share"] = ran.groups["cpu"].held_seconds / ran.elapsed_seconds
    return figures


def compared(
    name: str, one: Cell, costs: dict[str, Costs], samples: list[Sample], options: Any
) -> Iterator[Comparison]:
    for mode in one.modes:
        seen = [sample for sample in samples if (sample.row, sample.mode) == (name, mode)]
        if not seen:
            continue
        kinds = costs[mode].kinds(one, seen)
        for figure, value in predicted(one, mode, kinds, options).items():
            measured = [sample.figures[figure] for sample in seen if figure in sample.figures]
            if measured:
                yield Comparison(name, mode, figure, median(measured), value)


def summary(found: list[Comparison]) -> Iterator[str]:
    """One line a figure and way: how many are near, and the geometric mean of the ratios."""
    for figure in ("p50, ms", "p99, ms", "slowdown mean", "CPU share"):
        for mode in SIMULATED:
            some = [one for one in found if one.mode == mode and one.figure.endswith(figure)]
            ratios = sorted(one.ratio for one in some)
            if ratios:
                mean = geometric_mean(ratios)
                near = sum(one.within for one in some)
                yield (
                    f"  {'met' if near == len(some) else 'MISSED':<6} {mode}: {figure}, predicted / measured"
                    f" x{mean:.2f} [{ratios[0]:.2f}..{ratios[-1]:.2f}]; {near} of {len(some)} within"
                    f" {WITHIN - 1:.0%}"
                )


def verdicts(found: list[Comparison]) -> Iterator[str]:
    """One line a figure and rival: what fairlead makes of it, and whether the simulator calls it rightly."""
    by_key = {(one.row, one.figure, one.mode): one for one in found}
    for figure, rival in itertools.product(("p50, ms", "p99, ms", "slowdown mean"), ("stock", "interval")):
        pairs = [
            (one, other)
            for one in found
            if one.mode == "fairlead" and one.figure.endswith(figure)
            if (other := by_key.get((one.row, one.figure, rival))) is not None
        ]
        if pairs:
            predicted = [one.predicted / other.predicted for one, other in pairs]
            measured = [one.measured / other.measured for one, other in pairs]
            same = sum((p > WORSE) == (m > WORSE) for p, m in zip(predicted, measured, strict=True))
            yield (
                f"  fairlead / {rival}: {figure}, predicted x{geometric_mean(predicted):.2f}, measured"
                f" x{geometric_mean(measured):.2f} [{min(measured):.2f}..{max(measured):.2f}]; same verdict"
                f" on {same} of {len(pairs)}"
            )


def main() -> None:
    parser = arguments(__doc__ or "", rounds=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--simulated", type=float, default=20.0, help="seconds of each simulation")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chosen = CELLS[1:2] if options.quick else CELLS
    if options.quick:
        options.seconds, options.simulated = 0.4, 1.0
    modes = ways()
    cells = {
        f"{mixed} ms, load {load:g}, {cpu} CPU threads": cell(mixed, load, cpu, modes, options)
        for mixed, load, cpu in chosen
    }
    bare = cell("0.001=1", 0.001, 0, modes, options)
    rows = [Row(name, one.take, list(modes)) for name, one in {BARE: bare, **cells}.items()]
    samples = run("How well does the simulator predict a real server?", rows, options)
    costs = {mode: Costs(bare, mode, samples, options) for mode in modes}
    found = [one for name, each in cells.items() for one in compared(name, each, costs, samples, options)]
    print("\nCPU time of a request beside its work, us: measured, and simulated before it was given")
    for mode, cost in costs.items():
        print(f"  {mode:<9} {show(cost.measured_us):>8} {show(cost.simulated_us):>8}")
    print("\npredicted and measured")
    for one in found:
        near = "" if one.within else "   not near"
        print(
            f"  {one.row:<44} {one.mode:<9} {one.figure:<16} {show(one.predicted):>8} {show(one.measured):>8}"
            f"   x{one.ratio:.2f}{near}"
        )
    print("\nsummary")
    print(*summary(found), *verdicts(found), sep="\n")


if __name__ == "__main__":
    main()

"""How well does the simulator predict a real server: its latencies, and what its computing threads get?

    python benchmarks/gil_calibration.py [--rounds 1] [--seconds 4] [--simulated 20] [--cells]

Twenty cells: a threaded server whose requests arrive at random (arrivals.py), beside no, one or four
computing threads. Each is measured under stock CPython, under `sys.setswitchinterval(.0005)` and under
`fairlead run`, and simulated in the same three ways. Prints how well the
predictions hold; with `--cells` every figure.

The simulator is given what a request costs, as the kernel counted it: first, by requests without work, what
receiving and answering one costs; then, in each cell, how much slower the cores did the work than when its
rate was measured. It is given nothing of waiting.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean, median
from typing import Any

import arrivals
from load import Requests
from processes import FIGURES, SWITCH_INTERVAL_S, steps_per_ms, ways

from fairlead.gil import simulation as sim
from fairlead.lab.isolation.other_load import Meter

CELLS = [
    *itertools.product(("0.1=45,1=40,20=15", "1=1"), (0.3, 0.5, 0.7), (0, 1, 4)),
    ("5=1", 0.5, 0),
    ("5=1", 0.5, 1),
]
"""The mixture, the load and the computing threads of each."""
PER_REQUEST = "CPU, us a request"
WITHIN = 1.25
WORSE = 1.1
"""A ratio to a rival above this is worse; a verdict is whether it is."""
SIMULATED: dict[str, dict[str, Any]] = {
    "stock": {"policy": "stock"},
    "interval": {"policy": "stock", "interval_seconds": SWITCH_INTERVAL_S},
    "fairlead": {"cpu_share": 0.05},
}


Samples = dict[tuple["Cell", str], list[FIGURES]]


@dataclass(frozen=True)
class Cell:
    """A server, and what is asked of it."""

    mixture: str
    load: float
    cpu_threads: int

    @property
    def requests(self) -> list[Requests]:
        parts = dict(map(float, one.split("=")) for one in self.mixture.split(","))
        return arrivals.requests_of(parts, self.load)

    def __str__(self) -> str:
        return f"{self.mixture} ms, load {self.load:g}, {self.cpu_threads} CPU threads"


@dataclass(frozen=True)
class Comparison:
    cell: Cell
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


BARE = Cell("0.001=1", 0.001, 0)
"""Requests without work."""


class Costs:
    """What requests need of a core, in one way: measured, and given to the simulator."""

    def __init__(self, mode: str, samples: Samples, options: Any) -> None:
        seen = median(one[PER_REQUEST] for one in samples[BARE, mode])
        self.measured_us = seen - mean_us(BARE.requests)
        """Beside its work, of one request."""
        kinds = {one.name: one.service_ms * 1e6 for one in BARE.requests}
        ran = simulated(BARE, mode, kinds, options)
        server = sum(thread.cpu_seconds for thread in ran.threads if thread.group == "server")
        requests = sum(ran.groups[name].requests for name in kinds)
        self.simulated_us = server / requests * 1e6 - mean_us(BARE.requests)

    def kinds(self, one: Cell, samples: list[FIGURES]) -> dict[str, float]:
        """The GIL time (ns) of each kind of request in a cell."""
        seen = median(sample[PER_REQUEST] for sample in samples)
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
    found: dict[str, float] = {}
    slowdowns, requests = 0.0, 0
    for kind in one.requests:
        group = ran.groups[kind.name]
        if group.requests:
            assert group.mean_seconds is not None
            assert group.p50_seconds is not None
            assert group.p99_seconds is not None
            found |= {
                f"{kind.name} p50, ms": group.p50_seconds * 1e3,
                f"{kind.name} p99, ms": group.p99_seconds * 1e3,
            }
            slowdowns += group.requests * group.mean_seconds * 1e3 / kind.service_ms
            requests += group.requests
    found["slowdown mean"] = slowdowns / max(requests, 1)
    if one.cpu_threads:
        found["CPU share"] = ran.groups["cpu"].held_seconds / ran.elapsed_seconds
    return found


def compared(one: Cell, costs: dict[str, Costs], samples: Samples, options: Any) -> Iterator[Comparison]:
    for mode in SIMULATED:
        seen = samples[one, mode]
        kinds = costs[mode].kinds(one, seen)
        for figure, value in predicted(one, mode, kinds, options).items():
            measured = [sample[figure] for sample in seen if figure in sample]
            if measured:
                yield Comparison(one, mode, figure, median(measured), value)


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
                    f"{mode:<9} {figure:<14} predicted / measured x{mean:.2f}"
                    f" [{ratios[0]:.2f}..{ratios[-1]:.2f}]; {near} of {len(some)} within {WITHIN - 1:.0%}"
                )


def verdicts(found: list[Comparison]) -> Iterator[str]:
    """One line a figure and rival: what fairlead makes of it, and whether the simulator calls it rightly."""
    by_key = {(one.cell, one.figure, one.mode): one for one in found}
    for figure, rival in itertools.product(("p50, ms", "p99, ms", "slowdown mean"), ("stock", "interval")):
        pairs = [
            (one, other)
            for one in found
            if one.mode == "fairlead" and one.figure.endswith(figure)
            if (other := by_key.get((one.cell, one.figure, rival))) is not None
        ]
        if pairs:
            predicted = [one.predicted / other.predicted for one, other in pairs]
            measured = [one.measured / other.measured for one, other in pairs]
            same = sum((p > WORSE) == (m > WORSE) for p, m in zip(predicted, measured, strict=True))
            yield (
                f"fairlead / {rival:<9} {figure:<14} predicted x{geometric_mean(predicted):.2f}, measured"
                f" x{geometric_mean(measured):.2f} [{min(measured):.2f}..{max(measured):.2f}]; same verdict"
                f" on {same} of {len(pairs)}"
            )


def dearer(cells: list[Cell], samples: Samples) -> Iterator[str]:
    """One line a mode: what requests cost of a core where nothing else computes."""
    alone = [one for one in cells if not one.cpu_threads]
    for mode in ("interval", "fairlead") if alone else ():
        ratios = [
            median(one[PER_REQUEST] for one in samples[cell, mode])
            / median(one[PER_REQUEST] for one in samples[cell, "stock"])
            for cell in alone
        ]
        yield (
            f"  {mode}: x{geometric_mean(ratios):.2f} [{min(ratios):.2f}..{max(ratios):.2f}] of stock, work"
            f" included, in {len(ratios)} cells without computing threads"
        )


def measured(cells: list[Cell], options: Any) -> Samples:
    """All modes of a round have the same arrivals. Prints how quiet the machine was."""
    samples: Samples = {}
    meter, other = Meter(), []
    for number, one in itertools.product(range(options.rounds), cells):
        rate = steps_per_ms()
        for mode, way in ways().items():
            meter.begin()
            how = {"cpu_threads": one.cpu_threads, "rate": rate, "seconds": options.seconds}
            found = arrivals.measured(way, one.requests, **how, seed=options.seed + number)
            samples.setdefault((one, mode), []).append(found)
            other.append(meter.end() or 0.0)
    print(
        f"{platform.python_implementation()} {platform.python_version()}, rounds: {options.rounds}; other"
        f" processes took {median(other):.1%} of the cores, at most {max(other):.1%}"
    )
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement")
    parser.add_argument("--simulated", type=float, default=20.0, help="seconds of each simulation")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="a smoke run: figures mean nothing")
    parser.add_argument("--cells", action="store_true", help="print every figure, too")
    options = parser.parse_args()
    cells = [Cell(*cell) for cell in (CELLS[1:2] if options.quick else CELLS)]
    if options.quick:
        options.seconds, options.simulated = 0.4, 1.0
    samples = measured([BARE, *cells], options)
    costs = {mode: Costs(mode, samples, options) for mode in SIMULATED}
    found = [one for cell in cells for one in compared(cell, costs, samples, options)]
    print("\nCPU time of a request beside its work, us: measured, and simulated before it was given")
    for mode, cost in costs.items():
        print(f"  {mode:<9} {show(cost.measured_us):>8} {show(cost.simulated_us):>8}")
    print(*dearer(cells, samples), "", *summary(found), "", *verdicts(found), sep="\n")
    for one in found if options.cells else ():
        print(
            f"{one.cell!s:<44} {one.mode:<9} {one.figure:<16} {show(one.predicted):>8}"
            f" {show(one.measured):>8}   x{one.ratio:.2f}"
        )


def show(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    main()

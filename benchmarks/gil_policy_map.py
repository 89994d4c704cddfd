"""What the GIL's scheduling policy does to the mean slowdown of requests: a matrix of simulated servers.

    python tools/keep.py gil_policy_map python benchmarks/gil_policy_map.py

Each line is one server of gil_policy_matrix.py on two cores: its requests, its load, the computing threads
beside it, and the busy processes on the same cores. Then the mean slowdown of its requests (latency / the
request's own GIL time) under the policy, as a part of what it is under stock CPython, and under stock with a
short switch interval: .1 is ten times better. Geometric means over the seeds. `make site` draws the lines.
"""

from __future__ import annotations

import argparse
import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

from gil_policy_matrix import WORK, three_ways

from fairlead.gil import simulation as sim

LOADS = (0.1, 0.3, 0.5, 0.7, 0.8)
COMPUTING = (0, 1, 4)
FOREIGN = (0, 2)
RIVALS = ("stock", "switch interval .5 ms")
SECONDS = 10.0
SEEDS = (1, 2)

Cell = tuple[str, float, int, int]
CELLS: list[Cell] = list(itertools.product(WORK, LOADS, COMPUTING, FOREIGN))


def geometric(values: list[float]) -> float:
    return math.exp(fmean(map(math.log, values)))


def ratios(cell: Cell) -> tuple[float, float]:
    """Ours / stock, and ours / the short interval, of one cell."""
    work, load, computing, foreign = cell
    kinds, more = WORK[work]
    program = sim.open_server(kinds, load=load, cpu_threads=computing, cpu_processes=foreign, **more)
    found = []
    for seed in SEEDS:
        options = argparse.Namespace(seed=seed, seconds=SECONDS)
        stock, interval, ours = (run["slowdown"] for run in three_ways(program, kinds, options, 2))
        found.append((ours / stock, ours / interval))
    return geometric([one for one, _ in found]), geometric([other for _, other in found])


def line(cell: Cell, found: tuple[float, float]) -> str:
    return f"{' '.join(map(str, cell))}  {found[0]:.4g} {found[1]:.4g}"


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    print(f"{SECONDS:g} simulated seconds, seeds {SEEDS}, 2 cores\n")
    with ProcessPoolExecutor() as pool:
        found = dict(zip(CELLS, pool.map(ratios, CELLS, chunksize=4), strict=True))
    print("work, load, CPU threads, foreign processes: x stock, x switch interval .5 ms")
    for cell, each in found.items():
        print(line(cell, each))
    print()
    for (side, rival), foreign in itertools.product(enumerate(RIVALS), FOREIGN):
        values = [each[side] for cell, each in found.items() if cell[3] == foreign]
        worse = sum(value > 1.1 for value in values)
        print(
            f"{rival}, {foreign} busy processes: geometric mean {geometric(values):.2f}, "
            f"worst {max(values):.2f}, above 1.1 in {worse} of {len(values)} cells"
        )


if __name__ == "__main__":
    main()

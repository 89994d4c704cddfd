"""What each rule of the GIL's scheduling policy is worth: the policy without one of them, in the simulator.

    python benchmarks/gil_policy_ablation.py [--cores 2] [--loads .3,.7] [--seeds 1] [--seconds 10]

A row has a rule switched off, by the constant that is named. Its columns are the goals of
gil_policy_matrix.py: the geometric mean over all figures of ours / what the goal asks for (below 1 is better
than asked), for the workloads that the policy was tuned with and for others that it was not. Then come an
echo server of one client beside one computing thread (requests/s, and p99), and the share of the GIL that a
computing thread has beside one that makes short calls in C.
"""

from __future__ import annotations

import argparse
import itertools
import math
from concurrent.futures import ProcessPoolExecutor
from statistics import fmean

from gil_policy_matrix import WORK, Kinds, bounds, three_ways
from gil_policy_sweep import echo

from fairlead.gil import simulation as sim

MS = 1_000_000
HELD_OUT: dict[str, tuple[Kinds, dict[str, int]]] = {
    "0.5+2ms": ({"0.5 ms": (500_000, 0.5), "2 ms": (2 * MS, 0.5)}, {}),
    "3ms-waits": ({"3 ms": (3 * MS, 1.0)}, {"waits": 1, "steps": 4}),
    "wide": ({"0.2 ms": (200_000, 0.3), "3 ms": (3 * MS, 0.3), "40 ms": (40 * MS, 0.4)}, {"waits": 1}),
    "15ms": ({"15 ms": (15 * MS, 1.0)}, {"steps": 2}),
}
"""Looked at when the policy is done, and never while it is made."""
SETS = {"tuned": WORK, "held out": HELD_OUT}
OFF: dict[str, dict[str, int]] = {
    "the policy": {},
    "deadlines: first in, first out": {"stretch": 1},
    "deadlines: shortest first": {"stretch": 1000},
    "expectations from history": {"expect_most_ns": 1},
    "interruption of a serving thread": {"grain_ns": 25 * MS},
    "computations go behind": {"computation_ns": 10_000 * MS},
    "lazy drops": {"lazy_ns": 10_000},  # shorter than any; 0 would look for ever
    "debts of threads that do not sleep": {"awake_costs": 0, "awake_holds": 1 << 40},
    "offers to a sleeper": {"offer_ns": 0},
    "spinning": {"spin_ns": 0, "alternates_ns": 10**12},
}


CALLS = sim.Group(body=(sim.Forever((sim.Run(3_000), sim.Off(20_000, 0.1))),))
COMPUTING = sim.Group(body=(sim.Forever((sim.Run(MS),)),))


def beside_calls(constants: dict[str, int], seed: int, cores: int) -> float:
    program = sim.Program(groups={"calls": CALLS, "cpu": COMPUTING})
    run = sim.simulate(program, cores=cores, constants=constants, seed=seed, until_seconds=2)
    return run.held_share("cpu")


def cell(job: tuple[str, str, str, float, int, int, argparse.Namespace]) -> dict[str, list[float]]:
    """Of one workload, one rule switched off: by goal, the logarithms of ours / bound."""
    which, rule, work, load, cpu_threads, seed, options = job
    kinds, more = SETS[which][work]
    program = sim.open_server(kinds, load=load, cpu_threads=cpu_threads, **more)
    options.seed = seed
    stock, interval, ours = three_ways(program, kinds, options, options.cores, OFF[rule])
    found: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    for name, (goal, bound) in bounds(stock, interval, len(kinds) == 1).items():
        worst = options.seconds / bound  # nothing of this kind was answered
        found[goal].append(math.log(ours[name] / bound if name in ours else worst))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--loads", default=".3,.7")
    parser.add_argument("--cpu-threads", default="0,1")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rules", help="only those whose names have one of these, with commas")
    options = parser.parse_args()
    wanted = (options.rules or "").split(",")
    axes = [list(map(float, options.loads.split(","))), list(map(int, options.cpu_threads.split(",")))]
    seeds = list(map(int, options.seeds.split(",")))
    goals = f"{'tuned: a':>9}{'b':>6}{'c':>6}{'held out: a':>13}{'b':>6}{'c':>6}"
    print(f"{'without':34}{goals}   req/s  p99 us   cpu")
    with ProcessPoolExecutor() as pool:
        for rule, constants in OFF.items():
            if not any(part in rule for part in wanted):
                continue
            line = f"{rule:34}"
            for which, width in (("tuned", 9), ("held out", 13)):
                jobs = [
                    (which, rule, work, load, cpu_threads, seed, options)
                    for work, load, cpu_threads, seed in itertools.product(SETS[which], *axes, seeds)
                ]
                cells = list(pool.map(cell, jobs, chunksize=2))
                for goal in "abc":
                    value = math.exp(fmean(log for one in cells for log in one[goal]))
                    line += f"{value:>{width if goal == 'a' else 6}.2f}"
            echoes = [echo(1, 1, constants, seed, options.cores) for seed in seeds]
            rate, p99 = (fmean(values) for values in list(zip(*echoes, strict=True))[:2])
            share = fmean(beside_calls(constants, seed, options.cores) for seed in seeds)
            print(f"{line}{rate:8.0f}{p99:8.0f}{share:6.2f}", flush=True)


if __name__ == "__main__":
    main()

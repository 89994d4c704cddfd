"""What each constant of the GIL's scheduling policy does, one at a time, in the simulator.

    python benchmarks/gil_policy_sweep.py [--constants NAME,...] [--factors 0.25,4] [--seeds 1,2] [--cores 2]

For every constant and factor one row: requests/s and p99 of an echo server with 1 client and 1 CPU-bound
thread and with 16 clients and 4, how far the CPU share falls below its floor (.05), and the passes per thread
of the three squares at n = 500. The first row has the defaults; a star marks what differs from it by more
than a tenth. A constant that is 0 is varied from 1 ms.
"""

from __future__ import annotations

import argparse
from statistics import fmean

from fairlead.gil import simulation as sim

COLUMNS = (
    "1+1 req/s",
    "1+1 p99 us",
    "16+4 req/s",
    "16+4 p99 us",
    "floor short",
    "start/n",
    "mutex/n",
    "semaphore/n",
)
SQUARES = (sim.square_thread_start, sim.square_mutex, sim.square_semaphore)


def echo(
    clients: int, cpu_threads: int, constants: dict[str, int], seed: int, cores: int
) -> tuple[float, float, float]:
    """(requests per second, worst client's p99 in us, how far their share falls below its floor)"""
    seconds = 0.5
    run = sim.simulate(
        sim.echo(clients, cpu_threads),
        constants=constants,
        seed=seed,
        cores=cores,
        until_seconds=seconds,
        cpu_share=0.05,
    )
    groups = [group for name, group in run.groups.items() if name.startswith("client")]
    p99 = max(group.p99_seconds or seconds for group in groups)
    return (
        sum(group.requests for group in groups) / seconds,
        p99 * 1e6,
        min(run.held_share("cpu") - 0.05, 0.0),
    )


def row(constants: dict[str, int], seeds: list[int], cores: int) -> list[float]:
    """The figures of ``COLUMNS``, means over the seeds."""
    one = [echo(1, 1, constants, seed, cores) for seed in seeds]
    many = [echo(16, 4, constants, seed, cores) for seed in seeds]
    squares = [
        fmean(
            sim.simulate(square(500), constants=constants, seed=seed, cores=cores).passes / 500
            for seed in seeds
        )
        for square in SQUARES
    ]
    error = max(abs(result[2]) for result in one + many)
    means = [
        fmean(values) for values in (*list(zip(*one, strict=True))[:2], *list(zip(*many, strict=True))[:2])
    ]
    return [*means, error, *squares]


def show(name: str, values: list[float], base: list[float]) -> None:
    cells = []
    for column, value, usual in zip(COLUMNS, values, base, strict=True):
        differs = abs(value - usual) > (0.02 if column == "floor short" else 0.1 * usual)
        cells.append(f"{value:.3f}" if column == "floor short" else f"{value:.4g}")
        cells[-1] += "*" if differs else " "
    print(f"{name:30}" + "".join(f"{cell:>13}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--constants", default=",".join(sim.policy_constants()))
    parser.add_argument("--factors", default="0.5,2")
    parser.add_argument("--seeds", default="1")
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    seeds = [int(seed) for seed in options.seeds.split(",")]
    defaults = sim.policy_constants()
    names = options.constants.split(",")
    if strangers := [name for name in names if name not in defaults]:
        parser.error(f"no constant {strangers[0]!r}; it is one of {', '.join(defaults)}")
    print(f"{'constant':30}" + "".join(f"{column:>12} " for column in COLUMNS))
    base = row({}, seeds, options.cores)
    show("defaults", base, base)
    for name in names:
        for factor in map(float, options.factors.split(",")):
            value = round((defaults[name] or 1_000_000) * factor)
            show(f"{name} = {value}", row({name: value}, seeds, options.cores), base)


if __name__ == "__main__":
    main()

"""The GIL's scheduling policy against its rivals, in the simulator, over a matrix of open-loop workloads.

    python benchmarks/gil_policy_matrix.py [--cores 1,2,4,16] [--loads .1,.3,.5,.7,.8] [--cpu-threads 0,1,4]
        [--foreign 0,2] [--work NAME,...] [--seconds 20] [--seed 1] [--cells]

In each cell a pool of 32 threads answers requests that arrive at random, under stock, under
`sys.setswitchinterval(.0005)`, and scheduled. The goals, of which no cell can win all at once:

a  the mean slowdown (latency / the request's own GIL time) is at most that of the better rival;
b  in a mixture, no kind's median, 99th percentile or longest is above 1.1 times the worse rival's;
c  where all requests are alike, these are at most 1.1 times the better rival's.

Prints how many figures meet each goal, and those that miss it by most: ours / the bound. Quantiles are known
to a sixteenth. --cells prints every cell.
"""

from __future__ import annotations

import argparse
import itertools
from statistics import fmean

from fairlead.gil import simulation as sim

Kinds = dict[str, tuple[int, float]]
WORK: dict[str, tuple[Kinds, dict[str, int]]] = {
    "8us": ({"8 us": (8_000, 1.0)}, {}),
    "100us": ({"0.1 ms": (100_000, 1.0)}, {}),
    "300us": ({"0.3 ms": (300_000, 1.0)}, {}),
    "1ms": ({"1 ms": (1_000_000, 1.0)}, {}),
    "5ms": ({"5 ms": (5_000_000, 1.0)}, {}),
    "20ms": ({"20 ms": (20_000_000, 1.0)}, {}),
    "50ms": ({"50 ms": (50_000_000, 1.0)}, {}),
    "2ms-steps": ({"2 ms": (2_000_000, 1.0)}, {"steps": 6}),
    "mixed": (sim.MIXTURE, {}),
    "mixed-waits": (sim.MIXTURE, {"waits": 2}),
}
FIGURES = ("p50", "p99", "max")


def figures(
    program: sim.Program, kinds: Kinds, arguments: argparse.Namespace, cores: int, **ways: object
) -> dict[str, float]:
    """Of one run: the mean slowdown, and each kind's quantiles in seconds."""
    run = sim.simulate(
        program, cores=cores, seed=arguments.seed, cpu_share=0.05, until_seconds=arguments.seconds, **ways
    )  # type: ignore[arg-type]
    groups = {name: run.groups[name] for name in kinds if run.groups[name].requests}
    slowdowns = [
        (group.requests, (group.mean_seconds or 0.0) * 1e9 / kinds[name][0]) for name, group in groups.items()
    ]
    told = {"slowdown": sum(n * s for n, s in slowdowns) / max(sum(n for n, _ in slowdowns), 1)}
    for name, group in groups.items():
        told |= {f"{name} {figure}": getattr(group, f"{figure}_seconds") for figure in FIGURES}
    return told


def bounds(stock: dict[str, float], interval: dict[str, float], alike: bool) -> dict[str, tuple[str, float]]:
    """By figure: the goal, and what it asks for."""
    asked = {}
    for name in stock.keys() & interval.keys():
        if name == "slowdown":
            asked[name] = ("a", min(stock[name], interval[name]))
        else:
            rival = (min if alike else max)(stock[name], interval[name])
            asked[name] = ("c" if alike else "b", 1.1 * rival)
    return asked


def three_ways(
    program: sim.Program,
    kinds: Kinds,
    arguments: argparse.Namespace,
    cores: int,
    constants: dict[str, int] | None = None,
) -> tuple[dict[str, float], dict[str, float], dict[str, float]]:
    """The figures under stock, under stock with a short switch interval, and under fairlead's policy."""
    return (
        figures(program, kinds, arguments, cores, policy="stock"),
        figures(program, kinds, arguments, cores, policy="stock", interval_seconds=0.0005),
        figures(program, kinds, arguments, cores, constants=constants),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cores", default="1,2,4,16")
    parser.add_argument("--loads", default=".1,.3,.5,.7,.8")
    parser.add_argument("--cpu-threads", default="0,1,4")
    parser.add_argument("--foreign", default="0")
    parser.add_argument("--work", default=",".join(WORK))
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cells", action="store_true")
    arguments = parser.parse_args()

    met: dict[str, list[bool]] = {"a": [], "b": [], "c": []}
    ratios: dict[str, list[float]] = {"a": [], "b": [], "c": []}
    misses = []
    axes = (arguments.cores, arguments.foreign, arguments.work, arguments.loads, arguments.cpu_threads)
    for cores, foreign, work, load, cpu_threads in itertools.product(*(axis.split(",") for axis in axes)):
        kinds, more = WORK[work]
        program = sim.open_server(
            kinds, load=float(load), cpu_threads=int(cpu_threads), cpu_processes=int(foreign), **more
        )
        stock, interval, ours = three_ways(program, kinds, arguments, int(cores))
        cell = f"{work}, load {load}, {cpu_threads} computing, {cores} cores, {foreign} foreign"
        for name, (goal, bound) in sorted(bounds(stock, interval, len(kinds) == 1).items()):
            ratio = ours.get(name, float("inf")) / bound
            met[goal].append(ratio <= 1.0)
            ratios[goal].append(ratio)
            told = f"stock {stock[name]:.3g}, interval {interval[name]:.3g}, ours {ours.get(name, 0):.3g}"
            line = f"{cell}: {name}: {told}"
            if arguments.cells:
                print(line)
            if ratio > 1.0:
                misses.append((ratio, goal, line))
    for goal, results in met.items():
        if results:
            mean = fmean(ratios[goal])
            print(
                f"goal {goal}: {sum(results)} of {len(results)} figures; ours / bound {mean:.2f} on average"
            )
    for ratio, goal, line in sorted(misses, reverse=True)[:20]:
        print(f"  {goal} x{ratio:.2f}  {line}")


if __name__ == "__main__":
    main()

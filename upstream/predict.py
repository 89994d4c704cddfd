"""What the simulator says of the variants, beside what was measured; writes results/prediction.json.

    python upstream/predict.py [--quick]

The simulated programs are fairlead.gil.simulation's echo server and n CPU-bound threads, on two cores, with
the kernel's defaults: nothing is fitted to the measurements. The median of three seeds counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

from variants import arguments, results

from fairlead.gil import simulation as sim

POLICIES: dict[str, sim.SimulatedPolicy] = {
    "stock": "stock",
    "a": "early",
    "b": "queued",
    "ab": "patient",
    "fairlead": "interactive",
}
FIGURES = ("requests/s", "p99 us", "CPU share")
Cell = dict[str, object]


def predict(clients: int, cpu_threads: int, policy: sim.SimulatedPolicy, seed: int) -> dict[str, float]:
    run = sim.simulate(sim.echo(clients, cpu_threads), policy=policy, seed=seed, until_seconds=1)
    groups = [run.groups[f"client{i}"] for i in range(1, clients + 1)]
    figures = {
        "requests/s": sum(group.requests for group in groups) / run.elapsed_seconds,
        "p99 us": median(group.p99_seconds or run.elapsed_seconds for group in groups) * 1e6,
    }
    if cpu_threads:
        figures["CPU share"] = run.groups["cpu"].held_seconds / run.elapsed_seconds
    return figures


def measured(where: Path) -> dict[tuple[int, int, str], dict[str, float]]:
    """The median of each figure, by clients, CPU-bound threads and variant."""
    found: dict[tuple[int, int, str], dict[str, list[float]]] = {}
    for path in where.glob("convoy-*.json"):
        for sample in json.loads(path.read_text())["samples"]:
            words = sample["row"].split()
            figures = found.setdefault((int(words[0]), int(words[2]), sample["mode"]), {})
            for name in FIGURES:
                if name in sample["figures"]:
                    figures.setdefault(name, []).append(sample["figures"][name])
    return {at: {name: median(each) for name, each in figures.items()} for at, figures in found.items()}


def main() -> None:
    where = results(quick=arguments(__doc__ or "").parse_args().quick)
    cells: list[Cell] = []
    for (clients, cpu_threads, variant), seen in sorted(measured(where).items()):
        runs = [predict(clients, cpu_threads, POLICIES[variant], seed) for seed in range(3)]
        said = {name: median(run[name] for run in runs) for name in runs[0]}
        cells.append(
            {
                "clients": clients,
                "cpu_threads": cpu_threads,
                "variant": variant,
                "predicted": said,
                "measured": seen,
            }
        )
        print(clients, cpu_threads, variant, *(f"{name}: {said[name]:.4g} {seen[name]:.4g}" for name in said))
    (where / "prediction.json").write_text(json.dumps({"cells": cells}, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Starts a dask scheduler and workers on this machine's loopback, and runs the lab's pool workloads on them.

    tools/cluster_demo.py [--workers 2] [--fraction 0.05]

Prints for each workload how long it took on the cluster and here, one task after another, and whether the
answers are right.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

from fairlead.lab.experiments import probe_workloads as workloads
from fairlead.pools import DaskPool, Pool, SequentialPool

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.clusters import cluster


def timed(pool: Pool, work: workloads.Workload, items: list[Any]) -> tuple[float, int]:
    """Seconds, and wrong answers."""
    begin = time.perf_counter()
    results = list(pool.map(work.function, items))
    return time.perf_counter() - begin, work.wrong(results)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fraction", type=float, default=0.05, help="of each workload's tasks")
    options = parser.parse_args()
    wrong = 0
    with (
        cluster(["127.0.0.1"] * options.workers) as address,
        DaskPool(address) as pool,
        SequentialPool() as alone,
    ):
        print(f"scheduler {address}, {pool.workers} workers")
        for work in workloads.catalogue():
            if work.name.startswith("pyperformance-") and not workloads.has_pyperformance():
                print(f"{work.name}: left out, it needs the package pyperformance")
                continue
            items = work.items(options.fraction if work.tasks < 10_000 else options.fraction / 100)
            there, wrong_there = timed(pool, work, items)
            here, wrong_here = timed(alone, work, items)
            wrong += wrong_there + wrong_here
            verdict = "all right" if not wrong_there else f"{wrong_there} WRONG"
            print(
                f"{work.name:14} {len(items):5} tasks  cluster {there:7.3f} s  sequential {here:7.3f} s  "
                f"{here / there:5.2f} x  {verdict}",
                flush=True,
            )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

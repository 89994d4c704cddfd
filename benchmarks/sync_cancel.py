"""How the time to cancel n tasks that wait, all at once, grows with n; asyncio's own in the same run.

    python benchmarks/sync_cancel.py [--rounds 9] [--tasks 250 500 1000 2000 4000]

n tasks wait for a lock that is held; all are cancelled, and the time ends when the last task has ended. CPU
time of the thread per task: constant means linear. Ratios as in sync_pair.py. At the end: the exponent of n
in the whole time, by least squares over the medians.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

from fairlead import sync

Taken = dict[str, dict[int, list[float]]]
"""Nanoseconds per task, by candidate and number of tasks."""


def cancelled(name: str, make: Callable[[], Any], count: int, taken: Taken, _size: int) -> float:
    async def wait(lock: Any) -> None:
        async with lock:
            raise AssertionError("a cancelled task was let in")

    async def main() -> float:
        lock = make()
        async with lock:
            tasks = [asyncio.create_task(wait(lock)) for _ in range(count)]
            await asyncio.sleep(0)  # all of them wait now
            begin = time.thread_time_ns()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return (time.thread_time_ns() - begin) / count

    spent = asyncio.run(main())
    taken[name][count].append(spent)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--tasks", type=int, nargs="+", default=[250, 500, 1000, 2000, 4000])
    options = parser.parse_args()
    candidates: dict[str, Callable[[], Any]] = {
        "asyncio.Lock": asyncio.Lock,
        "fairlead Lock": sync.Lock,
        "fairlead Semaphore": partial(sync.Semaphore, 1),
    }
    taken: Taken = defaultdict(lambda: defaultdict(list))
    version = f"{sys.implementation.name} {sys.version.split()[0]}"
    print(f"{version}, {options.rounds} rounds")
    harness.peers(
        {
            f"cancel {count} waiters": {
                name: partial(cancelled, name, make, count, taken) for name, make in candidates.items()
            }
            for count in options.tasks
        },
        rounds=options.rounds,
        size=1,
        warm_up=1,
    )
    if len(options.tasks) > 1:
        for name, by_count in taken.items():
            sizes = [math.log(count) for count in by_count]
            times = [math.log(count * statistics.median(each)) for count, each in by_count.items()]
            print(f"{name}: time grows as n^{statistics.linear_regression(sizes, times).slope:.2f}")


if __name__ == "__main__":
    main()

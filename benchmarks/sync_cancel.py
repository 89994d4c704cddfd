"""How the time to cancel n tasks that wait, all at once, grows with n; asyncio's own in the same run.

    python benchmarks/sync_cancel.py [--rounds 9] [--tasks 250 500 1000 2000 4000] [--json FILE]

n tasks wait for a lock that is held; all are cancelled, and the time ends when the last task has ended. CPU
time of the thread per task: constant means linear. Printed last is the exponent of n in the whole time, by
least squares over the medians.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from functools import partial
from statistics import linear_regression, median
from typing import Any

import harness

from fairlead import sync

MODES: dict[str, Callable[[], Any]] = {
    "asyncio.Lock": asyncio.Lock,
    "fairlead Lock": sync.Lock,
    "fairlead Semaphore": partial(sync.Semaphore, 1),
}

LINEAR = 1.1
"""The exponent of n up to which the time counts as linear."""


async def _wait(lock: Any) -> None:
    async with lock:
        raise AssertionError("a cancelled task was let in")


async def _cancelled(lock: Any, count: int) -> float:
    async with lock:
        tasks = [asyncio.create_task(_wait(lock)) for _ in range(count)]
        await asyncio.sleep(0)  # all of them wait now
        begin = time.thread_time_ns()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return (time.thread_time_ns() - begin) / count


def cancelling(count: int) -> Callable[[str], dict[str, float]]:
    return lambda mode: {"CPU ns a task": asyncio.run(_cancelled(MODES[mode](), count))}


def main() -> None:
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--tasks", type=int, nargs="+", default=[250, 500, 1000, 2000, 4000])
    options = parser.parse_args()
    counts = [count // 25 for count in options.tasks] if options.quick else options.tasks
    rows = {count: harness.Row(f"{count} tasks", cancelling(count), list(MODES)) for count in counts}
    samples = harness.run("waiting tasks cancelled at once", list(rows.values()), options)
    print()
    for mode in MODES:
        taken = {
            count: [s.figures["CPU ns a task"] for s in samples if (s.row, s.mode) == (row.name, mode)]
            for count, row in rows.items()
        }
        points = [(math.log(n), math.log(n * median(values))) for n, values in taken.items() if values]
        if len(points) > 1:
            slope = linear_regression(*zip(*points, strict=True)).slope
            verdict = f": {'met' if slope <= LINEAR else 'MISSED'}, must be <= n^{LINEAR}"
            print(f"{mode}: time grows as n^{slope:.2f}{'' if mode.startswith('asyncio') else verdict}")


if __name__ == "__main__":
    main()

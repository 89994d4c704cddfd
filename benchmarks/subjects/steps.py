"""CPU-bound Python code, in steps or in nanoseconds of work: waiting for the GIL or a core is no work."""

from __future__ import annotations

import time

UNIT = 1000
BATCH = 16


def count_to(steps: int) -> None:
    x = 0
    while x < steps:
        x += 1


def unit() -> None:
    """Some tens of microseconds of CPU-bound Python code."""
    count_to(UNIT)


def spin(done: memoryview | None = None, place: int = 0) -> None:
    """CPU-bound Python code that is never done; it counts the nanoseconds of work that it did.

    A unit counts as long as it took, but no more than half as much again as the quickest of its batch, which
    had a core and the GIL to itself: so neither waiting nor looking on counts, and how fast the core is just
    then, which may change by half within a second, does not matter.
    """
    clock = time.perf_counter_ns
    work = 0
    while True:
        took = []
        begin = clock()
        for _ in range(BATCH):
            unit()
            end = clock()
            took.append(end - begin)
            begin = end
        most = min(took) * 3 // 2
        work += sum(min(one, most) for one in took)
        if done is not None:
            done[place] = work

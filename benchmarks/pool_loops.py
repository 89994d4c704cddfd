"""What the benchmarks of pools have in common: from a pool's first result to its map, the same for all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import harness
from subjects.calls import identity

CHUNK = 100


def each_us(count: int, call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - begin) / count * 1e6


def bring_up(pool: Any, began: float) -> harness.FIGURES:
    """All workers are up afterwards. ``began``: when the constructor was called."""
    pool.submit(identity, 1).result()
    figures = {"start ms": (time.perf_counter() - began) * 1e3}
    for future in [pool.submit(identity, 1) for _ in range(50)]:
        future.result()
    return figures


def call(pool: Any, calls: int, *, mapped: int) -> harness.FIGURES:
    """Round trips, a stream, the submitting of it and, unless ``mapped`` is 0, a map over so many items;
    microseconds for each."""
    cpu = time.process_time()
    figures = {"round trip": each_us(calls, lambda: pool.submit(identity, 1).result())}
    figures["round trip CPU"] = (time.process_time() - cpu) / calls * 1e6
    begin = time.perf_counter()
    futures = [pool.submit(identity, 1) for _ in range(5 * calls)]
    figures["submit"] = (time.perf_counter() - begin) / (5 * calls) * 1e6
    for future in futures:
        future.result()
    figures["stream"] = (time.perf_counter() - begin) / (5 * calls) * 1e6
    if mapped:
        begin = time.perf_counter()
        for _ in pool.map(identity, range(mapped), chunksize=CHUNK):
            pass
        figures["map"] = (time.perf_counter() - begin) / mapped * 1e6
    return figures

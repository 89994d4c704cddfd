"""What the benchmarks of pools have in common: from a pool's first result to its map, the same for all."""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable
from typing import Any

import harness
from subjects.calls import identity

from fairlead import machine
from fairlead.advice.child import usage
from fairlead.lab.isolation import subprocess_runner

CHUNK = 100
MAPPED = 10_000
LOOK_S = 0.02


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
    """Round trips, a stream, the submitting of it and, unless ``mapped`` is 0, maps over 10,000 items and
    over so many; microseconds for each."""
    family = machine.family(os.getpid())
    own, all_of_it = time.process_time(), usage.cpu_s(family)
    figures = {"round trip": each_us(calls, lambda: pool.submit(identity, 1).result())}
    figures["round trip CPU"] = (time.process_time() - own) / calls * 1e6
    figures["and workers' CPU"] = (usage.cpu_s(family) - all_of_it) / calls * 1e6
    begin = time.perf_counter()
    futures = [pool.submit(identity, 1) for _ in range(5 * calls)]
    figures["submit"] = (time.perf_counter() - begin) / (5 * calls) * 1e6
    for future in futures:
        future.result()
    figures["stream"] = (time.perf_counter() - begin) / (5 * calls) * 1e6
    if mapped:
        items = min(MAPPED, mapped)
        for _ in range(3):
            begin = time.perf_counter()
            found = list(pool.map(identity, range(items)))
            figures["map"] = min(figures.get("map", math.inf), (time.perf_counter() - begin) / items * 1e6)
            assert len(found) == items
        begin = time.perf_counter()
        for _ in pool.map(identity, range(mapped), chunksize=CHUNK):
            pass
        figures["map in chunks"] = (time.perf_counter() - begin) / mapped * 1e6
    return figures


def memory_mib() -> float:
    """Of this process and its descendants, shared pages counted once."""
    return (subprocess_runner.proportional_kib(machine.family(os.getpid())) or 0.0) / 1024


class Memory:
    """Entered: looks again and again at how much memory there is."""

    def __enter__(self) -> Memory:
        self._over = threading.Event()
        self._before = memory_mib()
        self._most = self._before
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(LOOK_S):
            self._most = max(self._most, memory_mib())

    def more_mib(self) -> float:
        """The most so far, beyond what it was on entering."""
        return self._most - self._before

"""Threads that give the GIL up often, beside one that computes; how long the longest of them had to wait.

Settings: kind (yielding, workers, locked), seconds, steps_per_ms. Prints a line when the measurement begins,
and then what was seen. Arrivals are at random, and the same each time.
"""

from __future__ import annotations

import queue
import random
import sys
import threading
import time
from collections.abc import Iterator

import subject
from steps import count_to

SECONDS: float = subject.SETTINGS["seconds"]
RATE = 100
WORKERS = 8


def compute(ms: float) -> None:
    count_to(round(ms * subject.SETTINGS["steps_per_ms"]))


def figures(took: list[float]) -> dict[str, float]:
    took.sort()
    parts = {"median_s": 0.5, "p99_s": 0.99, "longest_s": 1.0}
    found = {name: took[min(len(took) - 1, int(len(took) * part))] for name, part in parts.items()}
    return {**found, "calls_per_s": len(took) / SECONDS}


def arrivals(seed: int, rate: float) -> Iterator[float]:
    """The instants, at random, at which something is due: returns at each, or later. The first is now."""
    chance = random.Random(seed)
    due = time.monotonic()
    end = due + SECONDS
    while due < end:
        time.sleep(max(0.0, due - time.monotonic()))
        yield due
        due += chance.expovariate(rate)


def yielding() -> dict[str, float]:
    """`time.sleep(0)` each 5 ms, beside a thread that ticks: it sleeps 1 ms and computes .05 ms."""
    took: list[float] = []
    begun: list[float] = []

    def tick() -> None:
        while True:
            time.sleep(0.001)
            compute(0.05)

    def give_way() -> None:
        while True:
            time.sleep(0.005)
            begun.append(time.perf_counter())
            time.sleep(0)
            took.append(time.perf_counter() - begun[-1])

    for thread in (tick, give_way):
        threading.Thread(target=thread, daemon=True).start()
    time.sleep(SECONDS)
    while not begun:
        time.sleep(0.001)
    under_way = [time.perf_counter() - begun[-1]] if len(begun) > len(took) else []
    return figures(took + under_way)


def workers() -> dict[str, float]:
    """Jobs that come at random times, whether the eight workers keep up or not: compute .3 ms, sleep 2 ms,
    sleep 1 ms, compute .5 ms. A job's time counts from the instant at which it was due."""
    jobs: queue.SimpleQueue[float | None] = queue.SimpleQueue()
    took: list[float] = []

    def work() -> None:
        while (due := jobs.get()) is not None:
            compute(0.3)
            time.sleep(0.002)
            time.sleep(0.001)
            compute(0.5)
            took.append(time.monotonic() - due)

    threads = [threading.Thread(target=work) for _ in range(WORKERS)]
    for thread in threads:
        thread.start()
    for due in arrivals(0, RATE):
        jobs.put(due)
    for _ in threads:
        jobs.put(None)
    for thread in threads:
        thread.join()
    return figures(took)


def locked() -> dict[str, float]:
    """A lock that a thread which computes holds for a fifth of its time, taken at random times, beside eight
    threads that serve: half a core in all, 1 ms each time."""
    lock = threading.Lock()
    took: list[float] = []

    def hold() -> None:
        while True:
            with lock:
                compute(0.2)
            compute(0.8)

    def serve(seed: int) -> None:
        for _ in arrivals(seed, 500 / WORKERS):
            compute(1)

    threading.Thread(target=hold, daemon=True).start()
    threads = [threading.Thread(target=serve, args=(1 + number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    for due in arrivals(0, RATE):
        with lock:
            pass
        took.append(time.monotonic() - due)
    for thread in threads:
        thread.join()
    return figures(took)


subject.set_switch_interval()
work = subject.spinners()
subject.say(**work)
subject.say(**{"yielding": yielding, "workers": workers, "locked": locked}[subject.SETTINGS["kind"]]())
sys.stdin.read()  # what its threads have computed is read from outside, while it lives

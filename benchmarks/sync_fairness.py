"""The longest that a thread waits for a lock that others want all the time, against threading, in one run.

    python benchmarks/sync_fairness.py [--rounds 5] [--threads 16] [--seconds 2]

Every thread acquires the lock, loops a little inside, releases it, and tries again at once until the time is
up. A round's figure is the longest single acquisition of any thread; ratios as in sync_pair.py.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

from fairlead import sync

INSIDE = 200
"""Iterations of an empty loop while the lock is held: some microseconds."""


def longest(make: Callable[[], Any], count: int, seconds: float, _size: int) -> float:
    """Nanoseconds that the unluckiest acquisition took, one that began before the end included."""
    lock = make()
    waits = [0] * count
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        until = time.perf_counter_ns() + int(seconds * 1e9)
        while (begin := time.perf_counter_ns()) < until:
            with lock:
                waits[number] = max(waits[number], time.perf_counter_ns() - begin)
                for _ in range(INSIDE):
                    pass

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return float(max(waits))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    candidates = {
        "threading.Lock": threading.Lock,
        "fairlead Lock": sync.Lock,
        "fairlead Lock, fair": partial(sync.Lock, fair=True),
    }
    question = f"longest wait, {options.threads} threads for {options.seconds:g} s"
    version = f"{sys.implementation.name} {sys.version.split()[0]}"
    print(f"{version}, {options.rounds} rounds")
    harness.peers(
        {
            question: {
                name: partial(longest, make, options.threads, options.seconds)
                for name, make in candidates.items()
            }
        },
        rounds=options.rounds,
        size=1,
        warm_up=1,
    )


if __name__ == "__main__":
    main()

"""The longest that a thread waits for a lock that others want all the time, against threading, in one run.

    python benchmarks/sync_fairness.py [--rounds 5] [--threads 16] [--seconds 2] [--json FILE]

Every thread acquires the lock, loops a little inside, releases it, and tries again at once until the time is
up. *longest* is the longest single acquisition of any thread, one that began before the end included; *turns*
is how many there were, of all threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

from fairlead import sync

INSIDE = 200
"""Iterations of an empty loop while the lock is held: some microseconds."""

MODES: dict[str, Callable[[], Any]] = {
    "threading.Lock": threading.Lock,
    "fairlead": sync.Lock,
    "fairlead fair": partial(sync.Lock, fair=True),
}


def contended(count: int, seconds: float) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        lock = MODES[mode]()
        waits, turns = [0] * count, [0] * count
        start = threading.Barrier(count)

        def run(number: int) -> None:
            start.wait()
            until = time.perf_counter_ns() + int(seconds * 1e9)
            while (begin := time.perf_counter_ns()) < until:
                with lock:
                    waits[number] = max(waits[number], time.perf_counter_ns() - begin)
                    for _ in range(INSIDE):
                        pass
                turns[number] += 1

        threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return {"longest, ms": max(waits) / 1e6, "turns": sum(turns)}

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=5)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    seconds = 0.05 if options.quick else options.seconds
    row = harness.Row(
        f"{options.threads} threads at one lock for {seconds:g} s",
        contended(options.threads, seconds),
        list(MODES),
        [harness.Target("longest, ms", "fairlead", at_most=1, of="threading.Lock")],
    )
    harness.run("the longest wait for a lock", [row], options)


if __name__ == "__main__":
    main()

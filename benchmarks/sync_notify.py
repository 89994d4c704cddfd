"""How long it takes until all n threads that waited have been let go on; peers in one run.

    python benchmarks/sync_notify.py [--rounds 9] [--foreign 2] [--threads 100 1000]

*notify_all*: n threads wait on a condition; from notify_all() until the last of them has had the lock.
*set*: n threads wait for an event; from set() until the last of them runs. Elapsed time per thread; ratios as
in sync_pair.py.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import harness

from fairlead import sync


def elapsed(
    count: int, body: Callable[[], None], all_wait: Callable[[], bool], go: Callable[[], None]
) -> float:
    """Nanoseconds per thread from go() until the last body has returned."""
    left = [None] * count
    done = threading.Event()

    def run() -> None:
        body()
        left.pop()
        if not left:
            done.set()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    while not all_wait():
        time.sleep(0.001)
    time.sleep(0.05)  # the last ones fall asleep
    begin = time.perf_counter_ns()
    go()
    done.wait()
    spent = time.perf_counter_ns() - begin
    for thread in threads:
        thread.join()
    return spent / count


def notified(make: Callable[[], Any], waiting: Callable[[Any], int], count: int, _size: int) -> float:
    condition = make()

    def body() -> None:
        with condition:
            condition.wait()

    def go() -> None:
        with condition:
            condition.notify_all()

    return elapsed(count, body, lambda: waiting(condition) == count, go)


def set_free(make: Callable[[], Any], waiting: Callable[[Any], int], count: int, _size: int) -> float:
    event = make()
    return elapsed(count, lambda: event.wait() and None, lambda: waiting(event) == count, event.set)


def questions(counts: list[int]) -> dict[str, dict[str, Callable[[int], float]]]:
    found: dict[str, dict[str, Callable[[int], float]]] = {}
    for count in counts:
        found[f"notify_all, {count} threads"] = {
            "threading.Condition": partial(
                notified, threading.Condition, lambda one: len(one._waiters), count
            ),
            "fairlead Condition": partial(
                notified, sync.Condition, lambda one: one.statistics().waiting, count
            ),
        }
        found[f"set, {count} threads"] = {
            "threading.Event": partial(set_free, threading.Event, lambda one: len(one._cond._waiters), count),
            "fairlead Event": partial(set_free, sync.Event, lambda one: one.statistics().waiting, count),
        }
    return found


def main() -> None:
    parser = harness.peer_arguments(__doc__ or "", rounds=9)
    parser.add_argument("--threads", type=int, nargs="+", default=[100, 1000])
    options = parser.parse_args()
    threading.stack_size(256 * 1024)
    harness.peers(questions(options.threads), options, size=1, warm_up=1)


if __name__ == "__main__":
    main()

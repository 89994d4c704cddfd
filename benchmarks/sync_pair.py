"""What one uncontended pair of calls costs, against the peers, in one run.

    python benchmarks/sync_pair.py [--rounds 15] [--foreign 2] [--pairs 50000] [--only async]

A pair is acquire and release, or put and get. The candidates of a question take turns, round by round, and
each round's ratio is taken to the reference of that question in the same round, so that a slow moment of the
machine hits all alike. Printed are the median CPU time of this thread per pair, the median ratio, and the
lowest and highest ratio of any round. aiologic is a peer where it is installed.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import harness

from fairlead import sync

Timed = Callable[[int], float]
"""Runs that many pairs and returns the nanoseconds of CPU time of one."""


def timed(body: str, **names: Any) -> Timed:
    """The loop over a statement, compiled, so that no call is measured but those of the statement."""
    source = f"""
def run(pairs):
    begin = clock()
    for _ in range(pairs):
        {body}
    return (clock() - begin) / pairs
"""
    scope = {**names, "clock": time.thread_time_ns}
    exec(source, scope)
    return scope["run"]


def timed_async(body: str, **names: Any) -> Timed:
    source = f"""
async def run(pairs):
    begin = clock()
    for _ in range(pairs):
        {body}
    return (clock() - begin) / pairs
"""
    scope: dict[str, Any] = {**names, "clock": time.thread_time_ns}
    exec(source, scope)
    run: Callable[[int], Coroutine[Any, Any, float]] = scope["run"]
    return lambda pairs: asyncio.run(run(pairs))


CALLS = "x.acquire(); x.release()"
WITH = "with x: pass"
QUEUE = "x.put(1); x.get()"
ASYNC_QUEUE = "await x.put_async(1); await x.get_async()"
ASYNC_WITH = "async with x: pass"


def questions() -> dict[str, dict[str, Timed]]:
    """By name, the candidates; the first one is the reference."""
    found: dict[str, dict[str, Timed]] = {
        "lock, calls": {
            "threading.Lock": timed(CALLS, x=threading.Lock()),
            "fairlead Lock": timed(CALLS, x=sync.Lock()),
            "fairlead Lock, fair": timed(CALLS, x=sync.Lock(fair=True)),
            "threading.RLock": timed(CALLS, x=threading.RLock()),
            "fairlead RLock": timed(CALLS, x=sync.RLock()),
        },
        "lock, with": {
            "threading.Lock": timed(WITH, x=threading.Lock()),
            "fairlead Lock": timed(WITH, x=sync.Lock()),
        },
        "rlock, calls": {
            "threading.RLock": timed(CALLS, x=threading.RLock()),
            "fairlead RLock": timed(CALLS, x=sync.RLock()),
        },
        "semaphore, calls": {
            "threading.Semaphore": timed(CALLS, x=threading.Semaphore()),
            "fairlead Semaphore": timed(CALLS, x=sync.Semaphore()),
        },
        "async lock, async with": {
            "asyncio.Lock": timed_async(ASYNC_WITH, x=asyncio.Lock()),
            "fairlead Lock": timed_async(ASYNC_WITH, x=sync.Lock()),
        },
        "async rlock, async with": {
            "asyncio.Lock": timed_async(ASYNC_WITH, x=asyncio.Lock()),
            "fairlead RLock": timed_async(ASYNC_WITH, x=sync.RLock()),
            "fairlead RWLock.reading": timed_async(ASYNC_WITH, x=sync.RWLock().reading),
            "fairlead RWLock.writing": timed_async(ASYNC_WITH, x=sync.RWLock().writing),
        },
        "async lock, calls": {
            "asyncio.Lock": timed_async("await x.acquire(); x.release()", x=asyncio.Lock()),
            "fairlead Lock": timed_async("await x.acquire_async(); x.release()", x=sync.Lock()),
        },
        "simple queue": {
            "queue.SimpleQueue": timed(QUEUE, x=queue.SimpleQueue()),
            "fairlead SimpleQueue": timed(QUEUE, x=sync.SimpleQueue()),
            "fairlead Queue": timed(QUEUE, x=sync.Queue()),
        },
        "async queue": {
            "asyncio.Queue": timed_async("await x.put(1); await x.get()", x=asyncio.Queue()),
            "fairlead SimpleQueue": timed_async(ASYNC_QUEUE, x=sync.SimpleQueue()),
        },
    }
    if importlib.util.find_spec("aiologic"):
        import aiologic

        found["lock, with"]["aiologic.Lock"] = timed(WITH, x=aiologic.Lock())
        found["async lock, async with"]["aiologic.Lock"] = timed_async(ASYNC_WITH, x=aiologic.Lock())
        found["simple queue"]["aiologic.SimpleQueue"] = timed(
            "x.green_put(1); x.green_get()", x=aiologic.SimpleQueue()
        )
    return found


def main() -> None:
    parser = harness.peer_arguments(__doc__ or "", rounds=15)
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--beside", default="", metavar="MODULE", help="import it first, as trio or asyncio")
    parser.add_argument("--only", default="", help="questions whose name contains this")
    options = parser.parse_args()
    if options.beside:
        importlib.import_module(options.beside)
    asked = {question: found for question, found in questions().items() if options.only in question}
    harness.peers(asked, options, size=options.pairs, warm_up=options.pairs // 10)


if __name__ == "__main__":
    main()

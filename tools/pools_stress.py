"""Gives a pool tasks that fail, take too long, kill their worker or are cancelled, while workers are killed
from outside: every future must end exactly once, and nothing may be left.

    tools/pools_stress.py threads|processes|interpreters|async|dask|auto [--tasks 10000] [--seed N]

Prints the seed first and a line of JSON at the end; exit status 1 and the reason if a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import concurrent.futures
import gc
import json
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from fairlead import pools

PATIENCE_S = 60
WINDOW = 500
"""Tasks that have not ended, at most."""
MAY_DIE = {"processes", "dask"}

Outcome = dict[str, set[str]]
OUTCOMES: Outcome = {
    "work": {"result"},
    "fail": {"LookupError"},
    "spin": {"TaskTimeoutError"},
    "die": {"WorkerDiedError"},
    "unsendable": {"SerializationError"},
}
"""What each may come to, besides being cancelled, or being lost with a worker that was killed."""


def square(n: int) -> int:
    return n * n


async def square_slowly(n: int) -> int:
    await asyncio.sleep(0)
    return n * n


def fail(_: int) -> None:
    raise LookupError("as told")


def spin(_: int) -> None:
    while True:
        pass


def die(_: int) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def size(data: bytes) -> int:
    return len(data)


def left() -> dict[str, int]:
    """What this process has: threads, descriptors, children, mappings of shared memory, names of it,
    interpreters."""
    maps = Path("/proc/self/maps").read_text()
    interpreters = sys.modules.get("_interpreters")
    return {
        "threads": threading.active_count(),
        "descriptors": len(list(Path("/proc/self/fd").iterdir())),
        "children": len(multiprocessing.active_children()),
        "mappings": maps.count("memfd:fairlead"),
        "names": sum("fairlead" in path.name for path in Path("/dev/shm").iterdir()),
        "interpreters": len(interpreters.list_all()) if interpreters is not None else 1,
    }


class Killer:
    """Kills a worker process of the pool's now and then."""

    def __init__(self, kind: str, dice: random.Random) -> None:
        self.kills = 0
        self._able = kind == "processes"
        self._dice = dice

    def perhaps(self) -> None:
        if self._able and self._dice.random() < 0.004:
            children = multiprocessing.active_children()
            if children:
                victim = self._dice.choice(children)
                try:
                    victim.kill()
                except ValueError:
                    return  # it has just been closed
                self.kills += 1


def outcome(future: concurrent.futures.Future[Any]) -> str:
    if future.cancelled():
        return "cancelled"
    error = future.exception()
    return "result" if error is None else type(error).__name__


def submit(
    pool: Any, kind: str, what: str, number: int, dice: random.Random
) -> concurrent.futures.Future[Any]:
    retries = dice.randrange(2)
    if what == "spin":
        return pool.with_options(timeout=0.02, retries=retries).submit(spin, number)
    if what == "die":
        return pool.with_options(retries=retries).submit(die, number)
    if what == "fail":
        return pool.submit(fail, number)
    if what == "unsendable":
        return pool.submit(square, threading.Lock())
    if number % 97 == 0 and kind != "dask":
        return pool.submit(size, bytes(300_000))
    return pool.submit(square_slowly if kind == "async" and number % 2 else square, number)


def expected(number: int, kind: str) -> int:
    return 300_000 if number % 97 == 0 and kind != "dask" else number * number


def run(kind: str, tasks: int, dice: random.Random) -> dict[str, Any]:
    killer = Killer(kind, dice)
    ended: Counter[int] = Counter()
    found: Counter[str] = Counter()
    kinds = ["work", "fail", "spin"]
    weights = [900, 60, 2]
    if kind in MAY_DIE:
        kinds += ["die", "unsendable"]
        weights += [2 if kind == "processes" else 0, 10]
    pool = pools.pool(kind, 3, **({"interrupt": True} if kind == "threads" else {}))
    waiting: list[tuple[int, str, concurrent.futures.Future[Any]]] = []

    def settle(most: int) -> None:
        while len(waiting) > most:
            number, what, future = waiting.pop(0)
            concurrent.futures.wait([future], timeout=PATIENCE_S)
            if not future.done():
                raise SystemExit(f"task {number} ({what}) has not ended within {PATIENCE_S} s: {pool!r}")
            came = outcome(future)
            found[f"{what}: {came}"] += 1
            allowed = OUTCOMES[what] | {"cancelled"} | ({"WorkerDiedError"} if killer.kills else set())
            if came not in allowed:
                raise SystemExit(f"task {number} ({what}) came to {came}: {future!r}")
            if came == "result" and future.result() != expected(number, kind):
                raise SystemExit(f"task {number} returned {future.result()!r:.80}")

    for number in range(tasks):
        what = dice.choices(kinds, weights)[0]
        future = submit(pool, kind, what, number, dice)
        future.add_done_callback(lambda _, number=number: ended.update([number]))
        waiting.append((number, what, future))
        if dice.random() < 0.05:
            dice.choice(waiting)[2].cancel()
        killer.perhaps()
        settle(WINDOW)
    settle(0)
    del future
    until(lambda: len(ended) == tasks, "every future has called back")
    if set(ended.values()) != {1}:
        raise SystemExit(
            f"futures that ended more than once: {[n for n, times in ended.items() if times > 1]}"
        )
    pool.shutdown()
    numbers = pool.statistics()
    if numbers.queued or numbers.running:
        raise SystemExit(f"closed, and yet: {numbers}")
    return {"kind": kind, "tasks": tasks, "kills": killer.kills, "outcomes": dict(sorted(found.items())),
            "restarts": numbers.restarts}  # fmt: skip


def until(state: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not state():
        if time.monotonic() > deadline:
            raise SystemExit(f"it never came that {what}")
        time.sleep(0.01)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind")
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    with pools.pool(options.kind, 3) as first:  # what the standard library keeps from then on
        first.submit(square, 1).result()
    gc.collect()
    before = left()
    report = run(options.kind, options.tasks, random.Random(options.seed))
    gc.collect()

    def over() -> dict[str, int]:
        now = left()
        return {what: now[what] - before[what] for what in now if now[what] > before[what]}

    deadline = time.monotonic() + PATIENCE_S
    while over():
        if time.monotonic() > deadline:
            raise SystemExit(f"left behind: {over()}")
        gc.collect()
        time.sleep(0.05)
    print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())

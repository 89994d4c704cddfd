"""What primitives across processes cost: a pair in one process, and a round trip between two.

    python benchmarks/sync_shared.py [--rounds 9] [--only trip] [--quick] [--json FILE]

Peers: multiprocessing's Lock, Queue and SimpleQueue. A round trip is two messages of 32 bytes, to a process
that sends each back at once.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import harness

from fairlead.sync import shared

PAIRS, TRIPS = 100_000, 3_000
CONTEXT = multiprocessing.get_context("fork")
QUEUES: dict[str, Callable[[], Any]] = {
    "multiprocessing.Queue": CONTEXT.Queue,
    "multiprocessing.SimpleQueue": CONTEXT.SimpleQueue,
    "fairlead": shared.Queue,
    "fairlead, a task": shared.Queue,
}
LOCKS: dict[str, Callable[[], Any]] = {"multiprocessing.Lock": CONTEXT.Lock, "fairlead": shared.Lock}


def echo(there: Any, back: Any, times: int) -> None:
    for _ in range(times):
        back.put(there.get())


def trip(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        there, back, times = QUEUES[mode](), QUEUES[mode](), TRIPS // scale
        message, warm_up = b"x" * 32, times // 10
        process = CONTEXT.Process(target=echo, args=(there, back, times + warm_up))
        process.start()

        def go(count: int) -> None:
            for _ in range(count):
                there.put(message)
                back.get()

        async def go_async(count: int) -> None:
            for _ in range(count):
                await there.put_async(message)
                await back.get_async()

        async def measure() -> float:
            await go_async(warm_up)
            begin = time.perf_counter()
            await go_async(times)
            return time.perf_counter() - begin

        if "task" in mode:
            took = asyncio.run(measure())
        else:
            go(warm_up)
            begin = time.perf_counter()
            go(times)
            took = time.perf_counter() - begin
        process.join()
        return {"us": took / times * 1e6}

    return take


def pair(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        lock, times = LOCKS[mode](), PAIRS // scale
        acquire, release = lock.acquire, lock.release
        begin = time.process_time_ns()
        for _ in range(times):
            acquire()
            release()
        return {"CPU ns": (time.process_time_ns() - begin) / times}

    return take


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    rows = [
        harness.Row(
            "round trip between two processes",
            trip(scale),
            list(QUEUES),
            [
                harness.Target("us", "fairlead", at_most=12),
                harness.Target("us", "fairlead", at_most=0.18, of="multiprocessing.Queue"),
            ],
        ),
        harness.Row(
            "pair of a free lock",
            pair(scale),
            list(LOCKS),
            [harness.Target("CPU ns", "fairlead", at_most=1.25, of="multiprocessing.Lock")],
        ),
    ]
    harness.run(
        "What primitives across processes cost", [row for row in rows if options.only in row.name], options
    )


if __name__ == "__main__":
    main()

"""What queues cost: alone, from tasks to tasks, from a thread to a loop and back, and by how many threads.

    python benchmarks/sync_queue.py [--rounds 15] [--only pair] [--quick] [--json FILE]

All peers run in one process, one after another, round by round; figures are CPU time of the process per
object, but those of the scaling, which are times of the clock (the threads share the cores that there are).
asyncio.Queue, queue.Queue and queue.SimpleQueue come with Python; janus, culsans and aiologic are peers where
they are installed (pip install --group peers). Without a GIL the scaling over 1, 2 and 4 threads says whether
a contended lock or queue slows down with every thread; with one it says what switching costs.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import queue
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import harness

from fairlead import sync

Take = Callable[[str], dict[str, float]]
Both = tuple[Callable[[Any], Any], Callable[[], Any]]
"""put and get of a queue."""

PAIRS, OBJECTS, ROUND_TRIPS, HANDED = 50_000, 6_000, 2_000, 20_000


def has(library: str) -> bool:
    return importlib.util.find_spec(library) is not None


def in_threads() -> dict[str, Callable[[int], Both]]:
    """By name, what makes a queue of that maxsize for threads."""

    def of(kind: Any, put: str = "put", get: str = "get") -> Callable[[int], Both]:
        def make(maxsize: int) -> Both:
            line = kind(maxsize) if maxsize else kind()
            return getattr(line, put), getattr(line, get)

        return make

    found = {"queue.Queue": of(queue.Queue), "fairlead": of(sync.Queue)}
    found["fairlead fair"] = of(lambda maxsize=0: sync.Queue(maxsize, fair=True))
    if has("aiologic"):
        import aiologic

        found["aiologic"] = of(aiologic.Queue, "green_put", "green_get")
    return found


def in_tasks() -> dict[str, Callable[[int], Both]]:
    """By name, what makes a queue of that maxsize for tasks; called in the loop."""

    def of(kind: Any, put: str, get: str, face: str = "") -> Callable[[int], Both]:
        def make(maxsize: int) -> Both:
            line = kind(maxsize) if maxsize else kind()
            line = getattr(line, face) if face else line
            return getattr(line, put), getattr(line, get)

        return make

    found = {
        "asyncio.Queue": of(asyncio.Queue, "put", "get"),
        "fairlead": of(sync.Queue, "put_async", "get_async"),
        "fairlead fair": of(lambda maxsize=0: sync.Queue(maxsize, fair=True), "put_async", "get_async"),
    }
    if has("aiologic"):
        import aiologic

        found["aiologic"] = of(aiologic.Queue, "async_put", "async_get")
    if has("janus"):
        import janus

        found["janus"] = of(janus.Queue, "put", "get", "async_q")
    if has("culsans"):
        import culsans

        found["culsans"] = of(culsans.Queue, "put", "get", "async_q")
    return found


def shared() -> dict[str, Callable[[], tuple[Both, Both]]]:
    """By name, what makes a queue with a face for threads and one for tasks; called in the loop."""

    def ours() -> tuple[Both, Both]:
        line: sync.Queue[Any] = sync.Queue()
        return (line.put, line.get), (line.put_async, line.get_async)

    found: dict[str, Callable[[], tuple[Both, Both]]] = {"fairlead": ours}

    def faces(line: Any) -> tuple[Both, Both]:
        return (line.sync_q.put, line.sync_q.get), (line.async_q.put, line.async_q.get)

    if has("janus"):
        import janus

        found["janus"] = lambda: faces(janus.Queue())
    if has("culsans"):
        import culsans

        found["culsans"] = lambda: faces(culsans.Queue())
    if has("aiologic"):
        import aiologic

        def theirs() -> tuple[Both, Both]:
            line: Any = aiologic.Queue()
            return (line.green_put, line.green_get), (line.async_put, line.async_get)

        found["aiologic"] = theirs
    return found


def per_object(count: int, begin: int) -> dict[str, float]:
    return {"CPU ns": (time.process_time_ns() - begin) / count}


def pair(scale: int) -> Take:
    """put and get in one thread, with no other there."""
    makers, many = in_threads(), PAIRS // scale

    def take(mode: str) -> dict[str, float]:
        put, get = makers[mode](0)
        begin = time.process_time_ns()
        for _ in range(many):
            put(1)
            get()
        return per_object(many, begin)

    return take


def run(work: Callable[[], Coroutine[Any, Any, dict[str, float]]]) -> dict[str, float]:
    return asyncio.run(work())


def pair_in_a_task(scale: int) -> Take:
    makers, many = in_tasks(), PAIRS // scale

    def take(mode: str) -> dict[str, float]:
        async def work() -> dict[str, float]:
            put, get = makers[mode](0)
            begin = time.process_time_ns()
            for _ in range(many):
                await put(1)
                await get()
            return per_object(many, begin)

        return run(work)

    return take


def tasks_to_tasks(scale: int, maxsize: int) -> Take:
    """Four tasks put, four get, in one loop."""
    makers, many = in_tasks(), OBJECTS // scale

    def take(mode: str) -> dict[str, float]:
        async def work() -> dict[str, float]:
            put, get = makers[mode](maxsize)

            async def producer() -> None:
                for _ in range(many // 4):
                    await put(1)

            async def consumer() -> None:
                for _ in range(many // 4):
                    await get()

            begin = time.process_time_ns()
            await asyncio.gather(*(producer() for _ in range(4)), *(consumer() for _ in range(4)))
            return per_object(many, begin)

        return run(work)

    return take


def round_trips(scale: int) -> Take:
    """A thread puts and waits for the answer of a task."""
    makers, many = shared(), ROUND_TRIPS // scale

    def take(mode: str) -> dict[str, float]:
        async def work() -> dict[str, float]:
            (put, _), (_, get_async) = makers[mode]()
            (_, get_back), (put_back, _) = makers[mode]()
            clocked: list[float] = []

            def thread() -> None:
                begin = time.monotonic_ns()
                for number in range(many):
                    put(number)
                    get_back()
                clocked.append((time.monotonic_ns() - begin) / many)

            other = threading.Thread(target=thread)
            begin = time.process_time_ns()
            other.start()
            for _ in range(many):
                await put_back(await get_async())
            found = per_object(many, begin)
            await asyncio.to_thread(other.join)
            return {**found, "clock ns": clocked[0]}

        return run(work)

    return take


def scaling(scale: int, threads: int, body: Callable[[str], Callable[[int], None]]) -> Take:
    """The clock's time per operation, of all threads together."""
    many = HANDED // scale

    def take(mode: str) -> dict[str, float]:
        work = body(mode)
        gate = threading.Barrier(threads + 1)

        def one() -> None:
            gate.wait()
            work(many // threads)

        workers = [threading.Thread(target=one) for _ in range(threads)]
        for worker in workers:
            worker.start()
        gate.wait()
        begin = time.monotonic_ns()
        for worker in workers:
            worker.join()
        return {"clock ns": (time.monotonic_ns() - begin) / many}

    return take


def contended_queue(mode: str) -> Callable[[int], None]:
    """Every thread puts one and gets one, of the same queue."""
    put, get = in_threads()[mode](0)

    def work(many: int) -> None:
        for number in range(many):
            put(number)
            get()

    return work


def contended_lock(mode: str) -> Callable[[int], None]:
    lock: Any = {"threading.Lock": threading.Lock, "fairlead": sync.Lock}[mode]()

    def work(many: int) -> None:
        for _ in range(many):
            with lock:
                pass

    return work


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=15)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options: argparse.Namespace = parser.parse_args()
    scale = 50 if options.quick else 1
    target = harness.Target
    threads, tasks = list(in_threads()), list(in_tasks())
    rows = [
        harness.Row(
            "pair in a thread",
            pair(scale),
            threads,
            [target("CPU ns", "fairlead", at_most=0.2, of="queue.Queue")],
        ),
        harness.Row(
            "pair in a task",
            pair_in_a_task(scale),
            tasks,
            [target("CPU ns", "fairlead", at_most=1, of="asyncio.Queue")],
        ),
        *(
            harness.Row(
                f"tasks to tasks, maxsize {maxsize}",
                tasks_to_tasks(scale, maxsize),
                tasks,
                [target("CPU ns", "fairlead", at_most=1, of="asyncio.Queue")],
            )
            for maxsize in (0, 100, 10, 2, 1)
        ),
        harness.Row("thread to task and back", round_trips(scale), list(shared())),
        *(
            harness.Row(f"one queue, {count} threads", scaling(scale, count, contended_queue), threads)
            for count in (1, 2, 4)
        ),
        *(
            harness.Row(
                f"one lock, {count} threads",
                scaling(scale, count, contended_lock),
                ["threading.Lock", "fairlead"],
            )
            for count in (1, 2, 4)
        ),
    ]
    gil = "with" if getattr(sys, "_is_gil_enabled", lambda: True)() else "without"
    harness.run(f"What queues cost ({gil} a GIL)", [r for r in rows if options.only in r.name], options)


if __name__ == "__main__":
    main()

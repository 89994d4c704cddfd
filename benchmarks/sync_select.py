"""What it costs to wait for the first of two things, and to take that one.

    python benchmarks/sync_select.py [--rounds 9] [--only tasks] [--quick] [--json FILE]

Ready: one of two queues has an object. Peer: get_nowait of one queue.Queue, then of the other.
Turns: two threads, or two tasks, of which one answers what comes by either of two queues. Peers: queue.Queue
asked in turns with a time-out of 1 ms, for threads; two tasks with asyncio.wait(FIRST_COMPLETED), a task
group of anyio and a nursery of trio that the first one cancels, for tasks. (These may lose what the second
has taken when it is cancelled; the questions here come one at a time.)
Without room: the same with two channels of no room, where asker and answerer select.
CPU ns is CPU time of the process per object, us how long one takes.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import harness
import trio

from fairlead import sync

READY, TURNS = 50_000, 4_000


def per_object(count: int, cpu_begin: int, begin: int) -> dict[str, float]:
    return {
        "CPU ns": (time.process_time_ns() - cpu_begin) / count,
        "us": (time.perf_counter_ns() - begin) / count / 1000,
    }


def ready(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = READY // scale
        if mode == "fairlead":
            ours = [sync.Queue[int](), sync.Queue[int]()]
            put: Callable[[int], Any] = ours[1].put

            def get() -> Any:
                return sync.select(ours[0].get_async(), ours[1].get_async())
        else:
            theirs: list[queue.Queue[int]] = [queue.Queue(), queue.Queue()]
            put = theirs[1].put

            def get() -> Any:
                for one in theirs:
                    try:
                        return one.get_nowait()
                    except queue.Empty:
                        continue
                raise AssertionError

        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        for number in range(many):
            put(number)
            get()
        return per_object(many, cpu_begin, begin)

    return take


def threads(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = TURNS // scale // (20 if mode == "get(timeout=0.001)" else 1) + 1
        if mode == "fairlead":
            ours, back = [sync.Queue[int](), sync.Queue[int]()], sync.Queue[int]()
            put: list[Callable[[int], Any]] = [one.put for one in ours]
            answer, hear = back.put, back.get

            def get() -> int:
                return sync.select(*(one.get_async() for one in ours)).value  # type: ignore[union-attr,no-any-return]
        else:
            theirs: list[queue.Queue[int]] = [queue.Queue(), queue.Queue()]
            reply: queue.Queue[int] = queue.Queue()
            put = [one.put for one in theirs]
            answer, hear = reply.put, reply.get

            def get() -> int:
                while True:
                    for one in theirs:
                        try:
                            return one.get(timeout=0.001)
                        except queue.Empty:
                            continue

        def serve() -> None:
            for _ in range(many):
                answer(get())

        thread = threading.Thread(target=serve)
        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        thread.start()
        for number in range(many):
            put[number % 2](number)
            hear()
        figures = per_object(many, cpu_begin, begin)
        thread.join()
        return figures

    return take


def threads_without_room(scale: int) -> Callable[[str], dict[str, float]]:
    """There is no peer but the same with room."""

    def take(mode: str) -> dict[str, float]:
        many = TURNS // scale
        room = 0 if mode == "fairlead" else 1
        lines, (answer, hear) = [sync.channel(room) for _ in range(2)], sync.channel(room)

        def serve() -> None:
            for _ in range(many):
                found = sync.select(*(receiver.receive_async() for _, receiver in lines))
                answer.send(found.value)  # type: ignore[union-attr]

        thread = threading.Thread(target=serve)
        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        thread.start()
        for number in range(many):
            sync.select(*(sender.send_async(number) for sender, _ in lines))
            hear.receive()
        figures = per_object(many, cpu_begin, begin)
        thread.join()
        return figures

    return take


async def asyncio_first(gets: list[Callable[[], Awaitable[int]]]) -> int:
    waits = [asyncio.ensure_future(get()) for get in gets]
    done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in pending:
        one.cancel()
    return done.pop().result()


async def anyio_first(gets: list[Callable[[], Awaitable[int]]]) -> int:
    found: list[int] = []

    async def race(get: Callable[[], Awaitable[int]]) -> None:
        found.append(await get())
        group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for get in gets:
            group.start_soon(race, get)
    return found[0]


async def trio_first(gets: list[Callable[[], Awaitable[int]]]) -> int:
    found: list[int] = []

    async def race(get: Callable[[], Awaitable[int]]) -> None:
        found.append(await get())
        nursery.cancel_scope.cancel()

    async with trio.open_nursery() as nursery:
        for get in gets:
            nursery.start_soon(race, get)
    return found[0]


async def turns(
    many: int,
    puts: list[Callable[[int], Awaitable[Any]]],
    answer: Callable[[int], Awaitable[Any]],
    hear: Callable[[], Awaitable[Any]],
    first: Callable[[], Awaitable[int]],
    together: Callable[..., Awaitable[Any]],
) -> dict[str, float]:
    async def serve() -> None:
        for _ in range(many):
            await answer(await first())

    async def ask() -> None:
        for number in range(many):
            await puts[number % 2](number)
            await hear()

    cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
    await together(serve, ask)
    return per_object(many, cpu_begin, begin)


async def gather(*functions: Callable[[], Awaitable[None]]) -> None:
    await asyncio.gather(*(function() for function in functions))


async def nursery_of(*functions: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(function)


def tasks(scale: int) -> Callable[[str], dict[str, float]]:
    many = TURNS // scale

    async def in_asyncio() -> dict[str, float]:
        lines: list[asyncio.Queue[int]] = [asyncio.Queue() for _ in range(2)]
        back: asyncio.Queue[int] = asyncio.Queue()
        gets: list[Callable[[], Awaitable[int]]] = [one.get for one in lines]
        puts: list[Callable[[int], Awaitable[Any]]] = [one.put for one in lines]
        return await turns(many, puts, back.put, back.get, lambda: asyncio_first(gets), gather)

    async def in_anyio() -> dict[str, float]:
        lines = [anyio.create_memory_object_stream[int](10) for _ in range(2)]
        answer, hear = anyio.create_memory_object_stream[int](10)
        gets: list[Callable[[], Awaitable[int]]] = [one.receive for _, one in lines]
        puts: list[Callable[[int], Awaitable[Any]]] = [one.send for one, _ in lines]
        figures = await turns(many, puts, answer.send, hear.receive, lambda: anyio_first(gets), gather)
        for end in (*lines[0], *lines[1], answer, hear):
            end.close()
        return figures

    async def in_trio() -> dict[str, float]:
        lines: list[Any] = [trio.open_memory_channel(10) for _ in range(2)]
        answer, hear = trio.open_memory_channel[int](10)
        gets: list[Callable[[], Awaitable[int]]] = [one.receive for _, one in lines]
        puts: list[Callable[[int], Awaitable[Any]]] = [one.send for one, _ in lines]
        return await turns(many, puts, answer.send, hear.receive, lambda: trio_first(gets), nursery_of)

    async def with_select(together: Callable[..., Awaitable[Any]]) -> dict[str, float]:
        lines, back = [sync.Queue[int]() for _ in range(2)], sync.Queue[int]()
        puts: list[Callable[[int], Awaitable[Any]]] = [one.put_async for one in lines]

        async def first() -> int:
            return (await sync.select_async(*(one.get_async() for one in lines))).value  # type: ignore[no-any-return]

        return await turns(many, puts, back.put_async, back.get_async, first, together)

    def take(mode: str) -> dict[str, float]:
        if mode == "trio's nursery":
            return trio.run(in_trio)
        if mode == "fairlead in trio":
            return trio.run(with_select, nursery_of)
        coroutine = {"asyncio.wait": in_asyncio, "anyio's group": in_anyio}.get(mode)
        return asyncio.run(coroutine() if coroutine is not None else with_select(gather))

    return take


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 40 if options.quick else 1

    def at_most(multiple: float, of: str, mode: str = "fairlead") -> list[harness.Target]:
        return [harness.Target(figure, mode, at_most=multiple, of=of) for figure in ("CPU ns", "us")]

    rows = [
        harness.Row("ready, a thread", ready(scale), ["get_nowait", "fairlead"], at_most(0.5, "get_nowait")),
        harness.Row(
            "turns of threads",
            threads(scale),
            ["get(timeout=0.001)", "fairlead"],
            at_most(0.5, "get(timeout=0.001)"),
        ),
        harness.Row(
            "turns of threads, without room", threads_without_room(scale), ["room for one", "fairlead"]
        ),
        harness.Row(
            "turns of tasks",
            tasks(scale),
            ["asyncio.wait", "anyio's group", "trio's nursery", "fairlead in trio", "fairlead"],
            at_most(0.5, "asyncio.wait")
            + at_most(0.5, "anyio's group")
            + at_most(0.5, "trio's nursery", "fairlead in trio"),
        ),
    ]
    harness.run(
        "What does it cost to wait for the first of two?",
        [row for row in rows if options.only in row.name],
        options,
    )


if __name__ == "__main__":
    main()

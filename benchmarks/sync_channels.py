"""What channels cost: to send and receive, and to send to many.

    python benchmarks/sync_channels.py [--rounds 9] [--only tasks] [--quick] [--json FILE]

Peers: queue.Queue for threads; asyncio.Queue, anyio's memory streams and trio's memory channels for tasks.
To many: ten receivers in one loop, against an asyncio.Queue for each.
Without room: who sends waits until it is received. Peers: the same of a lock and a condition, for threads;
anyio's and trio's streams of size 0, for tasks.
Figures are CPU time of the process per object received.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
import harness
import trio

from fairlead import sync

PAIRS, OBJECTS, MEETINGS, CAST, RECEIVERS = 50_000, 8_000, 4_000, 1_000, 10


def per_object(count: int, begin: int) -> dict[str, float]:
    return {"CPU ns": (time.process_time_ns() - begin) / count}


def pair(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = PAIRS // scale
        if mode == "fairlead":
            sender, receiver = sync.channel(10)
            put, get = sender.send, receiver.receive
        else:
            line: queue.Queue[int] = queue.Queue(10)
            put, get = line.put, line.get
        begin = time.process_time_ns()
        for _ in range(many):
            put(1)
            get()
        return per_object(many, begin)

    return take


class ByCondition:
    """A rendezvous as one makes it of a lock and a condition."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._offered: list[Any] = []
        self._taken = 0
        self._given = 0

    def send(self, item: Any) -> None:
        with self._changed:
            mine = self._given
            self._given += 1
            self._offered.append(item)
            self._changed.notify_all()
            while self._taken <= mine:
                self._changed.wait()

    def receive(self) -> Any:
        with self._changed:
            while not self._offered:
                self._changed.wait()
            self._taken += 1
            self._changed.notify_all()
            return self._offered.pop(0)


def meet(scale: int) -> Callable[[str], dict[str, float]]:
    """One thread sends, another receives, and nothing is kept in between."""

    def take(mode: str) -> dict[str, float]:
        many = MEETINGS // scale
        if mode == "fairlead":
            sender, receiver = sync.channel(0)
            put, get = sender.send, receiver.receive
        else:
            line = ByCondition()
            put, get = line.send, line.receive

        def send() -> None:
            for number in range(many):
                put(number)

        thread = threading.Thread(target=send)
        begin, started = time.process_time_ns(), time.perf_counter_ns()
        thread.start()
        for _ in range(many):
            get()
        thread.join()
        figures = per_object(many, begin)
        figures["us"] = (time.perf_counter_ns() - started) / many / 1000
        return figures

    return take


def tasks(scale: int, room: int) -> Callable[[str], dict[str, float]]:
    """One task sends, another receives until the channel is closed."""

    def take(mode: str) -> dict[str, float]:
        many = OBJECTS // scale

        async def of_asyncio(put: Callable[[int], Any], get: Callable[[], Any]) -> None:
            async def send() -> None:
                for number in range(many):
                    await put(number)

            task = asyncio.ensure_future(send())
            for _ in range(many):
                await get()
            await task

        async def work() -> dict[str, float]:
            begin = time.process_time_ns()
            if mode == "asyncio.Queue":
                line: asyncio.Queue[int] = asyncio.Queue(10)
                await of_asyncio(line.put, line.get)
            elif mode == "anyio":
                send, receive = anyio.create_memory_object_stream[int](room)
                with send, receive:
                    await of_asyncio(send.send, receive.receive)
            elif mode == "fairlead":
                sender, receiver = sync.channel(room)
                await of_asyncio(sender.send_async, receiver.receive_async)
            else:
                await in_trio(mode)
            return per_object(many, begin)

        async def in_trio(mode: str) -> None:
            if mode == "trio":
                opened = trio.open_memory_channel[int](room)
                put, get = opened[0].send, opened[1].receive
            else:
                sender, receiver = sync.channel(room)
                put, get = sender.send_async, receiver.receive_async

            async def send() -> None:
                for number in range(many):
                    await put(number)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(send)
                for _ in range(many):
                    await get()

        return trio.run(work) if "trio" in mode else asyncio.run(work())

    return take


def cast(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = max(10, CAST // scale)

        async def consume(get: Callable[[], Coroutine[Any, Any, int]]) -> None:
            for _ in range(many):
                await get()

        async def work() -> dict[str, float]:
            begin = time.process_time_ns()
            if mode == "fairlead":
                sender, receiver = sync.broadcast(many)
                ends = [receiver.clone() for _ in range(RECEIVERS)]
                gets: list[Any] = [end.receive_async for end in ends]
                puts: list[Any] = [sender.send]
            else:
                lines: list[asyncio.Queue[int]] = [asyncio.Queue() for _ in range(RECEIVERS)]
                gets, puts = [line.get for line in lines], [line.put_nowait for line in lines]
            listening = [asyncio.ensure_future(consume(get)) for get in gets]
            for number in range(many):
                for put in puts:
                    put(number)
                if number % 10 == 0:
                    await asyncio.sleep(0)
            await asyncio.gather(*listening)
            return per_object(many * RECEIVERS, begin)

        return asyncio.run(work())

    return take


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    target = harness.Target
    rows = [
        harness.Row(
            "pair in a thread",
            pair(scale),
            ["queue.Queue", "fairlead"],
            [target("CPU ns", "fairlead", at_most=0.2, of="queue.Queue")],
        ),
        harness.Row(
            "task to task",
            tasks(scale, 10),
            ["asyncio.Queue", "anyio", "fairlead", "trio", "fairlead in trio"],
            [
                target("CPU ns", "fairlead", at_most=1, of="asyncio.Queue"),
                target("CPU ns", "fairlead", at_most=0.5, of="anyio"),
                target("CPU ns", "fairlead in trio", at_most=1, of="trio"),
            ],
        ),
        harness.Row(
            "no room, thread to thread",
            meet(scale),
            ["lock and condition", "fairlead"],
            [
                target("CPU ns", "fairlead", at_most=0.5, of="lock and condition"),
                target("us", "fairlead", at_most=1, of="lock and condition"),
            ],
        ),
        harness.Row(
            "no room, task to task",
            tasks(scale, 0),
            ["anyio", "fairlead", "trio", "fairlead in trio"],
            [
                target("CPU ns", "fairlead", at_most=0.5, of="anyio"),
                target("CPU ns", "fairlead in trio", at_most=2, of="trio"),
            ],
        ),
        harness.Row(
            "one to ten receivers",
            cast(scale),
            ["asyncio.Queue each", "fairlead"],
            [target("CPU ns", "fairlead", at_most=1, of="asyncio.Queue each")],
        ),
    ]
    harness.run("What channels cost", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()

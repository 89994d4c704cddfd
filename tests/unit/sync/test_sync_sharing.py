"""Threads, tasks of asyncio and of trio at one primitive: what excludes excludes, what is put is got once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import trio
from waiting import Thread, run

from fairlead.errors import QueueEmpty, QueueFull
from fairlead.sync import (
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RLock,
    RWLock,
    Semaphore,
    SimpleQueue,
    channel,
)

pytestmark = pytest.mark.ends_and_free

LOCKS: dict[str, tuple[Callable[[], Any], str]] = {
    "Lock": (Lock, ""),
    "fair Lock": (lambda: Lock(fair=True), ""),
    "Lock that breaks": (lambda: Lock(on_owner_death="break"), ""),
    "RLock": (RLock, ""),
    "fair RLock": (lambda: RLock(fair=True), ""),
    "RWLock.writing": (RWLock, "writing"),
    "RWLock.upgradable": (RWLock, "upgradable"),
    "Semaphore": (Semaphore, ""),
    "fair BoundedSemaphore": (lambda: BoundedSemaphore(fair=True), ""),
    "CapacityLimiter": (lambda: CapacityLimiter(1), ""),
    "Condition": (Condition, ""),
}


@pytest.mark.parametrize(("make", "view"), LOCKS.values(), ids=LOCKS.keys())
def test_block_excludes_threads_and_tasks_of_two_libraries(make: Callable[[], Any], view: str) -> None:
    lock, inside, turns = make(), [0], 40

    def block() -> Any:
        return getattr(lock, view) if view else lock

    def thread() -> None:
        for _ in range(turns):
            with block():
                seen = inside[0]
                inside[0] = seen + 1

    async def task(checkpoint: Callable[[], Any]) -> None:
        for _ in range(turns):
            async with block():
                seen = inside[0]
                await checkpoint()
                inside[0] = seen + 1

    async def in_asyncio() -> None:
        await asyncio.gather(*(task(lambda: asyncio.sleep(0)) for _ in range(2)))

    async def in_trio() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task, trio.lowlevel.checkpoint)
            nursery.start_soon(task, trio.lowlevel.checkpoint)

    before = lock.statistics()
    for one in [Thread(thread), Thread(run, in_asyncio()), Thread(trio.run, in_trio), Thread(thread)]:
        one.result()
    assert inside == [6 * turns]
    assert lock.statistics() == before


@pytest.mark.parametrize(("make", "view"), LOCKS.values(), ids=LOCKS.keys())
def test_block_is_left_when_its_body_raises(make: Callable[[], Any], view: str) -> None:
    lock = make()
    before = lock.statistics()

    def block() -> Any:
        return getattr(lock, view) if view else lock

    def body() -> None:
        assert lock.statistics() != before
        raise KeyError

    async def fails() -> None:
        async with block():
            body()

    with pytest.raises(KeyError), block():
        body()
    for how in (lambda: run(fails()), lambda: trio.run(fails)):
        with pytest.raises(KeyError):
            how()
    assert lock.statistics() == before


class Line:
    """A queue or a channel, and its four calls; it keeps the ends of a channel open."""

    def __init__(self, made: Any) -> None:
        self.made = made
        putting, getting = made if isinstance(made, tuple) else (made, made)
        names = ("send", "receive") if isinstance(made, tuple) else ("put", "get")
        self.put, self.put_async = getattr(putting, names[0]), getattr(putting, f"{names[0]}_async")
        self.get, self.get_async = getattr(getting, names[1]), getattr(getting, f"{names[1]}_async")


LINES: dict[str, Callable[[], Any]] = {
    "SimpleQueue": SimpleQueue,
    "Queue": lambda: Queue(3),
    "fair Queue": lambda: Queue(3, fair=True),
    "LifoQueue": lambda: LifoQueue(3),
    "PriorityQueue": lambda: PriorityQueue(3),
    "channel": channel,
    "channel(1)": lambda: channel(1),
    "channel(0)": lambda: channel(0),
}
EACH = 40
END = (3, 0)
"""What a getter goes at; it is greater than what the three putters put."""


@pytest.mark.parametrize("make", LINES.values(), ids=LINES.keys())
def test_what_is_put_is_got_once_and_in_order_though_many_give_up_meanwhile(make: Callable[[], Any]) -> None:
    line, ordered = (
        Line(make()),
        make not in {LINES["LifoQueue"], LINES["PriorityQueue"], LINES["channel(0)"]},
    )
    dice = random.Random(411)
    seconds = [dice.choice([1e-5, 1e-4, 1e-2]) for _ in range(97)]

    def put() -> None:
        for number in range(EACH):
            while True:
                with suppress(QueueFull):
                    line.put((0, number), timeout=seconds[number])
                    break

    async def put_in_asyncio() -> None:
        for number in range(EACH):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds[number]):
                        await line.put_async((1, number))
                    break

    async def put_in_trio() -> None:
        for number in range(EACH):
            while True:
                with trio.move_on_after(seconds[number]) as scope:
                    await line.put_async((2, number))
                if not scope.cancelled_caught:
                    break

    def get() -> list[Any]:
        got: list[Any] = []
        while END not in got[-1:]:
            with suppress(QueueEmpty):
                got.append(line.get(timeout=seconds[len(got) % 97]))
        return got

    async def get_in_asyncio() -> list[Any]:
        got: list[Any] = []
        while END not in got[-1:]:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds[len(got) % 97]):
                    got.append(await line.get_async())
        return got

    async def get_in_trio() -> list[Any]:
        got: list[Any] = []
        while END not in got[-1:]:
            with trio.move_on_after(seconds[len(got) % 97]):
                got.append(await line.get_async())
        return got

    getters = [Thread(get), Thread(run, get_in_asyncio()), Thread(trio.run, get_in_trio)]
    for putter in [Thread(put), Thread(run, put_in_asyncio()), Thread(trio.run, put_in_trio)]:
        putter.result()
    for _ in getters:
        line.put(END)
    got = [getter.result()[:-1] for getter in getters]
    left = []
    with suppress(QueueEmpty):
        while True:
            left.append(line.get(False))
    assert sorted([*left, *(one for mine in got for one in mine)]) == [
        (me, number) for me in range(3) for number in range(EACH)
    ]
    for mine in got if ordered else ():
        assert all(
            [one for one in mine if one[0] == me] == sorted(one for one in mine if one[0] == me)
            for me in range(3)
        )

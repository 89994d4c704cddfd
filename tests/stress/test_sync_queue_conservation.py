"""Threads, tasks of several loops, time-outs, cancellations, resizes at random: objects are conserved."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from typing import Any

import pytest
from waiting import Thread

from fairlead.errors import QueueEmpty, QueueFull, QueueShutDown
from fairlead.sync import LifoQueue, PriorityQueue, Queue

pytestmark = pytest.mark.ends_and_free


class Ranked(tuple[int, ...]):
    """A comparison in Python, in which other threads come to run."""

    def __lt__(self, other: tuple[int, ...]) -> bool:
        return tuple(self) < tuple(other)


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
@pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])
def test_objects_are_conserved(kind: type[Any], fair: bool) -> None:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)  # shown when the test fails
    line, many = kind(2, fair=fair), 80
    put: Counter[tuple[int, ...]] = Counter()
    got: Counter[tuple[int, ...]] = Counter()
    lock = threading.Lock()

    def note(where: Counter[tuple[int, ...]], thing: tuple[int, ...]) -> None:
        with lock:
            where[thing] += 1

    def producer(me: int) -> None:
        dice = random.Random(f"{seed} producer {me}")
        for number in range(many):
            thing = Ranked((dice.randrange(5), me, number))
            try:
                line.put(thing, timeout=dice.choice([None, 0, 1e-5, 1e-3]))
            except QueueFull:
                continue
            note(put, thing)

    def consumer(me: int) -> None:
        dice = random.Random(f"{seed} consumer {me}")
        while True:
            try:
                thing = line.get(timeout=dice.choice([None, 0, 1e-5]))
            except QueueEmpty:
                continue
            except QueueShutDown:
                return
            note(got, thing)
            line.task_done()

    async def producing(me: int, dice: random.Random) -> None:
        for number in range(many):
            thing = Ranked((dice.randrange(5), me, number))
            try:
                async with asyncio.timeout(dice.choice([None, 0, 1e-4])):
                    await line.put_async(thing)
            except TimeoutError:
                continue
            note(put, thing)

    async def consuming(dice: random.Random) -> None:
        while True:
            try:
                async with asyncio.timeout(dice.choice([None, 0, 1e-4])):
                    thing = await line.get_async()
            except TimeoutError:
                continue
            except QueueShutDown:
                return
            note(got, thing)
            line.task_done()

    async def loop(me: int) -> None:
        """Producers, consumers, and getters that are cancelled as soon as they wait."""
        dice = random.Random(f"{seed} loop {me}")
        ends = [asyncio.ensure_future(consuming(dice)) for _ in range(2)]
        sources = [asyncio.ensure_future(producing(100 * me + one, dice)) for one in range(2)]
        while not all(one.done() for one in sources):
            victim = asyncio.ensure_future(get_once())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            victim.cancel()
            await asyncio.wait([victim])
            if dice.random() < 0.1:
                line.resize(dice.randint(1, 3))
        await asyncio.gather(*sources)
        done.release()
        await asyncio.gather(*ends)

    async def get_once() -> None:
        thing = await line.get_async()
        note(got, thing)
        line.task_done()

    done = threading.Semaphore(0)
    ends = [Thread(consumer, me) for me in range(2)]
    loops = [Thread(lambda me=me: asyncio.run(loop(me))) for me in (1, 2)]
    for one in [Thread(producer, me) for me in range(2)]:
        one.result()
    for _ in loops:
        assert done.acquire(timeout=40)
    assert line.join(40)
    line.shutdown()
    for one in [*ends, *loops]:
        one.result()
    assert got == put
    assert max(got.values()) == 1
    assert line.statistics()[2:7] == (0, 0, 0, 0, True)
    assert line.empty()

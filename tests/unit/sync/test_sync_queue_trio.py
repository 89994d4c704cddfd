"""Queues in trio: cancelled and shielded scopes, shutdown, and threads and asyncio beside it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from waiting import Thread

from fairlead import errors
from fairlead.sync import LifoQueue, PriorityQueue, Queue

trio = pytest.importorskip("trio")
fairness = pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])


async def until_trio(state: Any) -> None:
    with trio.fail_after(40):
        while not state():
            await trio.lowlevel.checkpoint()


@fairness
def test_get_cancelled_after_an_object_came_loses_nothing_and_keeps_the_order(fair: bool) -> None:
    async def main() -> None:
        line, got = Queue(fair=fair), []
        scopes = [trio.CancelScope() for _ in range(3)]

        async def getter(me: int) -> None:
            with scopes[me]:
                got.append((me, await line.get_async()))

        async with trio.open_nursery() as nursery:
            for me in range(3):
                nursery.start_soon(getter, me)
                await until_trio(lambda me=me: line.statistics().getting == me + 1)
            for number in range(3):
                line.put(number)
            scopes[0].cancel()
            scopes[1].cancel()
        assert got == [(2, 0)]
        assert [line.get_nowait() for _ in range(line.qsize())] == [1, 2]

    trio.run(main)


@fairness
def test_put_cancelled_after_room_came_puts_nothing_and_the_next_gets_the_room(fair: bool) -> None:
    async def main() -> None:
        line = Queue(1, fair=fair)
        line.put(0)
        scopes = [trio.CancelScope() for _ in range(3)]

        async def putter(me: int) -> None:
            with scopes[me]:
                await line.put_async(me + 1)

        async with trio.open_nursery() as nursery:
            for me in range(3):
                nursery.start_soon(putter, me)
                await until_trio(lambda me=me: line.statistics().putting == me + 1)
            assert line.get_nowait() == 0
            scopes[0].cancel()
            scopes[2].cancel()
        assert [line.get_nowait() for _ in range(line.qsize())] == [2]
        assert line.statistics()[:4] == (0, 1, 0, 0)

    trio.run(main)


@pytest.mark.parametrize("kind", [Queue, LifoQueue, PriorityQueue])
def test_timeouts_leave_nothing_behind_and_a_shielded_wait_is_not_cancelled(kind: Any) -> None:
    async def main() -> None:
        line, got = kind(1), []
        for _ in range(50):
            with trio.move_on_after(0) as scope:
                await line.get_async()
            assert scope.cancelled_caught
        line.put(1)
        for _ in range(50):
            with pytest.raises(trio.TooSlowError), trio.fail_after(1e-5):
                await line.put_async(2)
        assert line.statistics()[:4] == (1, 1, 0, 0)
        line.get()

        async def getter() -> None:
            with trio.CancelScope(shield=True):
                got.append(await line.get_async())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(getter)
            await until_trio(lambda: line.statistics().getting == 1)
            nursery.cancel_scope.cancel()
            Thread(line.put, "thing").result()
        assert got == ["thing"]

    trio.run(main)


@pytest.mark.parametrize("immediate", [False, True])
def test_shutdown_wakes_getters_putters_and_joiners(immediate: bool) -> None:
    async def main() -> None:
        empty, full, told = Queue(), Queue(1), []
        full.put(1)

        async def task(awaitable: Any) -> None:
            with pytest.raises(errors.QueueShutDown):
                await awaitable
            told.append(1)

        async with trio.open_nursery() as nursery:
            for awaitable in (empty.get_async(), empty.peek_async(), full.put_async(2)):
                nursery.start_soon(task, awaitable)
            joiner = Thread(trio.run, _join, full)
            await until_trio(lambda: (empty.statistics().getting, *full.statistics()[3:5]) == (2, 1, 1))
            Thread(empty.shutdown, immediate).result()
            full.shutdown(immediate)
        assert told == [1, 1, 1]
        if not immediate:
            assert full.get_nowait() == 1
            full.task_done()
        joiner.result()

    trio.run(main)


async def _join(line: Queue[Any]) -> None:
    await line.join_async()


def test_run_that_ends_with_a_getter_and_a_putter_loses_nothing() -> None:
    empty, full = Queue(), Queue(1)
    full.put(1)

    async def main() -> None:
        async with trio.open_nursery() as nursery:

            async def get() -> None:
                await empty.get_async()

            async def put() -> None:
                await full.put_async(2)

            nursery.start_soon(get)
            nursery.start_soon(put)
            await until_trio(lambda: empty.statistics().getting == full.statistics().putting == 1)
            empty.put("thing")
            assert full.get_nowait() == 1
            nursery.cancel_scope.cancel()

    trio.run(main)
    assert empty.get_nowait() == "thing"
    full.put_nowait(3)
    assert full.statistics()[:4] == (1, 1, 0, 0)


def test_trio_asyncio_and_threads_hand_objects_round() -> None:
    lines = [Queue(1) for _ in range(3)]

    async def in_trio() -> None:
        for _ in range(100):
            await lines[1].put_async(await lines[0].get_async() + 1)

    async def in_asyncio() -> None:
        for _ in range(100):
            await lines[2].put_async(await lines[1].get_async() + 1)

    def in_a_thread() -> list[int]:
        got = []
        for number in range(100):
            lines[0].put(number)
            got.append(lines[2].get())
        return got

    ends = [Thread(trio.run, in_trio), Thread(lambda: asyncio.run(in_asyncio()))]
    assert Thread(in_a_thread).result() == list(range(2, 102))
    for one in ends:
        one.result()

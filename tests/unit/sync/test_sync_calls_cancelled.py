"""A wait of a task that is cancelled, or whose loop is closed, in the moment of the grant: each row of
tests/support/blockingcalls.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import trio
from blocked import Blocked
from blockingcalls import Call, each
from endings import collect, loop_with, queued, until_trio
from waiting import Thread, run, until, until_async

from fairlead.sync import Event, select_async

pytestmark = [pytest.mark.pypy, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


@pytest.mark.parametrize("moment", ["at once", "when its future is done"])
@each(lambda call: call.passes)
def test_task_that_was_granted_and_is_cancelled_before_it_resumes_passes_that_on(
    call: Call, moment: str
) -> None:
    async def main() -> None:
        blocked = call.make(1 if call.alone else 2)
        first = await queued(blocked)
        second = None if call.alone else await queued(blocked, 1)
        blocked.end()
        if moment != "at once":
            await until_async(lambda: first._fut_waiter is None or first._fut_waiter.done())  # type: ignore[attr-defined]
        first.cancel()
        try:
            value = await first
        except asyncio.CancelledError:
            assert not call.final
        else:
            assert blocked.got(value)
            if second is None:
                return
            if call.each:
                blocked.end()
        assert blocked.got(blocked.take() if second is None else await second)
        assert blocked.waiting() == 0

    run(main())


@each(lambda call: not call.alone)
def test_task_of_trio_that_was_granted_and_is_cancelled_passes_that_on(call: Call) -> None:
    async def main() -> None:
        blocked, got, scope = call.make(2), [], trio.CancelScope()

        async def first() -> None:
            with scope:
                got.append(await blocked.take_async())
                if call.each:
                    blocked.end()

        async def second() -> None:
            got.append(await blocked.take_async())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await until_trio(lambda: blocked.waiting() == 1)
            nursery.start_soon(second)
            await until_trio(lambda: blocked.waiting() == 2)
            blocked.end()
            scope.cancel()
        assert [blocked.got(value) for value in got] == [True] * (1 + call.final)
        assert blocked.waiting() == 0

    trio.run(main)


def alone(blocked: Blocked) -> Any:
    return blocked.wait_async()


async def selected(blocked: Blocked) -> Any:
    return (await select_async(Event().wait_async(), blocked.wait_async())).value


each_way = pytest.mark.parametrize("take", [alone, selected])
in_both_orders = pytest.mark.parametrize("first", ["it is cancelled", "the other comes"])


@in_both_orders
@each_way
@each(lambda call: call.final)
def test_cancellation_that_is_too_late_for_a_meeting_comes_at_the_next_wait(
    call: Call, take: Callable[[Blocked], Any], first: str
) -> None:
    async def main() -> None:
        blocked, got = call.make(1), []

        async def body() -> None:
            got.append(await take(blocked))
            await asyncio.get_running_loop().create_future()

        task = asyncio.ensure_future(body())
        await until_async(lambda: blocked.waiting() == 1)
        if first == "it is cancelled":
            task.cancel()
        blocked.end()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert [blocked.got(value) for value in got] == [True]

    run(main())


@in_both_orders
@each_way
@each(lambda call: call.final)
def test_cancellation_of_trio_that_is_too_late_for_a_meeting_is_the_next_checkpoints(
    call: Call, take: Callable[[Blocked], Any], first: str
) -> None:
    blocked, got = call.make(1), []

    async def party(scope: trio.CancelScope) -> None:
        with scope:
            got.append(await take(blocked))
            await trio.lowlevel.checkpoint()
            got.append("never")

    async def main() -> None:
        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(party, scope)
            await until_trio(lambda: blocked.waiting() == 1)
            for event in (scope.cancel, blocked.end)[:: 1 if first == "it is cancelled" else -1]:
                event()

    trio.run(main)
    assert [blocked.got(value) for value in got] == [True]


@pytest.mark.parametrize("left", [True, False], ids=["left", "not left"])
@each(lambda call: call.final)
def test_time_out_that_is_too_late_for_a_meeting_ends_its_block_if_that_was_not_left(
    call: Call, left: bool
) -> None:
    async def main() -> None:
        blocked, limits = call.make(1), []

        async def body() -> str:
            try:
                async with asyncio.timeout(3600) as limit:
                    limits.append(limit)
                    await blocked.wait_async()
                    if not left:
                        await asyncio.get_running_loop().create_future()
            except TimeoutError:
                return "timed out"
            for _ in range(5):
                await asyncio.sleep(0)
            return "whole"

        task = asyncio.ensure_future(body())
        await until_async(lambda: blocked.waiting() == 1)
        limits[0].reschedule(0)
        await until_async(task.cancelling)
        blocked.end()
        assert await task == ("whole" if left else "timed out")

    run(main())


@each(lambda call: call.stays)
def test_what_comes_while_every_waiter_is_cancelled_and_none_has_resumed_is_for_a_newcomer(
    call: Call,
) -> None:
    async def main() -> None:
        blocked = call.make(3)
        waiters = [await queued(blocked, at) for at in range(1 if call.alone else 3)]
        for one in waiters:
            one.cancel()
        blocked.end()
        newcomer = asyncio.ensure_future(blocked.take_async())
        await asyncio.wait(waiters)
        assert blocked.got(await newcomer)
        assert blocked.waiting() == 0

    run(main())


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
@each(lambda call: call.loops and not call.alone)
def test_loop_that_is_closed_with_a_task_that_was_granted_passes_that_on(call: Call, library: str) -> None:
    make = pytest.importorskip(library, exc_type=ImportError).new_event_loop
    blocked = call.make(3)
    with loop_with(blocked, 2, make) as loop:
        behind = Thread(blocked.take)
        until(lambda: blocked.waiting() == 3)
        blocked.end()
        loop.close()
        collect()
        if call.final:
            blocked.end()
        assert blocked.got(behind.result())
        assert blocked.waiting() == 0

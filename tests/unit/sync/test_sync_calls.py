"""What is alike in all calls that block: each row of tests/support/blockingcalls.py against each event."""

from __future__ import annotations

import asyncio
import gc
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import trio
from blockingcalls import CALLS, EXTRA, Blocked, Call
from endings import (
    ENDINGS,
    HandlerRan,
    collect,
    each_ending,
    handling,
    interrupting,
    loop_with,
    queued,
    until_trio,
)
from waiting import PATIENCE_S, Thread, run, until, until_async

from fairlead.sync import Event, select, select_async, waits

pytestmark = [pytest.mark.pypy, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


ALL = [*CALLS, *EXTRA]
LONGEST = 9223372036.0
"""CPython's threading.TIMEOUT_MAX; that of PyPy is a thousand times as long."""


def each(of: Callable[[Call], bool] = lambda _: True) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("call", [one for one in ALL if of(one)], ids=lambda call: call.name)


def begin(how: str, blocked: Blocked) -> Thread:
    """A thread that waits, or whose task does."""
    if how == "thread":
        return Thread(blocked.take)
    return Thread(run, blocked.take_async()) if how == "asyncio" else Thread(trio.run, blocked.take_async)


@pytest.mark.parametrize("how", ["thread", "asyncio", "trio"])
@each()
def test_waiter_goes_on_when_another_thread_lets_it(call: Call, how: str) -> None:
    blocked = call.make(1)
    waiter = begin(how, blocked)
    until(lambda: blocked.waiting() == 1)
    blocked.end()
    assert blocked.got(waiter.result())
    assert blocked.waiting() == 0


@each(lambda call: not call.alone)
def test_waiters_of_every_kind_are_served_each_once_and_in_the_order_of_waiting(call: Call) -> None:
    """Where several are let go on at once they come as they like."""
    blocked, order, waiters = call.make(4), [], []
    undo = blocked.undo

    def note(value: Any) -> None:
        order.append(threading.get_ident())
        undo(value)

    blocked.undo = note
    for how in ("thread", "asyncio", "trio", "thread"):
        waiters.append(begin(how, blocked))
        until(lambda: blocked.waiting() == len(waiters))
    for served in range(1, 5):
        if call.each or served == 1:
            blocked.end()
        until(lambda: len(order) >= served)  # noqa: B023
    assert all(blocked.got(waiter.result()) for waiter in waiters)
    assert blocked.waiting() == 0
    came = [waiter.ident for waiter in waiters]
    assert order == came or not (call.each or "fair" in call.name)
    assert set(order) == set(came)


@each(lambda call: call.stays)
def test_awaitable_that_was_granted_and_is_closed_passes_that_on(call: Call) -> None:
    async def main() -> None:
        awaitable = blocked.wait_async()
        awaitable.send(None)
        assert blocked.waiting() == 1
        blocked.end()
        awaitable.close()
        assert blocked.waiting() == 0

    blocked = call.make(1)
    run(main())
    assert blocked.got(blocked.take())


@each(lambda call: call.stays)
def test_what_is_there_is_taken_at_once_and_without_a_switch_to_another_task(call: Call) -> None:
    async def main() -> None:
        blocked, switched = call.make(1), []
        blocked.end()
        asyncio.get_running_loop().call_soon(switched.append, 1)
        assert blocked.got(await blocked.take_async())
        assert switched == []

    run(main())
    blocked = call.make(1)
    blocked.end()
    assert blocked.got(blocked.take())


@each(lambda call: call.late is not None)
def test_time_outs_leave_nothing_behind(call: Call) -> None:
    blocked = call.make(1)
    before = blocked.left()
    over = [] if call.refuses else [-0.5, -math.inf, *([] if call.forever else [-1])]
    for timeout in [0, 1e-9, 1e-9, 1e-7] * 10 + [0.002, *over]:
        begun = time.monotonic()
        if isinstance(call.late, type):
            with pytest.raises(call.late):
                blocked.wait(timeout=timeout)
        else:
            assert blocked.wait(timeout=timeout) == call.late
        assert call.name == "RateLimiter" or time.monotonic() - begun >= timeout  # it knows at once
        assert (blocked.waiting(), blocked.left()) == (0, before)


@each(lambda call: call.late is not None)
def test_senseless_time_outs_are_refused(call: Call) -> None:
    blocked = call.make(1)
    before = blocked.left()
    for timeout, error in [
        (math.nan, ValueError),
        (math.inf, OverflowError),
        (1e300, OverflowError),
        (2e10, OverflowError),
        ("1", TypeError),
        *([(-1, ValueError), (-0.5, ValueError), (-math.inf, ValueError)] if call.refuses else []),
    ]:
        with pytest.raises(error, match=None if error is TypeError else "timeout"):
            blocked.wait(timeout=timeout)
    assert (blocked.waiting(), blocked.left()) == (0, before)


@each(lambda call: call.late is not None)
def test_none_and_the_longest_time_out_are_for_ever(call: Call) -> None:
    for timeout in [None, LONGEST, *([-1] if call.forever else [])]:
        blocked = call.make(1)
        waiter = Thread(blocked.wait, timeout=timeout)
        until(lambda: blocked.waiting() == 1)  # noqa: B023
        blocked.end()
        assert blocked.got(waiter.result())


@each()
def test_awaitable_does_nothing_until_it_is_awaited_and_is_for_once(call: Call) -> None:
    blocked = call.make(1)
    before = blocked.left()
    blocked.wait_async().close()
    unused = blocked.wait_async()
    with pytest.raises(RuntimeError, match=r"none runs here|no event loop"):
        unused.send(None)
    assert (blocked.waiting(), blocked.left()) == (0, before)

    async def twice() -> None:
        awaitable = blocked.wait_async()
        blocked.undo(await awaitable)
        with pytest.raises(RuntimeError, match="reuse"):
            await awaitable

    async def main() -> None:
        task = asyncio.ensure_future(twice())
        await until_async(lambda: blocked.waiting() == 1)
        blocked.end()
        await task

    run(main())


@each_ending
@each()
def test_wait_that_ends_by_itself_leaves_nothing_behind(
    call: Call, ending: Callable[[Blocked], None]
) -> None:
    if ending is ENDINGS["loop is closed"] and not call.loops:
        pytest.skip("its coroutine has to be closed, too")
    blocked = call.make(1)
    before = blocked.left()
    ending(blocked)
    assert (blocked.waiting(), blocked.left()) == (0, before)
    waiter = Thread(blocked.take)
    until(lambda: blocked.waiting() == 1)
    blocked.end()
    assert blocked.got(waiter.result())


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


@each()
def test_wait_goes_on_after_a_signal_handler_has_returned(call: Call) -> None:
    blocked, handled = call.make(1), []

    def then() -> None:
        until(lambda: handled and blocked.waiting() == 1)
        blocked.end()

    with handling(lambda: handled.append(1)):
        sender = interrupting(lambda: blocked.waiting() == 1, then)
        assert blocked.got(blocked.take())
        sender.result()
    assert blocked.waiting() == 0


@each(lambda call: call.stays)
def test_signal_handler_may_end_the_wait_of_its_own_thread(call: Call) -> None:
    blocked = call.make(1)
    with handling(blocked.end):
        sender = interrupting(lambda: blocked.waiting() == 1)
        assert blocked.got(blocked.take())
        sender.result()


def test_no_signal_of_a_thread_that_goes_on_computing_is_lost() -> None:
    """PyPy counts instructions, and a signal that comes meanwhile was forgotten: once in 100 times."""
    event, counts = Event(), lambda: sum(number % 7 for number in range(5000))
    with handling(event.set):
        for _ in range(500):
            sender = interrupting(lambda: event.statistics().waiting == 1, counts)
            assert event.wait(PATIENCE_S)
            event.clear()
            sender.result()


@each(lambda call: call.stays)
def test_what_a_signal_handler_gave_before_it_raised_is_there_for_the_next(call: Call) -> None:
    def give_and_stop() -> None:
        blocked.end()
        raise HandlerRan

    blocked = call.make(1)
    with handling(give_and_stop):
        sender = interrupting(lambda: blocked.waiting() == 1)
        with pytest.raises(HandlerRan):
            blocked.wait()
        sender.result()
    assert blocked.waiting() == 0
    assert blocked.got(blocked.take())


@each()
def test_destructor_may_end_a_wait(call: Call) -> None:
    class Ends:
        def __del__(self) -> None:
            blocked.end()

    blocked = call.make(1)
    waiter = Thread(blocked.take)
    until(lambda: blocked.waiting() == 1)
    Ends()
    collect()
    assert blocked.got(waiter.result())


@pytest.mark.skipif(
    sys.implementation.name == "pypy", reason="PyPy collects no circle through an extension's object"
)
def test_primitives_are_freed_after_waits_that_were_granted_and_cancelled() -> None:
    async def main() -> dict[str, weakref.ref[Any]]:
        return {call.name: await of(call) for call in ALL}

    async def of(call: Call) -> weakref.ref[Any]:
        blocked = call.make(1)
        task = await queued(blocked)
        task.cancel()
        await asyncio.wait([task])
        blocked.mend()
        task = await queued(blocked)
        blocked.end()
        await task
        return weakref.ref(blocked.primitive)

    found = run(main())
    gc.collect()
    assert [name for name, freed in found.items() if freed() is not None] == []


@each()
def test_waits_names_what_a_thread_waits_for_and_no_wait_that_is_over(call: Call) -> None:
    blocked = call.make(1)
    waiter = begin("thread", blocked)
    until(lambda: blocked.waiting() == 1)

    def seen() -> set[str]:
        return {wait.kind for wait in waits() if wait.waiter.thread == waiter.ident}

    until(seen)
    assert call.seen in seen()
    blocked.end()
    waiter.result()
    assert seen() == set()


@pytest.mark.parametrize(
    ("call", "how"),
    [pytest.param(call, how, id=f"{call.name}-{how}") for call in CALLS for how in call.selects],
)
def test_call_is_selected_beside_one_that_has_nothing(call: Call, how: str) -> None:
    async def choose() -> Any:
        found = await select_async(never.wait_async(), blocked.wait_async())
        blocked.undo(found.value)
        return found

    def choose_in_a_thread() -> Any:
        found = select(never.wait_async(), blocked.wait_async())
        assert found is not None
        blocked.undo(found.value)
        return found

    blocked, never = call.make(1), Event()
    thread = Thread(choose_in_a_thread) if how == "thread" else Thread(run, choose())
    until(lambda: blocked.waiting() == never.statistics().waiting == 1)
    blocked.end()
    found = thread.result()
    assert found.case == 1
    assert blocked.got(found.value)
    assert blocked.waiting() == never.statistics().waiting == 0

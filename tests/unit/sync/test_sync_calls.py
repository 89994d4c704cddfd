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
from blocked import Blocked
from blockingcalls import ALL, CALLS, Call, each
from endings import (
    ENDINGS,
    HandlerRan,
    collect,
    each_ending,
    handling,
    interrupting,
    queued,
)
from waiting import PATIENCE_S, Thread, run, until, until_async

from fairlead.sync import Event, select, select_async, waits

pytestmark = [pytest.mark.pypy, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]


LONGEST = 9223372036.0
"""CPython's threading.TIMEOUT_MAX; that of PyPy is a thousand times as long."""


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

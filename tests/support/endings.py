"""The ways in which a wait ends by itself, without what it waits for."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from blocked import Blocked
from waiting import PATIENCE_S, Thread, main_thread_sleeps, run, until, until_async


def collect() -> None:
    """What CPython does by counting references; PyPy calls destructors when it collects."""
    if sys.implementation.name == "pypy":
        gc.collect()


class HandlerRan(BaseException):
    """What the handlers of signals raise in tests."""


@contextmanager
def handling(handler: Callable[[], object]) -> Iterator[None]:
    """SIGUSR1 does that."""
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("only the main thread sees to signals")
    before = signal.signal(signal.SIGUSR1, lambda *_: handler())
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


def interrupting(
    state: Callable[[], object], then: Callable[[], object] = bool, other_receives: bool = False
) -> Thread:
    """Signals once the state is there and the main thread asleep: before that a signal may not wake it."""
    main = threading.main_thread().ident

    def body() -> None:
        until(state)
        until(main_thread_sleeps)
        signal.pthread_kill(threading.get_ident() if other_receives else main or 0, signal.SIGUSR1)
        then()

    return Thread(body)


async def queued(blocked: Blocked, after: int = 0) -> asyncio.Task[Any]:
    """A task that waits, behind so many."""
    task = asyncio.ensure_future(blocked.take_async())
    await until_async(lambda: blocked.waiting() == after + 1)
    return task


async def until_trio(state: Callable[[], object]) -> None:
    with trio.fail_after(PATIENCE_S):
        while not state():
            await trio.lowlevel.checkpoint()


@contextmanager
def loop_with(
    blocked: Blocked, count: int, make: Callable[[], Any] = asyncio.new_event_loop
) -> Iterator[Any]:
    """A loop with tasks that wait. It is closed at the end, and nothing is reported of them."""
    before = blocked.waiting()
    loop = make()
    tasks = [loop.run_until_complete(queued(blocked, before + at)) for at in range(count)]
    yield loop
    loop.close()
    for task in tasks:
        task.get_coro().close()  # type: ignore[union-attr]
        task._log_destroy_pending = False  # type: ignore[attr-defined]


def _in_asyncio(end: Callable[[Blocked, int], Any]) -> Callable[[Blocked], None]:
    """Where as many wait before."""
    return lambda blocked: run(end(blocked, blocked.waiting()))


async def _cancelled(blocked: Blocked, before: int, times: int = 1) -> None:
    task = await queued(blocked, before)
    for _ in range(times):
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def _timeout(blocked: Blocked, _: int) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await blocked.wait_async()


async def _wait_for(blocked: Blocked, _: int) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(blocked.wait_async(), 1e-4)


async def _dropped(blocked: Blocked, before: int) -> None:
    awaitable = blocked.wait_async()
    awaitable.send(None)
    assert blocked.waiting() == before + 1
    del awaitable
    collect()
    assert blocked.waiting() <= before  # already, and not by the end of the loop


async def _stepped(blocked: Blocked, before: int, throws: bool) -> None:
    awaitable = blocked.wait_async()
    awaitable.send(None)
    assert blocked.waiting() == before + 1
    if throws:
        with pytest.raises(KeyError):
            awaitable.throw(KeyError("thrown"))
    awaitable.close()
    assert blocked.waiting() <= before


def _run_ends(blocked: Blocked) -> None:
    asyncio.run(queued(blocked, blocked.waiting()))  # type: ignore[arg-type]


def _scope_ends(blocked: Blocked, seconds: float) -> None:
    async def main() -> None:
        with trio.move_on_after(seconds) as scope:
            await blocked.wait_async()
        assert scope.cancelled_caught

    trio.run(main)


def _nursery_is_cancelled(blocked: Blocked) -> None:
    before = blocked.waiting()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(blocked.take_async)
            await until_trio(lambda: blocked.waiting() == before + 1)
            nursery.cancel_scope.cancel()

    trio.run(main)


def _loop_is_closed(blocked: Blocked) -> None:
    before = blocked.waiting()
    with loop_with(blocked, 1) as loop:
        loop.close()
        collect()
        assert blocked.waiting() <= before


def _handler_raises(blocked: Blocked, other_receives: bool = False) -> None:
    def stop() -> None:
        raise HandlerRan

    before = blocked.waiting()
    with handling(stop):
        sender = interrupting(lambda: blocked.waiting() == before + 1, other_receives=other_receives)
        with pytest.raises(HandlerRan):
            blocked.wait()
        sender.result()


ENDINGS: dict[str, Callable[[Blocked], None]] = {
    "task is cancelled": _in_asyncio(_cancelled),
    "task is cancelled twice": _in_asyncio(lambda blocked, before: _cancelled(blocked, before, 2)),
    "asyncio.timeout": _in_asyncio(_timeout),
    "asyncio.wait_for": _in_asyncio(_wait_for),
    "exception is thrown": _in_asyncio(lambda blocked, before: _stepped(blocked, before, True)),
    "awaitable is closed": _in_asyncio(lambda blocked, before: _stepped(blocked, before, False)),
    "awaitable is dropped": _in_asyncio(_dropped),
    "asyncio.run ends": _run_ends,
    "trio's scope is over": lambda blocked: _scope_ends(blocked, 0),
    "trio's scope times out": lambda blocked: _scope_ends(blocked, 1e-4),
    "trio's nursery is cancelled": _nursery_is_cancelled,
    "loop is closed": _loop_is_closed,
    "handler raises": _handler_raises,
    "handler of another thread's signal raises": lambda blocked: _handler_raises(blocked, True),
}
each_ending = pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS.keys())

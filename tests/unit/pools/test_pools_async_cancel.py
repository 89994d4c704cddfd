"""AsyncPool: a cancellation at every step of a task's end. Every wait here has a limit."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import gc
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from functools import partial
from itertools import starmap
from operator import call as called
from queue import SimpleQueue
from types import FrameType
from typing import Any

import pytest
from pooltasks import square
from waiting import until

from fairlead.pools import AsyncPool
from fairlead.pools.engine import shutdown
from fairlead.pools.event_loop.engine import Loop
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.sync import Event

pytestmark = pytest.mark.ends_and_free

LIMIT_S = 20


@pytest.fixture
def pool() -> Iterator[AsyncPool]:
    made = AsyncPool(2)
    yield made
    made.shutdown(timeout=LIMIT_S)
    numbers = made.statistics()
    assert (numbers.queued, numbers.running) == (0, 0)
    assert made._engine._alive == 0
    assert not made._engine._lent


class CancelsAt:
    """A profiling function of the loop's thread. At one step of the pool's own code another thread cancels
    the future, and has come as far as it can when this one goes on: it may wait for a lock that this one has.

    The steps are those at which another thread, or the exception that it sends, can come in: when a function
    begins, and when one in C has returned. They end with that of the engine's ``_over``.
    """

    def __init__(self, step: int) -> None:
        self.left = step
        self.future: Future[Any]
        self.said: bool | None = None
        self.ended = threading.Event()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if "/fairlead/pools/" not in frame.f_code.co_filename:
            return
        if event in {"call", "c_return"}:
            self.left -= 1
            if self.left == 0:
                came = _thread.allocate_lock()
                came.acquire()
                threading.Thread(target=self.cancel, args=(came,), daemon=True).start()
                came.acquire(timeout=0.05)
        elif event == "return" and frame.f_code is Loop._over.__code__:
            sys.setprofile(None)

    def cancel(self, came: Any) -> None:
        self.said = self.future.cancel()
        self.ended.set()
        with contextlib.suppress(RuntimeError):
            came.release()


async def ends_by_itself(probe: CancelsAt) -> int:
    await asyncio.sleep(0)
    sys.setprofile(probe)
    return 7


async def raises_at_its_end(probe: CancelsAt) -> int:
    await asyncio.sleep(0)
    sys.setprofile(probe)
    raise LookupError(7)


async def cleans_up(probe: CancelsAt) -> int:
    try:
        await asyncio.sleep(0)
    finally:
        sys.setprofile(probe)
        await asyncio.sleep(0)
    return 7


async def waits_for_another(probe: CancelsAt, pool: AsyncPool) -> int:
    sys.setprofile(probe)
    return await pool.run(square, 3) - 2


def no_coroutine(probe: CancelsAt) -> int:
    sys.setprofile(probe)
    return 7


@pytest.mark.skipif(
    sys.version_info < (3, 12) or sys.implementation.name != "cpython",
    reason="an exception that a profiling function raises in specialised code has 3.11 loop for ever",
)
@pytest.mark.parametrize(
    "function", [ends_by_itself, raises_at_its_end, cleans_up, waits_for_another, no_coroutine]
)
def test_cancelling_at_every_step_of_a_tasks_end_loses_nothing(
    function: Callable[..., Any], pool: AsyncPool
) -> None:
    step = cancelled = 0
    while True:
        step += 1
        probe = CancelsAt(step)
        args = (probe, pool) if function is waits_for_another else (probe,)
        begins = threading.Event()
        probe.future = pool.submit(_behind, begins, function, *args)
        begins.set()
        behind = pool.submit(square, step)
        try:
            end: Any = probe.future.exception(LIMIT_S) or probe.future.result(LIMIT_S)
        except CancelledError:
            end = None
        assert behind.result(LIMIT_S) == step * step, f"after a cancellation at step {step}"
        if probe.left > 0:
            break
        assert probe.ended.wait(LIMIT_S), f"cancel() at step {step} does not return"
        assert probe.said is probe.future.cancelled() is (end is None), f"at step {step}"
        assert end in (7, None) or isinstance(end, LookupError)
        cancelled += end is None
    assert 0 < cancelled < step > 5
    if function is not waits_for_another:  # otherwise those waited for are cancelled, too
        assert pool.statistics().cancelled == cancelled


def _behind(begins: threading.Event, function: Callable[..., Any], *args: Any) -> Any:
    """The future must be known to the probe before the function begins."""
    begins.wait(LIMIT_S)
    return function(*args)


def calls_in_c(function: Callable[..., Any], begun: Any, goes_on: Any) -> Callable[[], Any]:
    """Calls the function when both have been asked, without a step in Python that an interrupt could end."""
    return starmap(function, zip(map(called, (begun,)), map(called, (goes_on,)), strict=True)).__next__


async def never_begun(*_: object) -> None:
    raise AssertionError


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython calls it in C")
@pytest.mark.parametrize("chunked", [False, True])
def test_a_coroutine_that_an_interrupt_keeps_from_its_first_step_is_closed(
    chunked: bool, pool: AsyncPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", warned.append)
    begun: SimpleQueue[None] = SimpleQueue()
    goes_on: SimpleQueue[None] = SimpleQueue()
    function = calls_in_c(never_begun, partial(begun.put, None), goes_on.get)
    call = (call_chunk, function, [()], True) if chunked else (function,)
    future = pool.submit(*call)
    begun.get(timeout=LIMIT_S)
    assert future.cancel()
    goes_on.put(None)
    assert pool.submit(square, 3).result(LIMIT_S) == 9
    del future
    gc.collect()
    assert RuntimeWarning not in {one.exc_type for one in warned}


def test_loop_that_looks_before_it_is_noted_that_it_was_asked_looks_again(
    pool: AsyncPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was asked as a task ended between two attempts."""
    assert pool.submit(square, 2).result(LIMIT_S) == 4
    soon = pool._engine.soon

    def soon_and_at_once(call: Callable[[], object]) -> None:
        made = threading.Event()
        soon(lambda: (call(), made.set()))
        made.wait(0.1)  # for no longer: it may need a lock that this thread has

    with monkeypatch.context() as patched:
        patched.setattr(pool._engine, "soon", soon_and_at_once)
        pool._engine._perhaps_over()
    assert pool.submit(square, 3).result(LIMIT_S) == 9


class Large:
    """What a task computes with."""


def computes(begun: threading.Event, known: list[weakref.ref[Large]]) -> None:
    large = Large()
    known.append(weakref.ref(large))
    begun.set()
    while True:
        pass


def test_what_an_interrupted_task_had_is_freed_at_once(pool: AsyncPool) -> None:
    begun = threading.Event()
    known: list[weakref.ref[Large]] = []
    future = pool.submit(computes, begun, known)
    assert begun.wait(LIMIT_S)
    assert future.cancel()
    assert pool.submit(square, 3).result(LIMIT_S) == 9
    assert known[0]() is None


async def several_awaits(handles: list[asyncio.Task[Any]], cleaned: list[int]) -> int:
    task = asyncio.current_task()
    assert task is not None
    handles.append(task)
    try:
        for _ in range(3):
            await asyncio.sleep(0)
        return await asyncio.wait_for(asyncio.shield(asyncio.sleep(0, 7)), LIMIT_S)
    finally:
        await asyncio.sleep(0)
        cleaned.append(1)


async def cancel_after(turns: int, handles: list[asyncio.Task[Any]]) -> bool:
    """Of the loop, beginning when the other has."""
    while not handles:
        await asyncio.sleep(0)
    for _ in range(turns):
        await asyncio.sleep(0)
    return handles[0].cancel()


async def leaves_a_wait(pool: AsyncPool, goes_on: threading.Event, left: list[Any]) -> int:
    waiting = pool.submit(goes_on.wait, LIMIT_S).__await__()
    waiting.send(None)
    left.append(waiting)
    return 7


def test_wait_that_was_left_can_be_closed_in_another_thread(pool: AsyncPool) -> None:
    goes_on = threading.Event()
    left: list[Any] = []
    future = pool.submit(leaves_a_wait, pool, goes_on, left)
    try:
        assert future.result(LIMIT_S) == 7
        left.pop().close()
    finally:
        goes_on.set()
    assert pool.submit(square, 3).result(LIMIT_S) == 9


@pytest.mark.parametrize("chunked", [False, True])
def test_cancelling_in_the_loop_at_every_await_loses_nothing(chunked: bool, pool: AsyncPool) -> None:
    """As a task that cancels the others of its loop, which the pool knows nothing of."""
    turns = 0
    while True:
        handles: list[asyncio.Task[Any]] = []
        cleaned: list[int] = []
        call = (handles, cleaned)
        cancelling = pool.submit(cancel_after, turns, handles)
        stream = pool.map(several_awaits, *([one] for one in call), chunksize=1) if chunked else None
        future = None if chunked else pool.submit(several_awaits, *call)
        came = True
        try:
            value = next(stream) if stream is not None else future.result(LIMIT_S)  # type: ignore[union-attr]
            assert value == 7
        except CancelledError:
            came = False
        hit = cancelling.result(LIMIT_S)
        assert came or hit
        assert pool.submit(square, 3).result(LIMIT_S) == 9, f"after a cancellation in turn {turns}"
        if not hit:
            break
        turns += 1
    assert turns > 3


def test_cancelling_a_waiter_at_every_turn_of_its_loop_loses_nothing(pool: AsyncPool) -> None:
    async def one(turns: int) -> bool:
        """Whether the result came first."""
        waiting = asyncio.create_task(pool.run(square, 5))
        for _ in range(turns):
            await asyncio.sleep(0)
        waiting.cancel()
        try:
            assert await asyncio.wait_for(waiting, LIMIT_S) == 25
        except asyncio.CancelledError:
            assert await asyncio.wait_for(pool.run(square, 6), LIMIT_S) == 36
            return False
        return True

    async def main() -> int:
        turns = 0
        while not await one(turns):
            turns += 1
        return turns

    assert asyncio.run(asyncio.wait_for(main(), 2 * LIMIT_S)) > 0


def test_coroutine_keeps_its_place_until_its_cancellation_is_over() -> None:
    pool = AsyncPool(1)
    never, submitted, order = Event(), Event(), []

    async def cleans_up() -> None:
        try:
            await never.wait_async()
        finally:
            await submitted.wait_async()
            for _ in range(10):  # turns in which the other could begin
                await asyncio.sleep(0)
            order.append("first")

    first = pool.submit(cleans_up)
    engine: Any = pool._engine
    until(lambda: never.statistics().waiting == 1 and engine.inside is None)
    assert first.cancel()
    second = pool.submit(order.append, "second")
    submitted.set()
    second.result(LIMIT_S)
    assert order == ["first", "second"]
    pool.shutdown(timeout=LIMIT_S)


def test_terminate_ends_a_loop_whose_coroutine_refuses_to_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutdown, "PATIENCE_S", 0.01)
    pool, begun = AsyncPool(1), Event()

    async def refuses() -> None:
        while True:
            begun.set()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(3600)

    future = pool.submit(refuses)
    assert begun.wait(LIMIT_S)
    pool.terminate()
    assert future.cancelled()
    pool.shutdown(timeout=LIMIT_S)


@pytest.mark.parametrize("waits_first", [False, True])
def test_coroutine_that_is_cancelled_while_it_computes_cleans_up_without_another_cancellation(
    pool: AsyncPool, waits_first: bool
) -> None:
    begun, cancelled, seen = threading.Event(), Event(), list[str]()

    async def computes_and_cleans_up() -> None:
        if waits_first:
            await asyncio.sleep(0)
        try:
            begun.set()
            while True:
                pass
        except BaseException as error:
            seen.append(type(error).__name__)
            raise
        finally:
            await cancelled.wait_async()
            for _ in range(3):
                await asyncio.sleep(0)
            seen.append("cleaned up")

    future = pool.submit(computes_and_cleans_up)
    assert begun.wait(LIMIT_S)
    assert future.cancel()
    cancelled.set()
    until(lambda: not pool._engine._alive)
    assert seen == ["Stopped", "cleaned up"]

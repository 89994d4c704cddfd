"""What pools of coroutines promise besides: many at once on one loop, and what ends them."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from poolkinds import pass_time
from pooltasks import spin, square
from waiting import Thread, until, until_async

from fairlead import errors
from fairlead.pools import AsyncPool
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.event_loop import steps

pytestmark = pytest.mark.pypy


@pytest.fixture
def pool() -> Iterator[AsyncPool]:
    with AsyncPool(2) as pool:
        yield pool


async def squared(n: int) -> int:
    await asyncio.sleep(0)
    return n * n


class Meeting:
    """Coroutines that stay until they are let go."""

    def __init__(self) -> None:
        self.here = 0
        self.most = 0
        self.go = False

    async def attend(self, _: object = None) -> int:
        self.here += 1
        self.most = max(self.most, self.here)
        try:
            while not self.go:
                await asyncio.sleep(0)
        finally:
            self.here -= 1
        return self.most


def test_coroutine_functions_are_awaited_however_they_are_called(pool: AsyncPool) -> None:
    assert pool.submit(squared, 3).result() == 9
    assert pool.submit(functools.partial(squared, n=4)).result() == 16
    assert pool.submit(lambda: squared(5)).result() == 25
    assert list(pool.map(squared, range(50))) == [n * n for n in range(50)]
    assert list(pool.stream(squared, range(5), chunksize=3)) == [0, 1, 4, 9, 16]


def test_coroutines_run_at_once_on_one_thread_as_many_as_there_are_workers(pool: AsyncPool) -> None:
    meeting = Meeting()
    futures = [pool.submit(meeting.attend) for _ in range(5)]
    until(lambda: meeting.here == 2)
    assert pool.statistics().queued == 3
    meeting.go = True
    assert max(future.result() for future in futures) == 2

    async def thread() -> int:
        return threading.get_ident()

    found = {pool.submit(thread).result() for _ in range(5)}
    assert len(found) == 1
    assert found != {threading.get_ident()}


def test_coroutine_cancelled_sees_it_and_keeps_its_place_until_it_has_ended() -> None:
    seen: list[str] = []
    go = False

    async def stubborn() -> None:
        # the loop gets to it when the coroutine waits: who computes is not cancelled, but stopped
        asyncio.get_running_loop().call_soon(seen.append, "begun")
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            seen.append("cancelled")
            while not go:
                await asyncio.sleep(0)
            seen.append("ended")

    with AsyncPool(1) as pool:
        future = pool.submit(stubborn)
        until(lambda: seen == ["begun"])
        assert future.cancel()
        until(lambda: "cancelled" in seen)
        after = pool.submit(lambda: list(seen))
        assert pool.statistics().queued == 1
        go = True
        assert after.result() == ["begun", "cancelled", "ended"]


def test_coroutine_whose_time_is_up_is_cancelled_and_retried(pool: AsyncPool) -> None:
    attempts = 0

    async def slow_once() -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await asyncio.sleep(3600)
        return attempts

    future = pool.with_options(timeout=3600, retries=1).submit(slow_once)
    until(lambda: attempts)
    pass_time(pool)
    assert future.result(40) == 2
    with pytest.raises(errors.TaskTimeoutError):
        pool.with_options(timeout=0.01).submit(asyncio.sleep, 3600).result()
    numbers = pool.statistics()
    assert (numbers.retried, numbers.timed_out, numbers.running) == (1, 2, 0)


def test_coroutine_that_cancels_itself_ends_as_cancelled(pool: AsyncPool) -> None:
    async def leave() -> None:
        raise asyncio.CancelledError

    future = pool.submit(leave)
    until(future.done)
    assert future.cancelled()


def test_loop_that_computes_is_stopped_many_times_and_lives(pool: AsyncPool) -> None:
    """An exception that is sent when the computing may be about to end hits nothing else."""
    begun = 0

    async def compute() -> None:
        nonlocal begun
        begun += 1
        for _ in range(300):
            await asyncio.sleep(0)

    beside = Meeting()
    attending = pool.submit(beside.attend)
    for number in range(100):
        future = pool.submit(compute)
        until(lambda number=number: begun > number)
        future.cancel()
    beside.go = True
    assert attending.result() == 1
    assert pool.submit(squared, 3).result() == 9
    assert pool.statistics().running == 0


def test_coroutine_waits_for_others_of_its_pool_without_a_deadlock() -> None:
    with AsyncPool(1) as pool:

        async def sum_to(n: int) -> int:
            return n + await pool.run(sum_to, n - 1) if n else 0

        assert pool.submit(sum_to, 10).result() == 55


def test_result_asked_for_on_the_pools_own_thread_is_refused_if_it_would_never_come(pool: AsyncPool) -> None:
    async def wrong() -> int:
        return pool.submit(squared, 3).result()

    async def right() -> int:
        return pool.submit(square, 3).result()

    with pytest.raises(errors.DeadlockError, match=r"await pool\.run"):
        pool.submit(wrong).result()
    assert pool.submit(right).result() == 9


def test_initializer_and_finalizer_may_be_coroutine_functions() -> None:
    seen: list[Any] = []

    async def initialize() -> None:
        seen.append(asyncio.get_running_loop())

    async def same() -> bool:
        return asyncio.get_running_loop() is seen[0]

    async def finalize() -> None:
        await asyncio.sleep(0)
        seen.append("ended")

    with AsyncPool(initializer=initialize, finalizer=finalize) as pool:
        assert pool.submit(same).result()
        assert pool.workers == 100
        pool.shutdown(wait=False)
        pool.shutdown(wait=False)
    assert seen[1:] == ["ended"]


def test_what_coroutines_leave_on_the_loop_is_cancelled_at_the_end() -> None:
    ended: list[str] = []

    async def background() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("background")

    async def begin() -> None:
        kept.append(asyncio.create_task(background()))
        await asyncio.sleep(0)

    kept: list[asyncio.Task[None]] = []
    with AsyncPool(1) as pool:
        pool.submit(begin).result()
    assert ended == ["background"]


def test_terminate_leaves_a_call_into_c_behind_and_its_future_has_ended() -> None:
    gate = threading.Lock()
    gate.acquire()
    threads = threading.active_count()
    pool = AsyncPool(1)
    stuck = pool.submit(gate.acquire)
    until(stuck.running)
    pool.terminate()
    pool.shutdown()
    assert stuck.cancelled()
    gate.release()
    until(lambda: threading.active_count() <= threads)


def test_cancelling_within_the_pools_own_thread_reaches_another_coroutine(pool: AsyncPool) -> None:
    meeting = Meeting()

    async def cancel() -> bool:
        await until_async(lambda: meeting.here == 1)
        return future.cancel()

    future = pool.submit(meeting.attend)
    assert pool.submit(cancel).result()
    assert future.cancelled()
    until(lambda: meeting.here == 0)


def test_task_that_was_run_by_one_that_waited_for_it_and_was_stopped_is_cancelled(pool: AsyncPool) -> None:
    helped: list[Any] = []

    def wait_for_another() -> None:
        helped.append(pool.submit(spin))
        helped[0].result()

    waits = pool.submit(wait_for_another)
    until(lambda: helped and helped[0].running())
    assert waits.cancel()
    until(helped[0].done)
    assert helped[0].cancelled()


def test_task_stopped_before_its_first_step_never_begins_and_keeps_no_other_waiting() -> None:
    """The loop is held up until the time is up of what it would begin next."""
    gate = threading.Event()
    with AsyncPool(3) as pool:
        until(lambda: pool.submit(square, 2).result() == 4)
        holds = pool.submit(gate.wait)
        until(holds.running)

        async def begin() -> None:
            other = pool.with_options(timeout=3600).submit(spin)
            await asyncio.sleep(0)
            pool._engine._pump()
            Thread(pass_time, pool).result()
            late.append(other)

        late: list[Any] = []
        starts = pool.submit(begin)
        gate.set()
        starts.result()
        with pytest.raises(errors.TaskTimeoutError):
            late[0].result()
        assert pool.submit(square, 3).result() == 9


@pytest.mark.parametrize("begun", [False, True])
def test_stop_that_comes_beside_the_coroutine_is_passed_on_to_it(
    begun: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the coroutine has just begun to wait, or was about to go on."""

    class Interrupted(asyncio.CancelledError):
        def __init__(self) -> None:
            raise Stopped

    over: list[bool] = []

    async def rests() -> None:
        try:
            await asyncio.sleep(0)
        finally:
            over.append(True)

    task: Any = SimpleNamespace(function=rests, args=(), kwargs={})
    step = steps.Step(SimpleNamespace(inside=None, aim=None), task)  # type: ignore[arg-type]
    if begun:
        step.send(None)
    step.gone = True
    monkeypatch.setattr(steps, "asyncio", SimpleNamespace(CancelledError=Interrupted))
    with pytest.raises(Stopped):
        step.send(None)
    assert inspect.getcoroutinestate(step.coroutine) == inspect.CORO_CLOSED
    assert over == [True] * begun

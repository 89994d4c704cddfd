"""From a call of a pool back to the loop of the task that awaits it, and what that loop may have come to."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
import trio
from poolkinds import KINDS, Make, sending
from pooltasks import VARIABLE, variable
from waiting import run, until, until_async

from fairlead import errors
from fairlead.pools import AutoPool, ProcessPool, SequentialPool, ThreadPool, from_thread

__all__ = ["sending"]  # a fixture

pytestmark = pytest.mark.pypy


def trio_run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        return await coroutine

    return trio.run(main)


in_asyncio_and_trio = pytest.mark.parametrize("run", [run, trio_run])


@pytest.fixture(params=["asyncio", "uvloop"])
def loop(request: pytest.FixtureRequest) -> Any:
    """Not closed with the test: what closes it is the test's."""
    return pytest.importorskip(request.param).new_event_loop()


@pytest.fixture(autouse=True)
def _checks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(from_thread, "CHECK_S", 0.001)


class Caller:
    """A call of a pool that is to call back when the gate opens, and what came of that."""

    def __init__(self, back: Callable[..., Awaitable[Any]]) -> None:
        self.begun, self.gate = threading.Event(), threading.Event()
        self.back = back
        self.outcome: list[Any] = []

    def __call__(self) -> None:
        self.begun.set()
        self.gate.wait(20)
        try:
            self.outcome.append(from_thread.run(self.back))
        except Exception as error:  # noqa: BLE001 - looked at by the test
            self.outcome.append(error)

    async def submit(self, pool: ThreadPool) -> asyncio.Task[None]:
        task = asyncio.ensure_future(pool.run(self))
        await until_async(self.begun.is_set)
        return task


async def forty_two() -> int:
    return 42


@pytest.mark.parametrize(
    ("run", "checkpoint"), [(run, lambda: asyncio.sleep(0)), (trio_run, trio.lowlevel.checkpoint)]
)
def test_call_goes_back_to_the_loop_that_awaits_it(
    run: Callable[..., Any], checkpoint: Callable[[], Awaitable[None]]
) -> None:
    async def where(n: int) -> tuple[int, int]:
        await checkpoint()
        return n, threading.get_ident()

    def work() -> tuple[tuple[int, int], int, int]:
        return from_thread.run(where, 3), from_thread.run_sync(threading.get_ident), threading.get_ident()

    async def main() -> tuple[tuple[int, int], int, int]:
        return await pool.run(work)

    with ThreadPool(1) as pool:
        (n, there), synchronous, inside = run(main())
        assert (n, there, synchronous) == (3, threading.get_ident(), threading.get_ident())
        assert inside != there
        with pytest.raises(errors.UsageError, match="no event loop to return to"):
            pool.submit(from_thread.run_sync, threading.get_ident).result()


def test_in_guests_of_asyncio_a_call_goes_back_to_trio() -> None:
    async def back() -> str:
        await trio.lowlevel.checkpoint()
        return "in trio"

    async def guest() -> str:
        return await pool.run(from_thread.run, back)

    async def main() -> str:
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        trio.lowlevel.start_guest_run(
            guest, run_sync_soon_threadsafe=loop.call_soon_threadsafe, done_callback=ended.set_result
        )
        return (await ended).unwrap()  # type: ignore[no-any-return]

    with ThreadPool(1) as pool:
        assert run(main()) == "in trio"


# a loop that has gone


def test_call_that_outlives_its_loop_raises_and_leaves_no_coroutine(monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)

    async def main() -> None:
        (await caller.submit(pool)).cancel()

    caller = Caller(forty_two)
    with ThreadPool(1) as pool:
        run(main())
        caller.gate.set()
    until(lambda: caller.outcome)  # a pool does not wait for a call whose task was cancelled
    (error,) = caller.outcome
    assert type(error) is errors.LoopClosedError
    gc.collect()
    assert not unraisable


@pytest.mark.filterwarnings("ignore:coroutine 'Pool.run' was never awaited", "ignore::ResourceWarning")
def test_loop_that_closes_while_it_has_a_call_ends_that(loop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    unraisable: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    begun = threading.Event()

    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    queued, under_way = Caller(forty_two), Caller(endless)

    async def main() -> set[Any]:
        await queued.submit(pool), await under_way.submit(pool)
        under_way.gate.set()
        await until_async(begun.is_set)
        return asyncio.all_tasks() - {asyncio.current_task()}

    with ThreadPool(2) as pool:
        tasks = loop.run_until_complete(main())
        queued.gate.set()
        until(lambda: pool.statistics().running == 2)
        loop.close()
        until(lambda: queued.outcome and under_way.outcome)
    assert [type(*caller.outcome) for caller in (queued, under_way)] == 2 * [errors.LoopClosedError]
    for task in tasks:
        task._log_destroy_pending = False  # it is meant to be
    assert not unraisable


def test_loop_that_stays_stopped_is_not_waited_for_and_does_not_make_the_call_later(
    loop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(from_thread, "STOPPED_S", 0.02)
    called: list[str] = []

    async def back() -> None:
        called.append("back")

    caller = Caller(back)
    with ThreadPool(1) as pool:
        task = loop.run_until_complete(caller.submit(pool))
        caller.gate.set()
        until(lambda: caller.outcome)
        (error,) = caller.outcome
        assert type(error) is errors.WaitTimeoutError
        assert str(error) == (
            "the event loop of the task that awaits this call was stopped, and not started again within "
            "0.02 s; the call is cancelled"
        )
        loop.run_until_complete(task)
    loop.close()
    assert not called


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


def test_loop_that_is_run_for_moments_does_not_stand_still(monkeypatch: pytest.MonkeyPatch) -> None:
    """As beside a GUI's own loop, or cell by cell."""
    monkeypatch.setattr(from_thread, "time", clock := Clock())
    monkeypatch.setattr(from_thread, "STOPPED_S", 3.0)
    loop = asyncio.new_event_loop()
    checks: list[Any] = []
    call_soon = loop.call_soon_threadsafe

    def noted(callback: Callable[..., object], *args: Any, **options: Any) -> Any:
        checks.append(callback)
        return call_soon(callback, *args, **options)

    async def moment() -> None:
        await asyncio.sleep(0)

    over: list[asyncio.Event] = []

    async def back() -> int:
        over.append(asyncio.Event())
        await over[0].wait()
        return 42

    caller = Caller(back)
    with ThreadPool(1) as pool:
        task = loop.run_until_complete(caller.submit(pool))
        monkeypatch.setattr(loop, "call_soon_threadsafe", noted)
        caller.gate.set()
        for _ in range(20):
            so_far = len(checks)
            until(lambda so_far=so_far: len(checks) > so_far)  # type: ignore[misc]
            clock.now += 1
            loop.run_until_complete(moment())
        over[0].set()
        loop.run_until_complete(task)
    loop.close()
    assert caller.outcome == [42]


def test_run_of_trio_that_is_over_ends_the_call() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pool.run, caller)
            while not caller.begun.is_set():
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    caller = Caller(forty_two)
    with ThreadPool(1) as pool:
        trio.run(main)
        caller.gate.set()
    until(lambda: caller.outcome)
    (error,) = caller.outcome
    assert type(error) is errors.LoopClosedError


def test_call_that_is_stopped_while_it_waits_cancels_what_it_waits_for() -> None:
    ended: list[str] = []
    begun = threading.Event()

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def main() -> None:
        task = asyncio.ensure_future(pool.run(from_thread.run, endless))
        await until_async(begun.is_set)
        task.cancel()
        await until_async(lambda: ended)

    with ThreadPool(1, interrupt=True) as pool:
        run(main())
    assert ended == ["cancelled"]


def test_call_that_is_stopped_as_it_submits_what_it_waits_for_cancels_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[str] = []
    begun = threading.Event()
    submit = asyncio.run_coroutine_threadsafe

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    def stopped(*args: Any) -> None:
        submit(*args)
        until(begun.is_set)
        raise StoppedThere

    async def main() -> None:
        with pytest.raises(StoppedThere):
            await pool.run(from_thread.run, endless)
        await until_async(lambda: ended)

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", stopped)
    with ThreadPool(1) as pool:
        run(main())


class StoppedThere(Exception):
    pass


# a loop that cannot be waited for


@in_asyncio_and_trio
def test_call_in_the_loops_own_thread_is_a_deadlock(run: Callable[..., Any]) -> None:
    async def main() -> None:
        with pytest.raises(errors.DeadlockError, match="the event loop of its own thread"):
            await pool.run(from_thread.run_sync, abs, -1)

    with SequentialPool() as pool:
        run(main())


def test_plain_function_of_an_async_pool_goes_back_to_another_loop_and_not_to_its_own() -> None:
    async def nested() -> int:
        with pytest.raises(errors.DeadlockError, match="the event loop of its own thread"):
            await pool.run(from_thread.run_sync, abs, -1)
        return 42

    async def main() -> tuple[int, int]:
        return await pool.run(from_thread.run_sync, threading.get_ident), await pool.run(nested)

    with KINDS["async"]() as pool:
        assert run(main()) == (threading.get_ident(), 42)


def test_call_made_elsewhere_is_refused(sending: Make) -> None:
    async def main() -> None:
        with pytest.raises(errors.UsageError, match="in a thread of the loop's interpreter"):
            await pool.run(from_thread.run_sync, abs, -1)

    with sending() as pool:
        run(main())


# a coroutine that needs the very pool whose thread waits for it


async def by_run(pool: ThreadPool, n: int) -> int:
    return await pool.run(abs, n)


async def by_a_future(pool: ThreadPool, n: int) -> int:
    return await pool.submit(abs, n)


async def by_a_stream(pool: ThreadPool, n: int) -> int:
    (result,) = [result async for result in pool.stream(abs, [n])]
    return result


async def by_another_pools_thread(pool: ThreadPool, n: int) -> int:
    with ThreadPool(1) as other:
        return await other.run(lambda: pool.submit(abs, n).result())


async def by_another_pools_call_back(pool: ThreadPool, n: int) -> int:
    with ThreadPool(1) as other:
        return await other.run(from_thread.run, by_run, pool, n)


async def by_the_loop(pool: ThreadPool, n: int) -> int:
    return await asyncio.get_running_loop().run_in_executor(pool, abs, n)


async def by_a_task(pool: ThreadPool, n: int) -> int:
    return await asyncio.ensure_future(pool.run(abs, n))


IN_ANY_LOOP = (by_run, by_a_future, by_a_stream, by_another_pools_thread, by_another_pools_call_back)


@pytest.mark.parametrize(
    ("run", "waits"),
    [(trio_run, waits) for waits in IN_ANY_LOOP]
    + [(run, waits) for waits in (*IN_ANY_LOOP, by_the_loop, by_a_task)],
)
def test_worker_that_waits_for_a_coroutine_of_its_own_pool_lends_its_place(
    run: Callable[..., Any], waits: Callable[[ThreadPool, int], Awaitable[int]]
) -> None:
    with ThreadPool(1) as pool:
        for n in (1, 2):  # again, by the thread that had lent it
            assert run(pool.run(from_thread.run, waits, pool, -n)) == n
        until(lambda: pool.statistics().started == 1)


def test_worker_lends_no_place_to_a_coroutine_that_does_not_wait_for_its_pool() -> None:
    async def back() -> tuple[int, ...]:
        queued = pool.submit(abs, -1)
        await asyncio.sleep(0)
        numbers = pool.statistics()
        assert await queued == 1
        return numbers.started, numbers.running, numbers.queued

    with ThreadPool(1) as pool:
        assert run(pool.run(from_thread.run, back)) == (1, 1, 1)


def test_worker_lends_no_place_to_what_a_coroutine_has_left_on_the_loop() -> None:
    left: list[asyncio.Task[int]] = []
    begins = asyncio.Event()

    async def beside() -> int:
        await begins.wait()
        return await pool.run(abs, -42)

    async def back() -> None:
        left.append(asyncio.ensure_future(beside()))

    def work() -> tuple[int, int]:
        from_thread.run(back)
        from_thread.run_sync(begins.set)
        until(lambda: pool.statistics().queued)
        from_thread.run_sync(int)  # in a step of the loop's after the one in which that call was queued
        numbers = pool.statistics()
        return numbers.started, numbers.queued

    async def main() -> tuple[tuple[int, int], int]:
        return await pool.run(work), await left[0]

    with ThreadPool(1) as pool:
        assert run(main()) == ((1, 1), 42)


# how a call knows its loop


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="cloudpickle does not load there")
@in_asyncio_and_trio
def test_auto_pool_that_chooses_threads_takes_the_loop_and_the_context_along(
    run: Callable[..., Any],
) -> None:
    lock = threading.Lock()  # so that it cannot be sent

    def work(n: int) -> tuple[int, str, int]:
        with lock:
            return n, VARIABLE.get(), from_thread.run_sync(threading.get_ident)

    async def main() -> list[tuple[int, str, int]]:
        VARIABLE.set("travelled")
        return [await pool.run(work, n) for n in range(8)]

    with AutoPool(2) as pool:
        outcome = run(main())
        assert pool.choice is not None
        assert str(pool.choice.kind) == "threads"
    assert outcome == [(n, "travelled", threading.get_ident()) for n in range(8)]


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="cloudpickle does not load there")
def test_all_calls_of_an_auto_pool_see_the_variables_that_the_first_saw() -> None:
    async def main() -> list[str]:
        VARIABLE.set("stays here")
        return [await pool.run(variable) for _ in range(3)]

    with AutoPool(1) as pool:
        assert run(main()) == ["stays here"] * 3


def test_call_with_chosen_variables_goes_back_too() -> None:
    async def main() -> int:
        return await pool.with_options(context=[VARIABLE]).run(from_thread.run_sync, threading.get_ident)

    with ThreadPool(1) as pool:
        assert run(main()) == threading.get_ident()


@pytest.mark.skipif("processes" not in KINDS, reason="no processes here")
@pytest.mark.parametrize("chosen", [True, [VARIABLE]])
def test_loop_is_not_sent_with_the_context_of_a_call(chosen: Any) -> None:
    def work() -> str:
        VARIABLE.set("travelled")
        return elsewhere.with_options(context=chosen).submit(variable).result()

    with ThreadPool(1) as pool, ProcessPool(1) as elsewhere:

        async def main() -> str:
            return await pool.run(work)

        assert run(main()) == "travelled"

"""Condition: who is notified, in which order the lock goes on, and that it is always held afterwards."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import trio
import trio.testing
from endings import HandlerRan, handling, interrupting
from waiting import Thread, run, until, until_async, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import Condition, Lock, RLock

pytestmark = pytest.mark.ends_and_free


@pytest.fixture(params=[Lock, RLock])
def condition(request: pytest.FixtureRequest) -> Condition:
    return Condition(request.param())


def waiting(condition: Condition, many: int) -> Callable[[], bool]:
    """The state that so many wait and the lock is free, so that all of them have let go of it."""
    return lambda: condition.statistics().waiting == many and not condition.locked()


def free(condition: Condition) -> bool:
    return not condition.locked() and condition.statistics().waiting == 0


def in_thread(condition: Condition, order: list[str], name: str = "thread", **how: Any) -> Thread:
    def body() -> bool:
        with condition:
            notified = condition.wait(**how)
            assert condition.locked()
            order.append(name)
            return notified

    return Thread(body)


async def in_task(condition: Condition, order: list[str], name: str = "task") -> bool:
    async with condition:
        notified = await condition.wait_async()
        assert condition.locked()
        order.append(name)
        return notified


def test_notify_all_wakes_all_and_notify_of_many_so_many(condition: Condition) -> None:
    order: list[str] = []
    threads = []
    for number in range(5):
        threads.append(in_thread(condition, order))
        until(waiting(condition, number + 1))
    with condition:
        condition.notify(0)
        condition.notify(2)
        assert condition.statistics().waiting == 3
    until(lambda: len(order) == 2)
    with condition:
        condition.notify_all()
    for thread in threads:
        assert thread.result() is True
    with condition:
        condition.notify(1000)  # to nobody, and kept by nothing
        assert condition.wait(timeout=0.001) is False


def test_a_notification_does_not_reach_later_waiters(condition: Condition) -> None:
    order: list[str] = []
    early = in_thread(condition, order, "early")
    until(waiting(condition, 1))
    with condition:
        condition.notify()
        assert condition.wait(timeout=0.001) is False or order == ["early"]
    assert early.result() is True


@pytest.mark.parametrize("how", ["wait", "wait_async", "notify", "notify_all"])
def test_without_the_lock_it_is_refused(condition: Condition, how: str) -> None:
    async def main() -> None:
        await condition.wait_async()

    with pytest.raises(errors.NotHeldError, match="un-acquired"):
        run(main()) if how == "wait_async" else getattr(condition, how)()
    with pytest.raises(RuntimeError):
        run(main()) if how == "wait_async" else getattr(condition, how)()
    assert free(condition)


def test_an_rlock_held_by_another_is_not_ones_own() -> None:
    condition = Condition()
    Thread(condition.acquire).result()
    for call in (condition.wait, condition.notify, condition.notify_all, condition.release):
        with pytest.raises(errors.NotHeldError):
            call()

    async def main() -> None:
        with pytest.raises(errors.NotHeldError):
            await condition.wait_async()
        with pytest.raises(errors.NotHeldError):
            condition.notify()

    run(main())


def test_rlock_is_let_go_entirely_and_taken_again_as_often() -> None:
    lock = RLock()
    condition = Condition(lock)

    def thread() -> None:
        with condition, condition, condition:
            assert condition.wait(30)
            assert lock.statistics().depth == 3

    async def task() -> None:
        async with condition, condition, condition:
            assert await condition.wait_async()
            assert lock.statistics().depth == 3

    for how in (lambda: thread(), lambda: run(task()), lambda: trio.run(task)):
        one = Thread(how)
        until(waiting(condition, 1))
        with condition:
            condition.notify()
        one.result()
        assert lock.statistics()[:3] == (False, 0, 0)


def test_wait_for_returns_what_the_predicate_said_last(condition: Condition) -> None:
    values: list[Any] = [0, ""]
    asked = []

    def predicate() -> Any:
        assert condition.locked()
        asked.append(1)
        return values[-1]

    def thread() -> Any:
        with condition:
            return condition.wait_for(predicate)

    async def task() -> Any:
        async with condition:
            return await condition.wait_for_async(predicate)

    threads = [Thread(thread), Thread(run, task())]
    until(waiting(condition, 2))
    with condition:
        condition.notify_all()
    until(lambda: len(asked) == 4 and waiting(condition, 2)())
    with condition:
        values.append("found")
        condition.notify_all()
    assert [one.result() for one in threads] == ["found"] * 2
    with condition:
        assert condition.wait_for(lambda: "", timeout=0.001) == ""
        assert condition.wait_for(lambda: "at once", timeout=0) == "at once"


def test_cancelled_while_it_takes_the_lock_again_holds_it_and_notifies_the_next(condition: Condition) -> None:
    order: list[str] = []

    async def first() -> None:
        async with condition:
            try:
                await condition.wait_async()
            finally:
                assert condition.locked()
                order.append("first ends")

    async def main() -> None:
        task = asyncio.ensure_future(first())
        await until_async(waiting(condition, 1))
        second = asyncio.ensure_future(in_task(condition, order, "second"))
        await until_async(waiting(condition, 2))
        async with condition:
            condition.notify(1)
            for _ in range(3):  # it waits for the lock, and is cancelled as often as one likes
                await asyncio.sleep(0)
                task.cancel()
            await asyncio.sleep(0)
            assert (order, task.done()) == ([], False)
        with pytest.raises(asyncio.CancelledError):
            await task
        await second
        assert order == ["first ends", "second"]
        assert free(condition)

    run(main())


def test_trio_cancellation_comes_through_with_the_lock_held(condition: Condition) -> None:
    order: list[str] = []

    async def first(scope: trio.CancelScope) -> None:
        with scope:
            async with condition:
                try:
                    await condition.wait_async()
                finally:
                    assert condition.locked()
                    order.append("first ends")

    async def main() -> None:
        scope = trio.CancelScope()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(first, scope)
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(in_task, condition, order, "second")
            await trio.testing.wait_all_tasks_blocked()
            async with condition:
                condition.notify(1)
                scope.cancel()
                await trio.testing.wait_all_tasks_blocked()
                assert order == []
        assert scope.cancelled_caught
        assert order == ["first ends", "second"]
        with trio.move_on_after(0.001) as late:
            async with condition:
                await condition.wait_async()
        assert late.cancelled_caught
        assert free(condition)

    trio.run(main)


def notify(condition: Condition) -> None:
    with condition:
        condition.notify(1)


def test_notice_that_comes_while_a_signal_is_handled_is_not_lost(condition: Condition) -> None:
    with handling(lambda: Thread(notify, condition).result()):
        sender = interrupting(waiting(condition, 1))
        with condition:
            assert condition.wait(30) is True
        sender.result()


def test_exception_of_a_signal_handler_ends_the_wait_with_the_lock_held_and_passes_the_notice_on(
    condition: Condition,
) -> None:
    order: list[str] = []

    def stop() -> None:
        Thread(notify, condition).result()
        raise HandlerRan

    def others() -> None:
        until(waiting(condition, 1))
        second = in_thread(condition, order, "second")
        interrupting(waiting(condition, 2)).result()
        second.result()

    with handling(stop):
        other = Thread(others)
        with condition:
            with pytest.raises(HandlerRan):
                condition.wait()
            assert condition.locked()
        other.result()
    assert order == ["second"]
    assert free(condition)


def test_exception_of_a_signal_handler_while_it_takes_the_lock_again_comes_when_it_is_held() -> None:
    lock, order = Lock(), []
    condition, came = Condition(lock), []

    def stop() -> None:
        came.append(True)
        raise HandlerRan

    def other() -> None:
        until(waiting(condition, 1))
        second = in_thread(condition, order, "second")
        until(waiting(condition, 2))
        with condition:
            condition.notify()
            interrupting(lambda: lock.statistics().waiting == 1).result()
            until(lambda: came)
            until(lambda: lock.statistics().waiting == 1)  # it is back in the queue
        assert second.result() is True  # the notice of the first

    with handling(stop):
        sender = Thread(other)
        with condition:
            with pytest.raises(HandlerRan):
                condition.wait()
            assert condition.locked()
        sender.result()
    assert order == ["second"]
    assert free(condition)


def test_thread_s_wait_in_a_task_is_refused(condition: Condition) -> None:
    async def main() -> None:
        async with condition:
            with pytest.raises(errors.DeadlockError, match="_async"):
                condition.wait(1)
            assert condition.locked()
        assert free(condition)

    run(main())


async def once_in_task(condition: Condition) -> None:
    await in_task(condition, [])


async def twice_in_task(condition: Condition) -> None:
    async with condition:
        await in_task(condition, [])


async def without_a_block(condition: Condition) -> None:
    await condition.acquire_async()
    await condition.wait_async()


@pytest.mark.parametrize(
    ("make", "wait"),
    [(Lock, once_in_task), (RLock, once_in_task), (RLock, twice_in_task), (Lock, without_a_block)],
    ids=["Lock", "RLock", "twice", "without-a-block"],
)
def test_closing_a_loop_with_a_waiter_releases_no_other_holders_lock(make: Any, wait: Any) -> None:
    condition = Condition(make())
    loop = asyncio.new_event_loop()
    task = loop.create_task(wait(condition))
    loop.run_until_complete(until_async(waiting(condition, 1)))
    keep = threading.Event()

    def hold() -> None:
        with condition:
            keep.wait(30)

    holder = Thread(hold)
    until(condition.locked)
    loop.close()
    assert condition.statistics().waiting == 0
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    del task
    gc.collect()  # the coroutine is closed: GeneratorExit
    assert condition.locked()
    keep.set()
    holder.result()
    assert free(condition)

    async def again() -> None:
        async with condition:
            await asyncio.sleep(0)

    if make is Lock:  # any thread may release it
        closed_within = again()
        closed_within.send(None)
        closed_within.close()
        assert free(condition)
    run(again())
    assert free(condition)


STARTS: dict[str, list[Callable[..., Thread]]] = {
    "threads": [in_thread],
    "asyncio loops": [lambda *how: Thread(run, in_task(*how))],
    "all": [in_thread, lambda *how: Thread(run, in_task(*how)), lambda *how: Thread(trio.run, in_task, *how)],
}
TWELVE = [str(number) for number in range(12)]


@pytest.mark.parametrize("kinds", STARTS.values(), ids=STARTS.keys())
def test_notify_all_lets_all_have_the_lock_in_the_order_of_waiting(
    kinds: list[Callable[..., Thread]],
) -> None:
    for _ in range(5):
        condition, order = Condition(), []
        threads = []
        for number, name in enumerate(TWELVE):
            threads.append(kinds[number % len(kinds)](condition, order, name))
            until(waiting(condition, number + 1))
        with condition:
            condition.notify_all()
            assert condition.statistics().waiting == 0
        for thread in threads:
            thread.result()
        assert order == TWELVE


def test_waiter_that_found_its_predicate_false_is_handed_the_lock_at_each_later_notification(
    condition: Condition,
) -> None:
    """It has waited for long, though not since it asked: no newcomer passes it."""
    asked: list[bool] = []

    def take() -> None:
        with condition:
            condition.wait_for(lambda: asked.append(True) or len(asked) > 40)

    waiter = Thread(take)
    until(waiting(condition, 1))
    begun = time.monotonic()
    until(lambda: time.monotonic() - begun > 0.002)
    for before in range(1, 41):
        until(lambda: len(asked) == before and waiting(condition, 1)())  # noqa: B023
        with condition:
            condition.notify()
        if condition.acquire(False):
            assert len(asked) > before
            condition.release()
    waiter.result()


def test_notify_all_lets_tasks_of_one_trio_have_the_lock_in_the_order_of_waiting() -> None:
    """trio shuffles the tasks that it wakes at once."""

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in TWELVE:
                nursery.start_soon(in_task, condition, order, name)
                await trio.testing.wait_all_tasks_blocked()
            async with condition:
                condition.notify_all()

    for _ in range(5):
        condition, order = Condition(), []
        trio.run(main)
        assert order == TWELVE


def test_notified_waiter_that_is_cancelled_before_it_is_woken_notifies_the_next() -> None:
    async def main() -> None:
        condition, woken = Condition(Lock()), []
        tasks = [await waiting_task(condition, in_task(condition, woken, name)) for name in "abcd"]
        async with condition:
            condition.notify(3)
            tasks[1].cancel()
        await asyncio.wait(tasks)
        assert woken == ["a", "c", "d"]

    run(main())


def test_waiter_that_times_out_between_its_notification_and_the_lock_counts_as_notified() -> None:
    condition, results = Condition(Lock()), []

    def wait(timeout: float | None) -> None:
        with condition:
            results.append(condition.wait(timeout))

    first = waiting_thread(condition, wait, None)
    timeout, notified = 0.1, False
    while not notified:  # on a busy machine the second's time may be over before this thread has the lock
        timeout *= 2
        second = Thread(wait, timeout)
        until(lambda: condition.statistics().waiting == 2 or results)
        with condition:
            if notified := condition.statistics().waiting == 2:
                condition.notify_all()
                assert condition.statistics().lock.waiting == 2
                time.sleep(timeout + 0.05)  # the second's time is over while it waits for the lock
        second.result()
        if not notified:
            assert results.pop() is False
    first.result()
    assert results == [True, True]
    assert condition.statistics().waiting == 0

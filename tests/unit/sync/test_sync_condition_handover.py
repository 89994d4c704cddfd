"""Whom a Condition's notice goes to, and in which order the lock does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import trio
import trio.testing
from conditions import waiting
from waiting import Thread, run, until, until_async

from fairlead.sync import Condition, Lock


def notify_all_of(kind: str, count: int) -> list[int]:
    """In which order so many waiters, numbered in the order of waiting, have the lock."""
    condition, order, threads = Condition(), [], []

    async def wait(number: int) -> None:
        async with condition:
            await condition.wait_async()
            order.append(number)

    def wait_in_thread(number: int) -> None:
        with condition:
            condition.wait()
            order.append(number)

    async def wait_in_one_trio() -> None:
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(wait, number)
                await trio.testing.wait_all_tasks_blocked()
            async with condition:
                condition.notify_all()

    if kind == "trio":
        trio.run(wait_in_one_trio)
        return order
    starts: dict[str, Callable[[int], Thread]] = {
        "threads": lambda number: Thread(wait_in_thread, number),
        "asyncio loops": lambda number: Thread(lambda: run(wait(number))),
        "trio loops": lambda number: Thread(trio.run, wait, number),
    }
    kinds = list(starts) if kind == "all" else [kind]
    for number in range(count):
        threads.append(starts[kinds[number % len(kinds)]](number))
        until(waiting(condition, number + 1))
    with condition:
        condition.notify_all()
        assert condition.statistics().waiting == 0
    for thread in threads:
        thread.result()
    return order


@pytest.mark.parametrize("kind", ["threads", "asyncio loops", "trio", "all"])
def test_notify_all_lets_all_have_the_lock_in_the_order_of_waiting(kind: str) -> None:
    """trio shuffles the tasks that it wakes at once, and threads compete."""
    for _ in range(5):
        assert notify_all_of(kind, 12) == list(range(12))


def test_notified_waiter_that_is_cancelled_before_it_is_woken_notifies_the_next() -> None:
    async def main() -> None:
        condition, woken = Condition(Lock()), []

        async def wait(number: int) -> None:
            async with condition:
                await condition.wait_async()
                woken.append(number)

        tasks = []
        for number in range(4):
            tasks.append(asyncio.ensure_future(wait(number)))
            await until_async(lambda number=number: condition.statistics().waiting == number + 1)
        async with condition:
            condition.notify(3)
            tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert woken == [0, 2, 3]

    run(main())


def test_waiter_that_times_out_between_its_notification_and_the_lock_counts_as_notified() -> None:
    condition, results = Condition(Lock()), []

    def wait(timeout: float | None) -> None:
        with condition:
            results.append(condition.wait(timeout))

    first = Thread(wait, None)
    until(lambda: condition.statistics().waiting == 1)
    timeout, notified = 0.1, False
    while not notified:  # on a busy machine the second's time may be over before this thread has the lock
        timeout *= 2
        second = Thread(wait, timeout)
        until(lambda: condition.statistics().waiting == 2 or results)
        with condition:
            if notified := condition.statistics().waiting == 2:
                condition.notify_all()
                until(lambda: condition.statistics().lock.waiting == 2)  # the second's time is over by then
        second.result()
        if not notified:
            assert results.pop() is False
    first.result()
    assert results == [True, True]
    assert condition.statistics().waiting == 0

"""select: one is taken, of the others nothing, whatever comes at once and whoever gives up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio
from endings import HandlerRan, handling, interrupting
from waiting import Thread, run, until, until_async, waiters, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import (
    Barrier,
    CountdownEvent,
    Event,
    Lock,
    Queue,
    RLock,
    RWLock,
    Semaphore,
    select,
    select_async,
)
from fairlead.sync.extra import Combiner

pytestmark = pytest.mark.ends_and_free


def waiting(*primitives: Any) -> list[int]:
    return [waiters(one) for one in primitives]


def test_what_is_there_is_taken_and_nothing_of_the_others() -> None:
    queue, lock, event = Queue[int](), Lock(), Event()
    assert select(queue.get_async(), lock.acquire_async(), event.wait_async()) == (1, True)
    assert lock.locked()
    queue.put(5)
    found = select(queue.get_async(), lock.acquire_async())
    assert found is not None
    assert (found.case, found.value) == (0, 5)
    assert select(queue.get_async(), lock.acquire_async(), timeout=0) is None
    assert select(queue.get_async(), lock.acquire_async(), timeout=1e-6) is None
    assert waiting(queue, lock, event) == [0, 0, 0]


def test_case_with_a_name_is_called_by_it() -> None:
    queue, stop, lock = Queue[int](), Event(), Lock()
    queue.put(5)
    assert select(job=queue.get_async(), stop=stop.wait_async()) == ("job", 5)
    assert select(queue.get_async(), timeout=0.001, stop=stop.wait_async()) is None
    assert select(queue.get_async(), lock=lock.acquire_async()) == ("lock", True)
    lock.release()
    assert run(select_async(queue.get_async(), lock.acquire_async(), stop=stop.wait_async())) == (1, True)
    stop.set()
    assert run(select_async(queue.get_async(), stop=stop.wait_async())) == ("stop", True)
    with pytest.raises(TypeError, match=r"select_async\(\) takes no timeout"):
        select_async(stop.wait_async(), timeout=1)  # type: ignore[arg-type] # that is what is tested
    with pytest.raises(ValueError, match="twice"):
        select(twice := stop.wait_async(), again=twice)


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
def test_of_two_that_are_granted_at_once_one_is_taken_and_the_other_stays(fair: bool) -> None:
    async def main() -> None:
        first, second = Semaphore(0, fair=fair), Semaphore(0, fair=fair)
        for order in ((first, second), (second, first)):
            task = await waiting_task(second, select_async(first.acquire_async(), second.acquire_async()))
            for one in order:
                one.release()
            found = await task
            assert first.statistics().value + second.statistics().value == 1
            assert (first, second)[1 - found.case].acquire(False)
        assert waiting(first, second) == [0, 0]

    run(main())


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
def test_grant_of_a_case_that_lost_goes_to_the_waiter_behind_it(fair: bool) -> None:
    async def main() -> None:
        event, lock = Event(), Lock(fair=fair)
        await lock.acquire_async()
        task = await waiting_task(lock, select_async(event.wait_async(), lock.acquire_async()))
        behind = waiting_thread(lock, lock.acquire)
        event.set()  # decided, and the task has not resumed: it is in the lock's queue still
        lock.release()
        await until_async(lambda: not behind.is_alive())
        assert behind.result() is True
        assert await task == (0, True)
        assert lock.statistics()[:2] == (True, 0)

    run(main())


@pytest.mark.parametrize("late", [False, True], ids=["pending", "granted"])
def test_cancelled_while_several_are_pending_or_one_was_granted_takes_nothing(late: bool) -> None:
    async def main() -> None:
        queue, lock, rw = Queue[int](), Lock(), RWLock()
        lock.acquire()
        rw.writing.acquire_async()  # never awaited: nothing
        selection = select_async(queue.get_async(), lock.acquire_async(), Event().wait_async())
        task = await waiting_task(queue, selection)
        if late:
            queue.put(1)
            lock.release()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        assert waiting(queue, lock) == [0, 0]
        if late:
            assert queue.get_nowait() == 1
            assert lock.acquire(False)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await select_async(queue.get_async(), lock.acquire_async())
        assert waiting(queue, lock) == [0, 0]

    run(main())


def test_none_of_those_that_are_ready_is_preferred() -> None:
    queues = [Queue[int]() for _ in range(3)]
    for queue in queues:
        for number in range(200):
            queue.put(number)
    counts = [0, 0, 0]
    for _ in range(200):
        found = select(*(queue.get_async() for queue in queues))
        assert found is not None
        counts[found.case] += 1
    assert min(counts) > 30


def test_of_a_queue_that_was_shut_down_its_error_is_taken() -> None:
    queue, other = Queue[int](), Queue[int]()
    thread = Thread(select, queue.get_async(), other.get_async())
    until(lambda: waiting(queue, other) == [1, 1])
    queue.shutdown()
    with pytest.raises(errors.QueueShutDown):
        thread.result()
    assert waiting(other) == [0]

    async def main() -> None:
        with pytest.raises(errors.QueueShutDown):
            await select_async(other.get_async(), queue.get_async())
        with pytest.raises(errors.QueueShutDown):
            await select_async(other.get_async(), queue.put_async(1))

    run(main())


def test_tasks_of_trio_choose_and_hold_what_they_took() -> None:
    rlock, rw, got = RLock(), RWLock(), []

    async def main() -> None:
        async with rw.upgradable:
            got.append(await select_async(Event().wait_async(), rw.writing.acquire_async()))
            rw.writing.release()
        got.append(await select_async(Event().wait_async(), rlock.acquire_async()))
        rlock.release()
        with trio.move_on_after(0):
            await select_async(Event().wait_async(), CountdownEvent(1).wait_async())
            got.append("nothing was there")

    trio.run(main)
    assert got == [(1, True), (1, True)]


def test_bad_cases_are_refused_and_spend_nothing() -> None:
    lock = Lock()
    ticket = lock.acquire_async()
    with pytest.raises(TypeError, match="needs something"):
        select()
    with pytest.raises(TypeError, match="not a"):
        select(ticket, lock)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="given twice"):
        select(ticket, ticket)
    for wrong in (Barrier(2).wait_async(), Combiner().run_async(int)):
        with pytest.raises(errors.UsageError, match="cannot be selected"):
            select(ticket, wrong)
    for timeout, error in ((float("nan"), ValueError), ("1", TypeError)):
        with pytest.raises(error):
            select(ticket, timeout=timeout)  # type: ignore[arg-type]
    assert select(ticket) == (0, True)
    with pytest.raises(RuntimeError, match="awaited before"):
        select(ticket)

    async def main() -> None:
        selection = select_async(Event().wait_async(), Semaphore().acquire_async())
        assert await selection == (1, True)
        with pytest.raises(RuntimeError, match="reuse"):
            await selection

    run(main())


def test_what_a_signal_handler_grants_before_it_raises_goes_back() -> None:
    lock, semaphore = Lock(), Semaphore(0, fair=True)
    lock.acquire()

    def grant() -> None:
        semaphore.release()
        raise HandlerRan

    with handling(grant):
        sender = interrupting(lambda: waiting(lock, semaphore) == [1, 1])
        with pytest.raises(HandlerRan):
            select(lock.acquire_async(), semaphore.acquire_async())
        sender.result()
    assert waiting(lock, semaphore) == [0, 0]
    assert semaphore.acquire(False)

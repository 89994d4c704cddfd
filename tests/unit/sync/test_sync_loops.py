"""Loops that end, move, sleep or are several, and what their tasks waited for."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Generator
from typing import Any

import pytest
from waiting import Thread, run, until_async, waiting_task

from fairlead.sync import Semaphore
from fairlead.wait import Mailbox, Operation, add_loop

pytestmark = pytest.mark.ends_and_free

kinds = pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])


def test_loop_that_moved_to_another_thread_is_woken_from_the_first() -> None:
    """The first thread was the loop's own when the task began to wait."""
    semaphore, running = Semaphore(0), Semaphore(0)
    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(waiting_task(semaphore, semaphore.acquire_async()))

    async def rest() -> None:
        running.release()
        await task

    other = Thread(lambda: loop.run_until_complete(asyncio.wait_for(rest(), 30)))
    assert running.acquire(timeout=30)
    semaphore.release()
    other.result()
    loop.close()


def test_many_grants_of_one_moment_arrive_in_order_though_some_are_cancelled() -> None:
    async def main() -> None:
        semaphore, order = Semaphore(0, fair=True), []

        async def take(me: int) -> None:
            await semaphore.acquire_async()
            order.append(me)

        tasks = [asyncio.ensure_future(take(me)) for me in range(50)]
        await until_async(lambda: semaphore.statistics().waiting == 50)
        tasks[2].cancel()
        tasks[3].cancel()
        Thread(semaphore.release, 48).result()
        await asyncio.wait(tasks)
        assert order == [0, 1, *range(4, 50)]
        assert semaphore.statistics()[:2] == (0, 0)

    run(main())


@kinds
def test_closing_a_loop_that_was_notified_of_a_grant_passes_the_permit_on(fair: bool) -> None:
    """The future is completed and the task would resume in the next turn, which never comes."""
    semaphore = Semaphore(0, fair=fair)
    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(waiting_task(semaphore, semaphore.acquire_async()))
    semaphore.release()

    async def stop_when_told() -> None:
        while task._fut_waiter is not None and not task._fut_waiter.done():
            await asyncio.sleep(0)

    stopper = loop.create_task(stop_when_told())
    stopper.add_done_callback(lambda _: loop.stop())
    # the task's own callback was scheduled by the same turn; both orders are good
    loop.run_forever()
    taken = task.done()
    loop.close()
    assert semaphore.statistics()[:2] == (0 if taken else 1, 0)
    if not taken:
        task.get_coro().close()
        task._log_destroy_pending = False


def test_loop_that_is_collected_with_a_waiter_loses_nothing() -> None:
    semaphore = Semaphore(0)

    def lose() -> weakref.ref[Any]:
        loop = asyncio.new_event_loop()
        task = loop.run_until_complete(waiting_task(semaphore, semaphore.acquire_async()))
        task._log_destroy_pending = False
        loop._selector.close()  # so that nothing warns; the loop itself is not closed
        loop._ssock.close()
        loop._csock.close()
        loop._closed = True
        return weakref.ref(loop)

    lost = lose()
    gc.collect()
    assert lost() is None
    semaphore.release()
    assert semaphore.statistics()[:2] == (1, 0)


class Future:
    """Of a loop that has ended: nothing completes it."""

    def done(self) -> bool:
        return False

    def set_result(self, value: None) -> None: ...

    def __await__(self) -> Generator[None, None, None]:
        yield


ended: list[Mailbox] = []
add_loop(lambda: ended[0] if ended else None)


def ended_loop(semaphore: Semaphore) -> tuple[Mailbox, Operation[Any]]:
    """The port of a loop of this thread, and what a task waits for that will not go on."""
    port, ticket = Mailbox(Future, lambda: False), semaphore.acquire_async()
    ended.append(port)
    ticket.send(None)
    ended.clear()
    return port, ticket


def test_release_as_the_port_of_an_ended_loop_goes_finds_no_port() -> None:
    semaphore, called = Semaphore(0), []
    port, ticket = ended_loop(semaphore)
    gone = weakref.ref(port, lambda _: called.append(semaphore.release()))
    assert semaphore.statistics().waiting == 1
    del port
    assert (gone(), called) == (None, [None])
    ticket.close()
    assert semaphore.statistics()[:2] == (1, 0)


def test_release_while_another_thread_drops_the_port_of_an_ended_loop_loses_nothing() -> None:
    semaphores = [Semaphore(0) for _ in range(300)]
    ports, tickets = map(list, zip(*map(ended_loop, semaphores), strict=True))
    together = threading.Barrier(2)

    def drop() -> None:
        together.wait(30)
        ports.clear()

    dropping = Thread(drop)
    together.wait(30)
    for semaphore in semaphores:
        semaphore.release()
    dropping.result()
    for ticket in tickets:
        ticket.close()
    assert all(semaphore.statistics()[:2] == (1, 0) for semaphore in semaphores)

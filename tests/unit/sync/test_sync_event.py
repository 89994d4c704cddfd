"""Event in threads and tasks."""

from __future__ import annotations

import asyncio

import pytest
from waiting import Thread, until, until_async, waiting_thread

from fairlead.sync import Event, select

pytestmark = pytest.mark.pypy


def test_event_is_set_and_cleared() -> None:
    event = Event()
    assert not event.is_set()
    assert event.wait(0) is False
    assert event.wait(timeout=0.001) is False
    event.set()
    event.set()
    assert event.is_set()
    assert event.wait() is True
    event.clear()
    assert event.wait(0) is False
    assert event.statistics() == (False, 0)


def test_all_waiters_wake_even_if_the_event_is_cleared_at_once() -> None:
    event = Event()
    threads = [Thread(event.wait) for _ in range(20)]

    async def wait_async() -> bool:
        return await event.wait_async()

    async def main() -> None:
        tasks = [asyncio.ensure_future(wait_async()) for _ in range(20)]
        await until_async(lambda: event.statistics().waiting == 40)
        event.set()
        event.clear()
        assert await asyncio.gather(*tasks) == [True] * 20

    asyncio.run(main())
    assert [thread.result() for thread in threads] == [True] * 20
    assert event.statistics() == (False, 0)


def test_waiters_that_leave_break_no_chain_of_wake_ups() -> None:
    for _ in range(5):
        event, other = Event(), Event()
        waiting = [Thread(event.wait) for _ in range(20)]
        choosing = [Thread(select, event.wait_async(), other.wait_async()) for _ in range(20)]
        leaving = [Thread(event.wait, 0.01) for _ in range(20)]
        until(lambda event=event: event.statistics().waiting >= 40)  # type: ignore[misc]
        event.set()
        assert [thread.result() for thread in waiting] == [True] * 20
        assert [thread.result() for thread in choosing] == [(0, True)] * 20
        assert all(thread.result() in {True, False} for thread in leaving)
        assert other.statistics().waiting == 0


def test_wait_after_a_clear_lasts_until_the_next_set() -> None:
    event = Event()
    event.set()
    event.clear()
    thread = waiting_thread(event, event.wait)
    event.set()
    assert thread.result() is True

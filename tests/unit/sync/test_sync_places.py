"""A waiter keeps its place in the queue while its thread runs a signal handler, and afterwards."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from blockingcalls import Call, each
from endings import handling, interrupting
from waiting import PATIENCE_S, Inside, Thread, until

from fairlead.sync import CountdownEvent, Event, RWLock, Semaphore

pytestmark = pytest.mark.pypy


@pytest.mark.parametrize("moment", ["while it runs", "afterwards"])
@each(lambda call: (call.each or "fair" in call.name) and not call.alone)
def test_first_waiter_is_served_first_though_its_thread_runs_a_signal_handler(
    call: Call, moment: str
) -> None:
    blocked, order, handled = call.make(2), [], []
    undo = blocked.undo

    def note(value: Any) -> None:
        order.append(threading.current_thread())
        undo(value)

    def handler() -> None:
        handled.append(1)
        if moment == "while it runs":
            blocked.end()

    def then() -> None:
        if moment == "afterwards":
            until(lambda: handled and blocked.waiting() == 2)
            blocked.end()
        until(lambda: order)
        if call.each:
            blocked.end()

    def queue_behind() -> Thread:
        until(lambda: blocked.waiting() == 1)
        return Thread(blocked.take)

    blocked.undo = note
    with handling(handler):
        behind = Thread(queue_behind)
        sender = interrupting(lambda: blocked.waiting() == 2, then)
        assert blocked.got(blocked.take())
        sender.result()
    second = behind.result()
    assert blocked.got(second.result())
    assert order == [threading.main_thread(), second]


def test_waiter_for_some_permits_gets_them_from_its_handler_before_one_for_more() -> None:
    semaphore = Semaphore(0)

    def queue_behind() -> Thread:
        until(lambda: semaphore.statistics().waiting == 1)
        return Thread(semaphore.acquire, n=5)

    with handling(lambda: semaphore.release(4)):
        behind = Thread(queue_behind)
        sender = interrupting(lambda: semaphore.statistics().waiting == 2)
        assert semaphore.acquire(n=3, timeout=PATIENCE_S)
        sender.result()
    assert semaphore.statistics()[:2] == (1, 1)
    semaphore.release(4)
    assert behind.result().result() is True


def test_pulse_of_a_signal_handler_ends_the_wait_of_its_own_thread() -> None:
    event, countdown = Event(), CountdownEvent(1)
    pulses = {event: (event.set, event.clear), countdown: (countdown.count_down, countdown.count_up)}
    for one, pulse in pulses.items():
        with handling(lambda pulse=pulse: [step() for step in pulse]):  # type: ignore[misc]
            sender = interrupting(lambda one=one: one.statistics().waiting == 1)  # type: ignore[misc]
            assert one.wait(PATIENCE_S) is True
            sender.result()
        assert not one.is_set()


def test_no_reader_begins_while_a_waiting_writer_runs_a_signal_handler() -> None:
    lock, got = RWLock(), []
    reader = Inside(lock.reading).wait()

    def handler() -> None:
        got.append(Thread(lock.reading.acquire, False).result())
        reader.go()

    with handling(handler):
        sender = interrupting(lambda: lock.statistics().waiting == 1)
        with lock.writing:
            sender.result()
    assert got == [False]

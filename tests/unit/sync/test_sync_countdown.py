"""Latch and CountdownEvent: who is woken when the count comes to nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import trio
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import CountdownEvent, Latch

pytestmark = pytest.mark.ends_and_free

kinds = pytest.mark.parametrize("kind", [Latch, CountdownEvent])


@kinds
def test_all_kinds_of_waiters_are_woken_by_the_last_and_by_no_earlier_one(kind: Any) -> None:
    subject = kind(3)

    async def task() -> bool:
        return bool(await subject.wait_async())

    waiters = [
        Thread(subject.wait),
        Thread(subject.wait, 30),
        Thread(run, task()),
        Thread(trio.run, task),
    ]
    until(lambda: subject.statistics().waiting == 4)
    subject.count_down()
    subject.count_down()
    assert subject.statistics() == (1, 4)
    assert not subject.is_set()
    subject.count_down()
    assert [one.result() for one in waiters] == [True] * 4
    assert subject.is_set()
    assert subject.wait() is subject.wait(0) is run(task()) is True
    assert subject.statistics() == (0, 0)


@kinds
def test_counting_below_nothing_is_refused_and_counts_nothing(kind: Any) -> None:
    subject = kind(3)
    with pytest.raises(errors.TooManyReleasesError, match="counted down"):
        subject.count_down(4)
    with pytest.raises(ValueError, match="counted down"):
        subject.count_down(n=4)
    assert subject.value == 3
    subject.count_down(n=3)
    with pytest.raises(errors.TooManyReleasesError):
        subject.count_down()
    assert subject.is_set()


@kinds
@pytest.mark.parametrize("number", [0, -1, 2**31, 2**70, 1.5, "1"])
def test_senseless_numbers_are_refused(kind: Any, number: Any) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        kind(2).count_down(number)
    if number != 0:
        with pytest.raises((ValueError, TypeError, OverflowError)):
            kind(number)


def test_waiters_wake_when_the_count_reaches_zero_even_if_it_rises_at_once() -> None:
    event = CountdownEvent(1)

    async def main() -> None:
        async def task() -> None:
            await event.wait_async()

        waiter = asyncio.ensure_future(task())
        await until_async(lambda: event.statistics().waiting == 1)
        thread = Thread(event.wait)
        await until_async(lambda: event.statistics().waiting == 2)
        event.count_down()
        event.count_up(2)
        await waiter
        assert thread.result() is True
        assert event.statistics() == (2, 0)
        assert event.wait(0) is False  # who comes later waits anew

    run(main())
    with pytest.raises(errors.TooManyReleasesError, match="no further"):
        event.count_up(2**31 - 2)
    assert event.value == 2


def test_countdown_starts_at_zero_and_a_latch_needs_a_count() -> None:
    assert CountdownEvent().is_set()
    with pytest.raises(TypeError):
        Latch()  # type: ignore[call-arg]

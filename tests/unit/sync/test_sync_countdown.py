"""CountdownEvent: who is woken when the count comes to nothing."""

from __future__ import annotations

import pytest
from waiting import run, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import CountdownEvent

pytestmark = pytest.mark.ends_and_free


def test_waiter_is_woken_by_the_last_and_by_no_earlier_one() -> None:
    subject = CountdownEvent(3)
    waiter = waiting_thread(subject, subject.wait)
    subject.count_down()
    subject.count_down()
    assert subject.statistics() == (1, 1)
    assert not subject.is_set()
    subject.count_down()
    assert waiter.result() is True
    assert subject.is_set()
    assert subject.statistics() == (0, 0)


def test_countdown_starts_at_zero() -> None:
    assert CountdownEvent().is_set()


def test_counting_below_nothing_is_refused_and_counts_nothing() -> None:
    subject = CountdownEvent(3)
    with pytest.raises(errors.TooManyReleasesError, match="counted down"):
        subject.count_down(4)
    with pytest.raises(ValueError, match="counted down"):
        subject.count_down(n=4)
    assert subject.value == 3
    subject.count_down(n=3)
    with pytest.raises(errors.TooManyReleasesError):
        subject.count_down()
    assert subject.is_set()


def test_waiters_wake_when_the_count_reaches_zero_even_if_it_rises_at_once() -> None:
    event = CountdownEvent(1)

    async def main() -> None:
        waiter = await waiting_task(event, event.wait_async())
        thread = waiting_thread(event, event.wait)
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

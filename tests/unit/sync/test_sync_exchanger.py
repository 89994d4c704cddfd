"""An Exchanger: always two, each with the other, whoever is cancelled or late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync import Exchanger, channel

pytestmark = pytest.mark.ends_and_free


@pytest.mark.parametrize("how", ["thread", "task"])
def test_closing_ends_a_wait_and_refuses_later_calls(how: str) -> None:
    exchanger: Exchanger[int] = Exchanger()
    sender, receiver = channel(0)

    async def in_a_task(call: Callable[[int], Any]) -> None:
        await call(1)

    for call, call_async, waits, close in [
        (
            exchanger.exchange,
            exchanger.exchange_async,
            lambda: exchanger.statistics().waiting,
            exchanger.close,
        ),
        (sender.send, sender.send_async, lambda: sender.statistics().sending, receiver.close),
    ]:
        waiter = Thread(call, 1) if how == "thread" else Thread(run, in_a_task(call_async))
        until(lambda: waits() == 1)  # noqa: B023
        close()
        close()
        with pytest.raises(errors.ChannelClosedError):
            waiter.result()
        with pytest.raises(errors.ChannelClosedError):
            call(1)
        with pytest.raises(errors.ChannelClosedError):
            run(in_a_task(call_async))
    assert "closed" in repr(exchanger)


def test_many_meet_in_pairs_and_nothing_is_lost_or_doubled() -> None:
    exchanger: Exchanger[tuple[int, int]] = Exchanger()

    def party(number: int) -> list[tuple[int, int]]:
        """What it is left with."""
        mine = []
        for turn in range(80):
            try:
                mine.append(exchanger.exchange((number, turn), timeout=0.001))
            except errors.WaitTimeoutError:
                mine.append((number, turn))
        return mine

    async def party_async(number: int) -> list[tuple[int, int]]:
        mine = []
        for turn in range(80):
            try:
                async with asyncio.timeout(0.001):
                    mine.append(await exchanger.exchange_async((number, turn)))
            except TimeoutError:
                mine.append((number, turn))
        return mine

    threads = [Thread(party, 0), Thread(party, 1), Thread(run, party_async(2)), Thread(run, party_async(3))]
    left = [thread.result() for thread in threads]
    assert sorted(item for one in left for item in one) == [
        (number, turn) for number in range(4) for turn in range(80)
    ]
    for number in range(4):
        for turn, (other, its) in enumerate(left[number]):
            assert left[other][its] == (number, turn)

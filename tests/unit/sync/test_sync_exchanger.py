"""An Exchanger: always two, each with the other, whoever is cancelled or late."""

from __future__ import annotations

import asyncio
import gc
import pickle
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import Exchanger, channel, handle

pytestmark = pytest.mark.ends_and_free


async def waiting(exchanger: Exchanger[Any], item: Any) -> asyncio.Task[Any]:
    async def body() -> Any:
        return await exchanger.exchange_async(item)

    task = asyncio.ensure_future(body())
    await until_async(lambda: exchanger.statistics().waiting == 1)
    return task


def test_waiter_that_leaves_keeps_its_item_and_the_next_two_meet() -> None:
    exchanger: Exchanger[Any] = Exchanger()
    item = type("Item", (), {})()
    gone, bringing = weakref.ref(item), [item]
    with pytest.raises(errors.WaitTimeoutError, match="still yours"):
        exchanger.exchange(item, timeout=1e-6)
    with pytest.raises(TimeoutError):
        exchanger.exchange(item, timeout=0)

    async def main() -> None:
        task = await waiting(exchanger, bringing.pop())
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())
    assert exchanger.statistics() == (0, False)
    del item
    gc.collect()
    assert gone() is None
    thread = Thread(exchanger.exchange, 1)
    assert exchanger.exchange(2) == 1
    assert thread.result() == 2


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


def test_bad_use_is_refused() -> None:
    exchanger: Exchanger[int] = Exchanger()
    for timeout, error in ((float("nan"), ValueError), (-0.5, ValueError), (float("inf"), OverflowError)):
        with pytest.raises(error):
            exchanger.exchange(1, timeout=timeout)
    with pytest.raises(TypeError, match="item"):
        exchanger.exchange()  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Exchanger(2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Exchanger"):
        handle(exchanger)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(exchanger)

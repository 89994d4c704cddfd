"""An Exchanger: always two, each with the other, whoever is cancelled or late."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from typing import Any

import pytest
from endings import HandlerRan
from waiting import Thread, run, until, waiting_task

from fairlead import errors
from fairlead.sync.extra import Exchanger

pytestmark = pytest.mark.ends_and_free


@pytest.mark.parametrize("how", ["thread", "task"])
def test_closing_ends_a_wait_and_refuses_later_calls(how: str) -> None:
    exchanger: Exchanger[int] = Exchanger()

    async def in_a_task() -> None:
        await exchanger.exchange_async(1)

    waiter = Thread(exchanger.exchange, 1) if how == "thread" else Thread(run, in_a_task())
    until(lambda: exchanger.statistics().waiting == 1)
    exchanger.close()
    exchanger.close()
    with pytest.raises(errors.ChannelClosedError):
        waiter.result()
    with pytest.raises(errors.ChannelClosedError):
        exchanger.exchange(1)
    with pytest.raises(errors.ChannelClosedError):
        run(in_a_task())
    assert exchanger.statistics() == (0, True)
    assert "closed" in repr(exchanger)


def test_item_of_one_that_gives_up_is_kept_by_nothing() -> None:
    exchanger: Exchanger[Any] = Exchanger()
    item = type("Item", (), {})()
    gone, giving = weakref.ref(item), [item]
    with pytest.raises(errors.WaitTimeoutError, match="still yours"):
        exchanger.exchange(item, timeout=1e-6)

    async def main() -> None:
        task = await waiting_task(exchanger, exchanger.exchange_async(giving.pop()))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())
    del item
    gc.collect()
    assert gone() is None


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
        """Without a time-out: one that comes after the swap would lose what the other brought."""
        mine = []
        for turn in range(80):
            try:
                mine.append(await exchanger.exchange_async((number, turn)))
            except errors.ChannelClosedError:
                mine.append((number, turn))
        return mine

    threads = [Thread(party, 0), Thread(party, 1), Thread(run, party_async(2)), Thread(run, party_async(3))]
    until(lambda: not (threads[0].is_alive() or threads[1].is_alive()))
    exchanger.close()
    left = [thread.result() for thread in threads]
    assert sorted(item for one in left for item in one) == [
        (number, turn) for number in range(4) for turn in range(80)
    ]
    for number in range(4):
        for turn, (other, its) in enumerate(left[number]):
            assert left[other][its] == (number, turn)


class RaisingAfter:
    """A lock, and a list: what a signal handler raises comes right after their call."""

    def __init__(self) -> None:
        self.lock, self.items = threading.Lock(), list[Any]()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()
        raise HandlerRan

    def append(self, item: object) -> None:
        self.items.append(item)
        raise HandlerRan

    def __getitem__(self, index: int) -> Any:
        return self.items[index]


@pytest.mark.parametrize("how", ["thread", "task"])
def test_handler_that_raises_as_a_party_arrives_leaves_none(how: str) -> None:
    exchanger: Exchanger[str] = Exchanger()

    async def in_a_task() -> str:
        return await exchanger.exchange_async("mine")

    def arrive() -> str:
        return exchanger.exchange("mine") if how == "thread" else run(in_a_task())

    lock, exchanger._lock = exchanger._lock, RaisingAfter()  # type: ignore[assignment]
    with pytest.raises(HandlerRan):
        arrive()
    exchanger._lock = lock
    assert exchanger.statistics().waiting == 0

    other = Thread(exchanger.exchange, "other's")
    until(lambda: exchanger.statistics().waiting == 1)
    assert exchanger._offer is not None
    exchanger._offer.gets = RaisingAfter()  # type: ignore[assignment]
    with pytest.raises(HandlerRan):
        arrive()
    assert other.result() == "mine"
    assert exchanger.statistics().waiting == 0

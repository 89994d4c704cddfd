"""A channel without room: who sends is told when it is received, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from waiting import run, waiting_task, waiting_thread

from fairlead import errors
from fairlead.sync import channel

pytestmark = pytest.mark.ends_and_free


GIVING: dict[str, Callable[[], Any]] = {
    "channel(0).send": lambda: channel(0),
    "channel(1).send": lambda: full(channel(1)),
}


def full(ends: Any) -> Any:
    ends[0].send("first")
    return ends


@pytest.mark.parametrize("make", GIVING.values(), ids=GIVING.keys())
def test_item_of_one_that_gives_up_is_kept_by_nothing(make: Callable[[], Any]) -> None:
    ends = make()
    item = type("Item", (), {})()
    gone, giving = weakref.ref(item), [item]
    with pytest.raises(errors.QueueFull):
        ends[0].send(item, timeout=1e-6)

    async def main() -> None:
        task = await waiting_task(ends[0], ends[0].send_async(giving.pop()))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())
    del item
    gc.collect()
    assert gone() is None


def test_what_came_for_cancelled_receivers_goes_to_the_next_in_the_order_of_sending() -> None:
    async def main() -> None:
        sender, receiver = channel(0)
        tasks = [await waiting_task(receiver, receiver.receive_async()) for _ in range(3)]
        for number in range(3):
            sender.send_nowait(number)
        for task in reversed(tasks):
            task.cancel()
        await asyncio.wait(tasks)
        assert sender.statistics().pending == 3
        late = waiting_thread(sender, sender.send, 3)
        assert [receiver.receive_nowait() for _ in range(4)] == [0, 1, 2, 3]
        late.result()
        first, second = [await waiting_task(receiver, receiver.receive_async()) for _ in range(2)]
        sender.send_nowait("to the first")
        first.cancel()
        assert await second == "to the first"

    run(main())


def test_returned_items_are_received_before_the_end_or_dropped_with_the_last_receiver() -> None:
    async def main() -> None:
        for receives, closed_before in (True, False), (False, False), (False, True):
            sender, receiver = channel(0)
            item = type("Item", (), {})()
            gone = weakref.ref(item)
            task = await waiting_task(receiver, receiver.receive_async())
            sender.send_nowait(item)
            task.cancel()
            if closed_before:
                receiver.close()
            await asyncio.wait([task])
            del item, task
            if receives:
                sender.close()
                assert [type(one).__name__ for one in receiver] == ["Item"]
            else:
                receiver.close()
            gc.collect()
            assert gone() is None

    run(main())


def test_cycle_through_sent_and_returned_items_is_collected() -> None:
    class Item:
        held: Any = None

    def begin(what: str) -> weakref.ref[Item]:
        sender, receiver = channel(0)
        item = Item()
        loop = asyncio.new_event_loop()
        if what == "given back":
            task = loop.run_until_complete(waiting_task(receiver, receiver.receive_async()))
            sender.send_nowait(item)
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
            item.held = receiver
            assert receiver.statistics().pending == 1
        else:
            item.held = sender.send_async(item)
        loop.close()
        return weakref.ref(item)

    for what in "given back", "never awaited":
        gone = begin(what)
        gc.collect()
        assert gone() is None, what

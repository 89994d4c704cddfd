"""A channel without room: who sends is told when it is received, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import channel

pytestmark = pytest.mark.ends_and_free


async def waiting(end: Any, call: Any, *args: Any) -> asyncio.Task[Any]:
    """A task that waits in this call."""

    def count() -> int:
        found = end.statistics()
        return found.sending + found.receiving  # type: ignore[no-any-return]

    async def body() -> Any:
        return await call(*args)

    before = count()
    task = asyncio.ensure_future(body())
    await until_async(lambda: count() == before + 1)
    return task


def test_timeouts_and_cancellations_leave_nothing_behind() -> None:
    sender, receiver = channel(0)
    item = type("Item", (), {})()
    gone, sending = weakref.ref(item), [item]
    with pytest.raises(errors.QueueFull):
        sender.send(item, timeout=1e-6)
    with pytest.raises(errors.QueueEmpty):
        receiver.receive(timeout=1e-6)

    async def main() -> None:
        for call in (sender.send_async, sending.pop()), (receiver.receive_async,):
            task = await waiting(sender, *call)
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            del task, call

    run(main())
    assert sender.statistics()[:5] == (0, 1, 1, 0, 0)
    with pytest.raises(errors.QueueEmpty):
        receiver.receive_nowait()
    del item
    gc.collect()
    assert gone() is None


def test_what_came_for_cancelled_receivers_goes_to_the_next_in_the_order_of_sending() -> None:
    async def main() -> None:
        sender, receiver = channel(0)
        tasks = [await waiting(receiver, receiver.receive_async) for _ in range(3)]
        for number in range(3):
            sender.send_nowait(number)
        for task in reversed(tasks):
            task.cancel()
        await asyncio.wait(tasks)
        assert sender.statistics().pending == 3
        late = Thread(sender.send, 3)
        until(lambda: sender.statistics().sending == 1)
        assert [receiver.receive_nowait() for _ in range(4)] == [0, 1, 2, 3]
        late.result()
        first, second = [await waiting(receiver, receiver.receive_async) for _ in range(2)]
        sender.send_nowait("to the first")
        first.cancel()
        assert await second == "to the first"

    run(main())


def test_returned_items_are_received_before_the_end_or_dropped_with_the_last_receiver() -> None:
    async def main() -> None:
        for receives in True, False:
            sender, receiver = channel(0)
            item = type("Item", (), {})()
            gone = weakref.ref(item)
            task = await waiting(receiver, receiver.receive_async)
            sender.send_nowait(item)
            task.cancel()
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
            task = loop.run_until_complete(waiting(receiver, receiver.receive_async))
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


def test_timeout_that_is_put_off_ends_its_block_at_the_next_wait() -> None:
    async def main() -> None:
        sender, receiver = channel(0)
        limit, log = asyncio.timeout(3600), []

        async def body() -> None:
            try:
                async with limit:
                    await sender.send_async(1)
                    log.append("sent")
                    await asyncio.sleep(3600)
            except TimeoutError:
                log.append("timed out")

        task = asyncio.ensure_future(body())
        await until_async(lambda: sender.statistics().sending == 1)
        limit.reschedule(0)  # in the next turn, in which the sender would resume after it
        assert receiver.receive_nowait() == 1
        await task
        assert log == ["sent", "timed out"]

    run(main())

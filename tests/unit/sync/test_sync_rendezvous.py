"""A channel without room: who sends is told when it is received, whoever is cancelled meanwhile."""

from __future__ import annotations

import asyncio
import gc
import pickle
import signal
import threading
import weakref
from typing import Any

import pytest
import trio
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import channel


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


def test_send_ends_when_it_is_received() -> None:
    sender, receiver = channel(0)
    thread = Thread(sender.send, "from a thread")
    until(lambda: sender.statistics().sending == 1)
    assert sender.statistics()[:3] == (0, 1, 1)
    assert receiver.receive() == "from a thread"
    thread.result()

    async def main() -> None:
        task = await waiting(sender, sender.send_async, "from a task")
        assert Thread(receiver.receive).result() == "from a task"
        await task
        task = await waiting(receiver, receiver.receive_async)
        Thread(sender.send, "to a task").result()
        assert await task == "to a task"

    run(main())


def test_trying_succeeds_only_where_the_other_waits() -> None:
    sender, receiver = channel(0)
    with pytest.raises(errors.QueueFull, match="no receiver"):
        sender.send_nowait(1)
    with pytest.raises(errors.QueueEmpty, match="no sender"):
        receiver.receive_nowait()
    thread = Thread(receiver.receive)
    until(lambda: receiver.statistics().receiving == 1)
    sender.send_nowait(1)
    with pytest.raises(errors.QueueFull):
        sender.send_nowait(2)
    assert thread.result() == 1
    thread = Thread(sender.send, 3)
    until(lambda: receiver.statistics().sending == 1)
    assert receiver.receive_nowait() == 3
    thread.result()


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


def test_cancellation_that_comes_after_an_object_was_received_comes_through_at_the_next_wait() -> None:
    async def main() -> None:
        sender, receiver = channel(0)
        sent: list[int] = []

        async def body(number: int) -> None:
            await sender.send_async(number)
            sent.append(number)
            await asyncio.sleep(3600)

        for number in range(2):
            before = sender.statistics().sending
            task = asyncio.ensure_future(body(number))
            await until_async(lambda before=before: sender.statistics().sending == before + 1)  # type: ignore[misc]
            if number:  # told first, and then received
                task.cancel()
            assert receiver.receive_nowait() == number
            task.cancel()
            await asyncio.wait([task])
            assert task.cancelled()
            assert sent == list(range(number + 1))

    run(main())


def test_timeout_that_ends_after_the_object_was_received_is_too_late_and_cancels_nothing_else() -> None:
    async def main() -> None:
        sender, receiver = channel(0)

        async def body() -> str:
            async with asyncio.timeout(3600) as limit:
                limits.append(limit)
                await sender.send_async(1)
            for _ in range(5):
                await asyncio.sleep(0)
            return "whole"

        limits: list[asyncio.Timeout] = []
        task = asyncio.ensure_future(body())
        await until_async(lambda: sender.statistics().sending == 1)
        limits[0].reschedule(0)
        while not limits[0].expired() and task.cancelling() == 0:
            await asyncio.sleep(0)
            if task.cancelling() and sender.statistics().sending:
                assert receiver.receive_nowait() == 1
        assert await task == "whole"

    run(main())


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


def test_trio_tasks_meet_and_a_cancellation_after_that_is_the_next_checkpoints() -> None:
    sender, receiver = channel(0)
    seen: list[Any] = []

    async def send() -> None:
        with trio.CancelScope() as scope:
            scopes.append(scope)
            await sender.send_async("late")
            seen.append("sent")
            await trio.lowlevel.checkpoint()
            seen.append("never")

    async def receive() -> None:
        seen.append(await receiver.receive_async())

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(receive)
        assert sorted(seen) == ["late", "never", "sent"]
        seen.clear()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            while sender.statistics().sending == 0:
                await trio.lowlevel.checkpoint()
            scopes[-1].cancel()
            seen.append(receiver.receive_nowait())

    scopes: list[trio.CancelScope] = []
    trio.run(main)
    assert seen == ["late", "sent"]


def test_closing_a_loop_with_a_waiter_and_a_granted_receiver_loses_nothing() -> None:
    sender, receiver = channel(0)
    loop = asyncio.new_event_loop()
    first = loop.run_until_complete(waiting(receiver, receiver.receive_async))
    second = loop.run_until_complete(waiting(receiver, receiver.receive_async))
    sender.send_nowait(1)
    loop.close()
    assert receiver.statistics()[:5] == (1, 1, 1, 0, 0)
    assert receiver.receive_nowait() == 1
    for task in first, second:
        task._log_destroy_pending = False  # type: ignore[attr-defined]
    del first, second, task
    gc.collect()


@pytest.mark.parametrize("end", ["sender", "receiver"])
def test_closing_wakes_waiters_and_refuses_later_calls(end: str) -> None:
    sender, receiver = channel(0)
    calls = (
        (receiver.receive, receiver.receive_async) if end == "sender" else (sender.send, sender.send_async)
    )
    arguments = () if end == "sender" else (1,)

    async def main() -> None:
        thread = Thread(calls[0], *arguments)
        task = await waiting(sender, calls[1], *arguments)
        await until_async(lambda: sum(sender.statistics()[3:5]) == 2)
        (sender if end == "sender" else receiver).close()
        with pytest.raises(errors.ChannelClosedError):
            await task
        with pytest.raises(errors.ChannelClosedError):
            thread.result()
        with pytest.raises(errors.ChannelClosedError):
            await calls[1](*arguments)
        with pytest.raises(errors.ChannelClosedError):
            calls[0](*arguments)
        assert sender.statistics().closed

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


def test_signal_handler_that_raises_keeps_the_object_and_one_that_receives_may() -> None:
    sender, receiver = channel(0)

    def handler(number: int, _: object) -> None:
        if number == signal.SIGUSR1:
            raise KeyError

    before = signal.signal(signal.SIGUSR1, handler)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt() -> None:
        until(lambda: sender.statistics().sending == 1)
        signal.pthread_kill(main, signal.SIGUSR1)

    try:
        thread = Thread(interrupt)
        with pytest.raises(KeyError):
            sender.send(1)
        thread.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(errors.QueueEmpty):
        receiver.receive_nowait()


def test_destructor_may_try_to_send() -> None:
    sender, receiver = channel(0)

    class Sends:
        def __del__(self) -> None:
            sender.send_nowait("from a destructor")

    thread = Thread(receiver.receive)
    until(lambda: receiver.statistics().receiving == 1)
    Sends()
    gc.collect()
    assert thread.result() == "from a destructor"


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


def test_many_threads_and_tasks_lose_and_double_nothing() -> None:
    sender, receiver = channel(0)

    def send(end: Any, first: int) -> None:
        with end:
            for number in range(60):
                end.send(first + number)

    async def send_async(end: Any, first: int) -> None:
        with end:
            for number in range(60):
                while True:
                    try:
                        await asyncio.wait_for(end.send_async(first + number), 0.0005)
                        break
                    except TimeoutError:
                        pass

    def receive(end: Any) -> list[int]:
        with end:
            return list(end)

    async def receive_async(end: Any) -> list[int]:
        with end:
            return [item async for item in end]

    threads = [Thread(send, sender.clone(), 0), Thread(run, send_async(sender.clone(), 1000))]
    receivers = [Thread(receive, receiver.clone()), Thread(run, receive_async(receiver.clone()))]
    sender.close()
    for one in threads:
        one.result()
    got = [one.result() for one in receivers]
    assert sorted(got[0] + got[1]) == [first + number for first in (0, 1000) for number in range(60)]
    for one in got:
        for first in 0, 1000:
            mine = [item for item in one if first <= item < first + 60]
            assert mine == sorted(mine)


def test_it_stays_in_its_interpreter() -> None:
    sender, receiver = channel(0)
    for end in sender, receiver:
        with pytest.raises(TypeError, match=r"cannot pickle a channel without room.*channel\(1\)"):
            pickle.dumps(end)

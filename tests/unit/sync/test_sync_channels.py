"""Channels: what arrives where, how ends close, who is told what was missed, what a cancellation leaves."""

from __future__ import annotations

import asyncio
import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from waiting import Thread, run, until

from fairlead import errors
from fairlead.sync import broadcast, channel, oneshot, select

pytestmark = pytest.mark.ends_and_free

KINDS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "channel": lambda: channel(3),
    "unbounded": channel,
    "oneshot": oneshot,
    "broadcast": lambda: broadcast(3),
    "latest": lambda: broadcast(latest=None),
}
each_kind = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


def test_receivers_get_what_was_sent_before_the_end() -> None:
    sender, receiver = channel(5)
    other = sender.clone()
    for number in range(3):
        sender.send(number)
    sender.close()
    other.send(3)
    del other
    gc.collect()
    assert [receiver.receive(), *receiver] == [0, 1, 2, 3]


@pytest.mark.parametrize("capacity", [1, None])
def test_closing_the_last_receiver_drops_what_is_left_and_fails_senders(capacity: int | None) -> None:
    sender, receiver = channel(capacity)
    second = receiver.clone()
    item = type("Item", (), {})()
    gone = weakref.ref(item)
    sender.send(item)
    del item
    waits = Thread(sender.send, 1) if capacity else None
    if waits is not None:
        until(lambda: sender.statistics().sending == 1)
    receiver.close()
    assert gone() is not None
    assert not sender.wait_closed(0)
    closed = Thread(sender.wait_closed, 40)
    second.close()
    assert closed.result() is True
    gc.collect()
    assert gone() is None
    if waits is not None:
        with pytest.raises(errors.ChannelClosedError):
            waits.result()
    with pytest.raises(errors.ChannelClosedError):
        sender.send(2)
    with pytest.raises(errors.ChannelClosedError):
        run(sender_sends(sender))


async def sender_sends(sender: Any) -> None:
    await asyncio.wait_for(asyncio.ensure_future(sender.wait_closed_async()), 30)
    await sender.send_async(3)


@each_kind
def test_closed_end_refuses_all_but_closing(make: Callable[[], tuple[Any, Any]]) -> None:
    sender, receiver = make()
    once = make is KINDS["oneshot"]
    reading = ["receive", "receive_nowait", "clone"]
    for end, calls in ((sender, ["send", "send_nowait", "clone"]), (receiver, reading)):
        refused = errors.UsageError if once and end is sender else errors.EndClosedError
        with end:
            pass
        end.close()
        for name in calls:
            if name == "clone" and once:
                continue
            with pytest.raises(refused):
                getattr(end, name)(*([1] if name.startswith("send") else []))
        with pytest.raises(refused):
            run(end.receive_async() if end is receiver else end.send_async(1))
        assert " closed, " in repr(end)


def test_closed_end_neither_sends_nor_receives_though_another_is_open() -> None:
    sender, receiver = channel(2)
    others = sender.clone(), receiver.clone()
    operations = sender.send_async(1), sender.send_async(2)
    others[0].send("mine")
    asked = receiver.receive_async(), receiver.receive_async()
    for end in (sender, sender, receiver, receiver):  # the second time changes nothing
        end.close()
    for alone, selected in (operations, asked):
        with pytest.raises(errors.EndClosedError):
            run(alone)
        with pytest.raises(errors.EndClosedError):
            select(selected)
    assert others[0].statistics() == (1, 1, 1, 0, 0, False)
    assert others[1].receive_nowait() == "mine"
    others[0].send("again")
    assert others[1].receive_nowait() == "again"
    assert others[1].statistics().pending == 0


def test_oneshot_sends_one_object_to_one() -> None:
    sender, receiver = oneshot()
    sender.send("answer")
    with pytest.raises(errors.UsageError, match="sends one object"):
        sender.send("again")
    assert receiver.receive() == "answer"
    with pytest.raises(errors.ChannelClosedError):
        receiver.receive()
    sender, receiver = oneshot()
    with pytest.raises(errors.UsageError, match="one receiver"):
        receiver.clone()
    receiver.close()
    with pytest.raises(errors.ChannelClosedError):
        sender.send("to nobody")


def test_oneshot_sent_by_two_threads_at_once_is_sent_by_one() -> None:
    for _ in range(50):
        sender, receiver = oneshot()
        barrier = threading.Barrier(2)

        def send(item: int) -> bool:
            barrier.wait()  # noqa: B023
            try:
                sender.send(item)  # noqa: B023
            except (errors.UsageError, errors.ChannelClosedError):
                return False
            return True

        threads = [Thread(send, number) for number in range(2)]
        sent = [thread.result() for thread in threads]
        assert sorted(sent) == [False, True]
        assert receiver.receive() == sent.index(True)


def test_broadcast_reports_to_a_lagging_receiver_what_it_missed_and_continues_with_the_oldest() -> None:
    sender, receiver = broadcast(3)
    for number in range(8):
        sender.send(number)
    assert receiver.statistics().pending == 8
    with pytest.raises(errors.LaggedError) as caught:
        receiver.receive()
    assert caught.value.missed == 5
    assert pickle.loads(pickle.dumps(caught.value)).missed == 5
    assert [receiver.receive() for _ in range(3)] == [5, 6, 7]
    with pytest.raises(errors.QueueEmpty):
        receiver.receive_nowait()
    for number in range(4):
        sender.send(number)

    async def main() -> None:
        with pytest.raises(errors.LaggedError):
            await receiver.receive_async()
        assert await receiver.receive_async() == 1

    run(main())


def test_value_of_a_watch_that_was_looked_at_is_received_all_the_same() -> None:
    sender, receiver = broadcast(latest="dark")
    sender.send("light")
    assert receiver.value == "light"
    assert receiver.receive(False) == "light"


def test_what_is_replaced_is_let_go() -> None:
    sender, receiver = broadcast(latest=type("Item", (), {})())
    gone = weakref.ref(receiver.value)
    sender.send(None)
    gc.collect()
    assert gone() is None


def test_end_that_is_collected_is_closed_and_in_a_cycle_too() -> None:
    sender, receiver = channel()
    cycle: list[Any] = [sender]
    cycle.append(cycle)
    del sender, cycle
    gc.collect()
    assert list(receiver) == []

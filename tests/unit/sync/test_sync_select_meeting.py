"""select over a channel without room: both sides choose, and each thing goes over once."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest
from endings import HandlerRan, handling, interrupting
from waiting import Thread, run, until, until_async, waiters, waiting_task

from fairlead import errors
from fairlead.sync import Event, Semaphore, channel, select, select_async

pytestmark = pytest.mark.ends_and_free


def nobody_waits(*ends: Any) -> bool:
    return not any(map(waiters, ends))


def test_two_threads_that_choose_with_their_cases_crossed_meet_once() -> None:
    (to, of), (back, came) = channel(0), channel(0)
    rounds = range(30)
    thread = Thread(lambda: [select(to.send_async(number), came.receive_async()) for number in rounds])
    mine = [select(back.send_async(number), of.receive_async()) for number in rounds]
    for number, pair in enumerate(zip(mine, thread.result(), strict=True)):
        assert pair in [((0, None), (1, number)), ((1, number), (0, None))]
    assert nobody_waits(of, came)


def test_select_on_both_sides_does_not_meet_itself() -> None:
    sender, receiver = channel(0)
    both = (sender.send_async(1), receiver.receive_async())
    assert select(*both, timeout=1e-3) is None
    thread = Thread(select, sender.send_async("its"), receiver.receive_async())
    until(lambda: receiver.statistics().receiving == receiver.statistics().sending == 1)
    found = select(sender.send_async("mine"), receiver.receive_async())
    assert {found, thread.result()} in ({(0, None), (1, "mine")}, {(0, None), (1, "its")})
    assert nobody_waits(receiver)


def test_select_that_times_out_has_sent_and_received_nothing() -> None:
    sender, receiver = channel(0)

    def cases() -> tuple[Any, ...]:
        return sender.send_async(1), Semaphore(0).acquire_async()

    for timeout in (0, 1e-6, 1e-3):
        assert select(*cases(), timeout=timeout) is None
    with pytest.raises(errors.QueueEmpty):
        receiver.receive_nowait()

    async def main() -> None:
        task = await waiting_task(sender, select_async(*cases()))
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    run(main())
    assert nobody_waits(receiver)


def test_signal_handlers_find_it_waiting_and_one_that_raises_ends_it_with_nothing_sent() -> None:
    sender, receiver = channel(0)
    event, handled = Event(), []

    def handler() -> None:
        handled.append(receiver.statistics().sending)
        if len(handled) > 1:
            raise HandlerRan

    def again() -> None:
        until(lambda: handled)
        interrupting(lambda: receiver.statistics().sending == 1).result()

    with handling(handler):
        sender_of_signals = interrupting(lambda: receiver.statistics().sending == 1, again)
        with pytest.raises(HandlerRan):
            select(sender.send_async(1), event.wait_async())
        sender_of_signals.result()
    assert handled == [1, 1]
    assert nobody_waits(receiver)
    assert event.statistics().waiting == 0


def send_by_select(sender: Any) -> None:
    select(sender.send_async("sent"), Event().wait_async())


@pytest.mark.parametrize("send", [lambda sender: sender.send("sent"), send_by_select], ids=["send", "select"])
def test_what_a_handler_raises_after_it_has_taken_what_is_sent_comes_after_the_sending(send: Any) -> None:
    sender, receiver = channel(0)
    handled, ended = [], []

    def handler() -> None:
        handled.append(receiver.receive_nowait())
        raise HandlerRan

    with handling(handler):
        sender_of_signals = interrupting(lambda: receiver.statistics().sending == 1)
        with pytest.raises(HandlerRan):  # noqa: PT012
            send(sender)
            ended.append(1)
            for _ in range(1000):
                pass
        sender_of_signals.result()
    assert handled == ["sent"]
    assert nobody_waits(receiver)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_closed_loops_and_collected_selections_leave_no_waiter() -> None:
    sender, receiver = channel(0)

    class Item:
        pass

    item = Item()
    gone = weakref.ref(item)
    loop = asyncio.new_event_loop()
    task = loop.run_until_complete(
        waiting_task(receiver, select_async(sender.send_async(item), Event().wait_async()))
    )
    loop.close()
    assert nobody_waits(receiver)
    item.task, item.cases = task, [select_async(sender.send_async(item))]  # type: ignore[attr-defined]
    del task, item
    gc.collect()
    assert gone() is None


def test_what_is_selected_twice_is_refused() -> None:
    sender, receiver = channel(0)

    async def main() -> None:
        case = sender.send_async(1)
        first, second = select_async(case), select_async(case)
        task = asyncio.ensure_future(asyncio.wait_for(first, 30))
        await until_async(lambda: receiver.statistics().sending)
        with pytest.raises(RuntimeError, match="awaited before"):
            await second
        with pytest.raises(RuntimeError, match="reuse"):
            await case
        assert receiver.receive_nowait() == 1
        assert await task == (0, None)

    run(main())


@pytest.mark.parametrize("capacity", [0, 1, None])
def test_threads_and_tasks_that_all_choose_lose_and_double_nothing(capacity: int | None) -> None:
    channels = [channel(capacity) for _ in range(2)]
    each, sent, received = 30, [], []

    def numbers(of: int) -> list[tuple[int, int]]:
        return [(of, number) for number in range(each)]

    def send(of: int) -> None:
        for item in numbers(of):
            while (
                select(*(to.send_async((item, at)) for at, (to, _) in enumerate(channels)), timeout=1e-4)
                is None
            ):
                pass
            sent.append(item)

    async def send_async(of: int) -> None:
        for item in numbers(of):
            done = None
            while done is None:
                try:
                    async with asyncio.timeout(0.0005):
                        done = await select_async(
                            *(to.send_async((item, at)) for at, (to, _) in enumerate(channels))
                        )
                except TimeoutError:
                    continue
            sent.append(item)

    def receive(stop: Event) -> None:
        while True:
            found = select(stop.wait_async(), *(of.receive_async() for _, of in reversed(channels)))
            assert found is not None
            if found.case == 0:
                return
            item, at = found.value
            assert at == 2 - found.case
            received.append(item)

    stop = Event()
    takers = [Thread(receive, stop) for _ in range(2)]
    givers = [Thread(send, 0), Thread(send, 1), Thread(lambda: run(send_async(2)))]
    for thread in givers:
        thread.result()
    until(lambda: len(received) == len(sent))
    stop.set()
    for thread in takers:
        thread.result()
    assert sorted(received) == sorted(sent) == sorted(one for of in range(3) for one in numbers(of))

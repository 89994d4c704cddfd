"""A channel without room and an Exchanger against models: tasks meet, and are cancelled early and late."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from fairlead.errors import ChannelClosedError, QueueEmpty, QueueFull, WaitTimeoutError
from fairlead.sync import Exchanger, channel

pytestmark = pytest.mark.once

AT = st.integers(0, 4)
LATE = "done, and then cancelled"


class Rendezvous(Staged):
    """Objects are numbers. Who waits are all senders, each with one, or all receivers, with None."""

    def __init__(self) -> None:
        super().__init__()
        self.sender, self.receiver = channel(0)
        self.next = 0
        self.queue: list[tuple[Actor, int | None]] = []
        self.back: list[int] = []
        """Came for a task that was cancelled."""
        self.open = True

    def number(self) -> int:
        self.next += 1
        return self.next

    def senders_wait(self) -> bool:
        return bool(self.queue) and self.queue[0][1] is not None

    def receivers_wait(self) -> bool:
        return bool(self.queue) and self.queue[0][1] is None

    async def send_one(self, number: int) -> Any:
        """A cancellation that came too late comes through in the second wait."""
        await self.sender.send_async(number)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            return LATE
        return number

    @rule(at=AT)
    def send(self, at: int) -> None:
        actor, number = self.stage.actors[at], self.number()
        if actor.waits:
            return
        self.stage.tell(actor, lambda: self.send_one(number))
        if self.receivers_wait():
            receiver, _ = self.queue.pop(0)
            self.expect([actor, receiver], [number, number])
        elif self.open:
            self.queue.append((actor, number))
        else:
            self.expect([actor], [ChannelClosedError])

    @rule(at=AT)
    def receive(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.receiver.receive_async)
        if self.back:
            self.expect([actor], [self.back.pop(0)])
        elif self.senders_wait():
            sender, number = self.queue.pop(0)
            self.expect([actor, sender], [number, number])
        elif self.open:
            self.queue.append((actor, None))
        else:
            self.expect([actor], [ChannelClosedError])

    def try_to_receive(self) -> Actor | None:
        """Whose object it was, if that one waited."""
        if self.back:
            assert self.receiver.receive_nowait() == self.back.pop(0)
            return None
        actor, number = self.queue.pop(0)
        assert self.receiver.receive_nowait() == number
        return actor

    @rule()
    def thread_receives(self) -> None:
        if self.back or self.senders_wait():
            self.try_to_receive()
            self.stage.turn()
        else:
            with pytest.raises(QueueEmpty if self.open else ChannelClosedError):
                self.receiver.receive_nowait()

    @rule()
    def thread_sends(self) -> None:
        number = self.number()
        if self.receivers_wait():
            self.sender.send_nowait(number)
            self.stage.turn()
            self.expect([self.queue.pop(0)[0]], [number])
        else:
            with pytest.raises(QueueFull if self.open else ChannelClosedError):
                self.sender.send_nowait(number)

    @precondition(lambda self: self.queue)
    @rule(at=AT, late=st.booleans(), first=st.booleans())
    def cancel(self, at: int, late: bool, first: bool) -> None:
        """If it is late, the first that waits meets somebody before the cancelled one runs again."""
        gone, number = self.queue[at % len(self.queue)]
        if first:
            gone.task.cancel()
        if not late:
            gone.task.cancel()
            self.queue.remove((gone, number))
            self.stage.turn()
            self.expect([gone], [CANCELLED])
        elif number is not None:
            met = self.try_to_receive()
            gone.task.cancel()
            self.stage.turn()
            if met is gone:
                self.expect([gone], [LATE])
            else:
                self.queue.remove((gone, number))
                self.expect([gone], [CANCELLED])
        else:
            sent = self.number()
            self.sender.send_nowait(sent)
            gone.task.cancel()
            self.stage.turn()
            self.queue.remove((gone, None))
            self.expect([gone], [CANCELLED])
            if self.queue:
                self.expect([self.queue.pop(0)[0]], [sent])
            else:
                self.back.append(sent)

    @precondition(lambda self: self.open and self.next > 8)
    @rule()
    def close(self) -> None:
        self.sender.close()
        self.receiver, receiver = self.receiver.clone(), self.receiver
        receiver.close()
        self.stage.turn()
        self.expect([actor for actor, _ in self.queue], [ChannelClosedError] * len(self.queue))
        self.queue.clear()
        self.open = False
        self.sender = channel(0)[0]  # its receiver is closed: it is refused, as one of the closed channel

    @invariant()
    def agree(self) -> None:
        waiting = [actor for actor, _ in self.queue]
        for actor in self.stage.actors:
            assert actor.waits == (actor in waiting)
        found = self.receiver.statistics()
        assert found.pending == len(self.back)
        assert found.sending == (len(waiting) if self.senders_wait() else 0)
        assert found.receiving == (len(waiting) if self.receivers_wait() else 0)
        assert found.closed is not self.open


class Exchanges(Staged):
    """Everyone brings a number. One waits at most."""

    def __init__(self) -> None:
        super().__init__()
        self.subject: Exchanger[int] = Exchanger()
        self.next = 0
        self.first: tuple[Actor, int] | None = None
        self.open = True

    async def exchange_one(self, number: int) -> Any:
        """What came, and whether a cancellation came too late for that."""
        other = await self.subject.exchange_async(number)
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            return other, LATE
        return other, ""

    @rule(at=AT)
    def exchange(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.next += 1
        mine = self.next
        self.stage.tell(actor, lambda: self.exchange_one(mine))
        if not self.open:
            self.expect([actor], [ChannelClosedError])
        elif self.first is None:
            self.first = actor, mine
        else:
            (other, its), self.first = self.first, None
            self.expect([actor, other], [(its, ""), (mine, "")])

    @rule(cancelled=st.sampled_from(["", "before", "after"]))
    def thread_exchanges(self, cancelled: str) -> None:
        self.next += 1
        if self.first is None:
            with pytest.raises(WaitTimeoutError if self.open else ChannelClosedError):
                self.subject.exchange(self.next, timeout=0)
            return
        (other, its), self.first = self.first, None
        if cancelled == "before":
            other.task.cancel()
        assert self.subject.exchange(self.next, timeout=0) == its
        if cancelled == "after":
            other.task.cancel()
        self.stage.turn()
        self.expect([other], [(self.next, LATE if cancelled else "")])

    @precondition(lambda self: self.first)
    @rule()
    def cancel(self) -> None:
        assert self.first is not None
        (actor, _), self.first = self.first, None
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])

    @precondition(lambda self: self.open and self.next > 8)
    @rule()
    def close(self) -> None:
        self.subject.close()
        self.stage.turn()
        if self.first is not None:
            self.expect([self.first[0]], [ChannelClosedError])
        self.first, self.open = None, False

    @invariant()
    def agree(self) -> None:
        for actor in self.stage.actors:
            assert actor.waits == (self.first is not None and actor is self.first[0])
        assert self.subject.statistics() == (self.first is not None, not self.open)


TestRendezvous = Rendezvous.TestCase
TestRendezvous.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)
TestExchanges = Exchanges.TestCase
TestExchanges.settings = settings(max_examples=20, stateful_step_count=30, deadline=None)

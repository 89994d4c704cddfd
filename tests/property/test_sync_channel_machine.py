"""Channels, broadcasts and watched values against models: tasks of a loop receive, its thread sends."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Stage
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.errors import ChannelClosedError, LaggedError, QueueEmpty, QueueFull
from fairlead.sync import broadcast, channel, watch

pytestmark = pytest.mark.once

AT = st.integers(0, 3)


class Lines(RuleBasedStateMachine):
    """Objects are numbers in the order of sending. Several senders; closing the last one closes the line."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(4)
        self.sent = 0
        self.senders: list[Any] = []
        self.waiting: list[Actor] = []

    def begin(self, ends: tuple[Any, Any]) -> Any:
        self.senders.append(ends[0])
        return ends[1]

    def teardown(self) -> None:
        self.stage.close()

    @precondition(lambda self: self.senders)
    @rule(at=AT)
    def clone_sender(self, at: int) -> None:
        if len(self.senders) < 3:
            self.senders.append(self.senders[at % len(self.senders)].clone())

    @precondition(lambda self: self.senders)
    @rule(at=AT)
    def close_sender(self, at: int) -> None:
        self.senders.pop(at % len(self.senders)).close()
        self.stage.turn()
        if not self.senders:
            for actor in self.waiting:
                assert isinstance(actor.results[-1], ChannelClosedError)
            self.waiting.clear()

    def check_waiting(self) -> None:
        for actor in self.stage.actors:
            assert actor.waits == (actor in self.waiting)


class Channels(Lines):
    @initialize(capacity=st.sampled_from([1, 2, None]))
    def make(self, capacity: int | None) -> None:
        self.capacity = capacity
        self.receiver = self.begin(channel(capacity))
        self.line: list[int] = []

    @precondition(lambda self: self.senders)
    @rule(at=AT)
    def send(self, at: int) -> None:
        sender = self.senders[at % len(self.senders)]
        if self.capacity == len(self.line):
            with pytest.raises(QueueFull):
                sender.send_nowait(self.sent)
            return
        sender.send_nowait(self.sent)
        self.line.append(self.sent)
        self.sent += 1
        self.stage.turn()
        if self.waiting:
            assert self.waiting.pop(0).results[-1] == self.line.pop(0)

    @rule(at=AT)
    def receive(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.receiver.receive_async)
        if self.line:
            assert actor.results[-1] == self.line.pop(0)
        elif not self.senders:
            assert isinstance(actor.results[-1], ChannelClosedError)
        else:
            self.waiting.append(actor)

    @rule()
    def try_to_receive(self) -> None:
        if self.line:
            assert self.receiver.receive_nowait() == self.line.pop(0)
        else:
            with pytest.raises(QueueEmpty if self.senders else ChannelClosedError):
                self.receiver.receive_nowait()

    @precondition(lambda self: self.waiting)
    @rule(at=AT, late=st.booleans())
    def cancel(self, at: int, late: bool) -> None:
        """Perhaps after an object came for the first that waits, which then goes to the next."""
        actor = self.waiting.pop(at % len(self.waiting))
        if late and self.senders:
            self.senders[0].send_nowait(self.sent)
            self.line.append(self.sent)
            self.sent += 1
        actor.task.cancel()
        self.stage.turn()
        assert actor.results[-1] == CANCELLED
        if self.line and self.waiting:
            assert self.waiting.pop(0).results[-1] == self.line.pop(0)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "receiver"):
            self.check_waiting()
            found = self.receiver.statistics()
            assert found[:3] == (len(self.line), len(self.senders), 1)
            assert found[3:] == (0, len(self.waiting), not self.senders)


class Tapes(Lines):
    """Each actor has a receiver of its own."""

    @initialize(capacity=st.integers(0, 3))
    def make(self, capacity: int) -> None:
        self.capacity = capacity  # 0: a watch
        first = self.begin(broadcast(capacity) if capacity else watch(None))
        self.receivers = [first, *(first.clone() for _ in range(3))]
        self.places = [0] * 4

    def outlook(self, at: int) -> Any:
        """What the next receive gives at once: a number, an error, or None for waiting."""
        behind = self.sent - self.places[at]
        if not behind:
            return None if self.senders else ChannelClosedError
        if not self.capacity:
            self.places[at] = self.sent
            return self.sent - 1
        if behind > self.capacity:
            self.places[at] = self.sent - self.capacity
            return LaggedError
        self.places[at] += 1
        return self.places[at] - 1

    def check(self, result: Any, expected: Any) -> None:
        if isinstance(expected, type):
            assert isinstance(result, expected)
        else:
            assert result == expected

    @precondition(lambda self: self.senders)
    @rule(at=AT, times=st.integers(1, 5), cancelled=st.booleans())
    def send(self, at: int, times: int, cancelled: bool) -> None:
        """Perhaps one is cancelled that what was sent had woken: it has missed nothing by that."""
        for _ in range(times):
            assert self.senders[at % len(self.senders)].send(self.sent) == 4
            self.sent += 1
        gone = self.waiting[at % len(self.waiting)] if cancelled and self.waiting else None
        if gone is not None:
            gone.task.cancel()
        self.stage.turn()
        for actor in self.waiting:
            expected = CANCELLED if actor is gone else self.outlook(self.stage.actors.index(actor))
            self.check(actor.results[-1], expected)
        self.waiting.clear()

    @rule(at=AT)
    def receive(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        expected = self.outlook(at)
        self.stage.tell(actor, self.receivers[at].receive_async)
        if expected is None:
            self.waiting.append(actor)
        else:
            self.check(actor.results[-1], expected)

    @rule(at=AT)
    def try_to_receive(self, at: int) -> None:
        if self.stage.actors[at].waits:
            return
        expected = self.outlook(at)
        if isinstance(expected, type) or expected is None:
            with pytest.raises(expected or QueueEmpty):
                self.receivers[at].receive_nowait()
        else:
            assert self.receivers[at].receive_nowait() == expected

    @rule(at=AT, source=AT)
    def clone(self, at: int, source: int) -> None:
        if not self.stage.actors[at].waits and at != source:
            self.receivers[at].close()
            self.receivers[at] = self.receivers[source].clone()
            self.places[at] = self.places[source]

    @precondition(lambda self: self.waiting)
    @rule(at=AT)
    def cancel(self, at: int) -> None:
        actor = self.waiting.pop(at % len(self.waiting))
        actor.task.cancel()
        self.stage.turn()
        assert actor.results[-1] == CANCELLED

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "receivers"):
            self.check_waiting()
            for receiver, place in zip(self.receivers, self.places, strict=True):
                assert receiver.statistics() == (
                    self.sent - place,
                    len(self.senders),
                    4,
                    0,
                    len(self.waiting),
                    not self.senders,
                )
            if not self.capacity:
                assert self.receivers[0].value == (self.sent - 1 if self.sent else None)


TestChannels = Channels.TestCase
TestChannels.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)
TestTapes = Tapes.TestCase
TestTapes.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)

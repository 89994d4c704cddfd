"""select_async over channels without room against a model: tasks that choose meet tasks that choose."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from actors import CANCELLED, Actor, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from fairlead.sync import channel, select_async

pytestmark = pytest.mark.once

AT = st.integers(0, 4)
SEND, RECEIVE = "send", "receive"
CASE = st.tuples(st.integers(0, 1), st.sampled_from([SEND, RECEIVE]))
LATE = "done, and then cancelled"


class Choices(Staged):
    """Objects are numbers, a number for each selection. Nobody meets itself."""

    def __init__(self) -> None:
        super().__init__()
        self.channels = [channel(0) for _ in range(2)]
        self.next = 0
        self.queue: list[tuple[Actor, list[tuple[int, str]], int]] = []
        self.back: list[list[int]] = [[], []]
        """Came for a task that was cancelled."""

    async def choose_one(self, cases: list[tuple[int, str]], number: int) -> Any:
        found = await select_async(
            *(
                self.channels[which][0].send_async(number)
                if side == SEND
                else self.channels[which][1].receive_async()
                for which, side in cases
            )
        )
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            return *found, LATE
        return *found, ""

    def first_that(self, which: int, side: str) -> int | None:
        for place, (_, cases, _) in enumerate(self.queue):
            if (which, side) in cases:
                return place
        return None

    def partner(self, case: tuple[int, str]) -> int | None:
        return self.first_that(case[0], RECEIVE if case[1] == SEND else SEND)

    def met(self, which: int, side: str) -> tuple[Actor, int, int]:
        """The first that waits there is gone: it, which case of its it was, and its number."""
        place = self.first_that(which, side)
        assert place is not None
        actor, cases, number = self.queue.pop(place)
        return actor, cases.index((which, side)), number

    @rule(at=AT, cases=st.lists(CASE, min_size=1, max_size=4, unique=True))
    def choose(self, at: int, cases: list[tuple[int, str]]) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        back = [case for case in cases if case[1] == RECEIVE and self.back[case[0]]]
        ready = back + [case for case in cases if case not in back and self.partner(case) is not None]
        cases = [case for case in cases if case not in ready[1:]]  # of several any may be taken
        self.next += 1
        number = self.next
        self.stage.tell(actor, lambda: self.choose_one(cases, number))
        if back:
            which = ready[0][0]
            self.expect([actor], [(cases.index(ready[0]), self.back[which].pop(0), "")])
        elif ready:
            which, side = ready[0]
            other, index, its = self.met(which, RECEIVE if side == SEND else SEND)
            mine = (cases.index(ready[0]), None if side == SEND else its, "")
            self.expect([actor, other], [mine, (index, number if side == SEND else None, "")])
        else:
            self.queue.append((actor, cases, number))

    @rule(which=st.integers(0, 1), cancels=st.booleans())
    def thread_receives(self, which: int, cancels: bool) -> None:
        """Perhaps who sends is cancelled before it has run: too late."""
        receiver = self.channels[which][1]
        if self.back[which]:
            assert receiver.receive_nowait() == self.back[which].pop(0)
        elif self.first_that(which, SEND) is not None:
            actor, index, number = self.met(which, SEND)
            assert receiver.receive_nowait() == number
            if cancels:
                actor.task.cancel()
            self.stage.turn()
            self.expect([actor], [(index, None, LATE if cancels else "")])

    @rule(which=st.integers(0, 1), cancels=st.booleans())
    def thread_sends(self, which: int, cancels: bool) -> None:
        """Perhaps who receives is cancelled before it has run: the next one has it."""
        if self.first_that(which, RECEIVE) is None:
            return
        self.next += 1
        actor, index, _ = self.met(which, RECEIVE)
        self.channels[which][0].send_nowait(self.next)
        if not cancels:
            self.stage.turn()
            self.expect([actor], [(index, self.next, "")])
            return
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])
        if self.first_that(which, RECEIVE) is None:
            self.back[which].append(self.next)
        else:
            other, index, _ = self.met(which, RECEIVE)
            self.expect([other], [(index, self.next, "")])

    @precondition(lambda self: self.queue)
    @rule(at=AT)
    def cancel(self, at: int) -> None:
        actor, _, _ = self.queue.pop(at % len(self.queue))
        actor.task.cancel()
        self.stage.turn()
        self.expect([actor], [CANCELLED])

    @invariant()
    def agree(self) -> None:
        waiting = [actor for actor, _, _ in self.queue]
        for actor in self.stage.actors:
            assert actor.waits == (actor in waiting)
        for which, (_, receiver) in enumerate(self.channels):
            found = receiver.statistics()
            assert found.pending == len(self.back[which])
            assert found.sending == sum((which, SEND) in cases for _, cases, _ in self.queue)
            assert found.receiving == sum((which, RECEIVE) in cases for _, cases, _ in self.queue)


TestChoices = Choices.TestCase
TestChoices.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)

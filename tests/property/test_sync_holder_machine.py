"""RLock and CapacityLimiter, which know their holders, against models: tasks of a loop, and its thread."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Stage
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.errors import AlreadyHeldError, NotHeldError
from fairlead.sync import CapacityLimiter, RLock

pytestmark = pytest.mark.once

ACTORS = st.integers(0, 3)


class Holders(RuleBasedStateMachine):
    """With strict order the model knows who has what after each step. The thread is holder None."""

    subject: Any

    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(4)
        self.waiting: list[Actor] = []
        self.held: dict[Actor | None, int] = {}
        self.total = 1

    def settle(self) -> None:
        """Whoever is first in line has what is free."""
        self.stage.turn()
        while self.waiting and self.free():
            actor = self.waiting.pop(0)
            self.held[actor] = 1
        for actor in self.stage.actors:
            assert actor.waits == (actor in self.waiting)

    def free(self) -> bool:
        return len(self.held) < self.total

    @precondition(lambda self: self.waiting)
    @rule(at=ACTORS, late=st.booleans())
    def cancel(self, at: int, late: bool) -> None:
        """Perhaps after it was granted what the thread has given."""
        actor = self.waiting.pop(at % len(self.waiting))
        if late and self.held.get(None) == 1:
            del self.held[None]
            self.subject.release()
        actor.task.cancel()
        self.settle()
        assert actor.results[-1] == CANCELLED

    def teardown(self) -> None:
        while self.held.get(None):
            self.held[None] -= 1
            self.subject.release()
        self.stage.close()
        if hasattr(self, "subject"):
            assert self.subject.statistics().waiting == 0


class RLocks(Holders):
    @initialize()
    def make(self) -> None:
        self.subject = RLock(fair=True)

    def takes_at_once(self, who: Actor | None) -> bool:
        return who in self.held or (self.free() and not self.waiting)

    @rule(at=ACTORS)
    def take(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        at_once = self.takes_at_once(actor)
        self.stage.tell(actor, self.subject.acquire_async)
        if at_once:
            assert actor.results[-1] is True
            self.held[actor] = self.held.get(actor, 0) + 1
        else:
            self.waiting.append(actor)
        self.settle()

    @rule(at=ACTORS)
    def try_to_take(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        expected = self.takes_at_once(actor)

        async def call() -> Any:
            return self.subject.acquire(False)

        self.stage.tell(actor, call)
        assert actor.results[-1] is expected
        if expected:
            self.held[actor] = self.held.get(actor, 0) + 1

    @rule(at=ACTORS)
    def give(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return

        async def call() -> Any:
            return self.subject.release()

        self.stage.tell(actor, call)
        if actor not in self.held:
            assert isinstance(actor.results[-1], NotHeldError)
            return
        assert actor.results[-1] is None
        self.let_go(actor)

    def let_go(self, who: Actor | None) -> None:
        self.held[who] -= 1
        if not self.held[who]:
            del self.held[who]
        self.settle()

    @rule()
    def thread_tries_to_take(self) -> None:
        expected = self.takes_at_once(None)
        assert self.subject.acquire(False) is expected
        if expected:
            self.held[None] = self.held.get(None, 0) + 1

    @rule()
    def thread_gives(self) -> None:
        if None not in self.held:
            with pytest.raises(NotHeldError):
                self.subject.release()
        else:
            self.subject.release()
            self.let_go(None)

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            depth = sum(self.held.values())
            assert self.subject.statistics() == (bool(self.held), depth, len(self.waiting), True)
            assert self.subject._recursion_count() == self.held.get(None, 0)


class Limiters(Holders):
    @initialize(total=st.integers(1, 3))
    def make(self, total: int) -> None:
        self.total = total
        self.subject = CapacityLimiter(total, fair=True)

    @rule(at=ACTORS)
    def take(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        self.stage.tell(actor, self.subject.acquire_async)
        if actor in self.held:
            assert isinstance(actor.results[-1], AlreadyHeldError)
        else:
            self.waiting.append(actor)
        self.settle()

    @rule(at=ACTORS)
    def give(self, at: int) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return

        async def call() -> Any:
            return self.subject.release()

        self.stage.tell(actor, call)
        if actor in self.held:
            assert actor.results[-1] is None
            del self.held[actor]
        else:
            assert isinstance(actor.results[-1], NotHeldError)
        self.settle()

    @rule()
    def thread_tries_to_take(self) -> None:
        if None in self.held:
            with pytest.raises(AlreadyHeldError):
                self.subject.acquire(False)
            return
        expected = self.free() and not self.waiting
        assert self.subject.acquire(False) is expected
        if expected:
            self.held[None] = 1

    @rule()
    def thread_gives(self) -> None:
        if None in self.held:
            self.subject.release()
            del self.held[None]
            self.settle()
        else:
            with pytest.raises(NotHeldError):
                self.subject.release()

    @rule(total=st.integers(0, 4))
    def resize(self, total: int) -> None:
        self.subject.total_tokens = self.total = total
        self.settle()

    @invariant()
    def agree(self) -> None:
        if hasattr(self, "subject"):
            assert self.subject.statistics() == (len(self.held), self.total, len(self.waiting), True)


TestRLocks = RLocks.TestCase
TestRLocks.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestLimiters = Limiters.TestCase
TestLimiters.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

"""select_async over fair semaphores against a model: tasks of a loop choose, its thread gives."""

from __future__ import annotations

from typing import Any

import pytest
from actors import CANCELLED, Actor, Stage
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fairlead.sync import Semaphore, select_async

pytestmark = pytest.mark.once

AT = st.integers(0, 3)
WHICH = st.integers(0, 2)


class Choices(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage(4)
        self.semaphores = [Semaphore(0, fair=True) for _ in range(3)]
        self.free = [0, 0, 0]
        self.waiting: list[tuple[Actor, list[int]]] = []

    @rule(at=AT, which=st.lists(WHICH, min_size=1, max_size=3, unique=True))
    def choose(self, at: int, which: list[int]) -> None:
        actor = self.stage.actors[at]
        if actor.waits:
            return
        ready = [one for one in which if self.free[one]]
        which = [one for one in which if one not in ready[1:]]  # of several any may be taken

        async def call() -> Any:
            return await select_async(*(self.semaphores[one].acquire_async() for one in which))

        self.stage.tell(actor, call)
        if ready:
            assert actor.results[-1] == (which.index(ready[0]), True)
            self.free[ready[0]] -= 1
        else:
            self.waiting.append((actor, which))

    def grant(self, which: int) -> None:
        """To the first that waits for it, if one does."""
        for one in self.waiting:
            if which in one[1]:
                self.waiting.remove(one)
                self.granted.append((one[0], one[1].index(which)))
                return
        self.free[which] += 1

    @rule(given=st.lists(WHICH, min_size=1, max_size=4), at=AT, cancels=st.booleans())
    def give(self, given: list[int], at: int, cancels: bool) -> None:
        """Several at once, and perhaps one that was granted something is cancelled before it has run."""
        self.granted: list[tuple[Actor, int]] = []
        chosen = dict(self.waiting)
        for which in given:
            self.semaphores[which].release()
            self.grant(which)
        gone = self.granted.pop(at % len(self.granted)) if cancels and self.granted else None
        if gone is not None:
            gone[0].task.cancel()
            self.grant(chosen[gone[0]][gone[1]])
        self.stage.turn()
        for actor, index in self.granted:
            assert actor.results[-1] == (index, True)
        if gone is not None:
            assert gone[0].results[-1] == CANCELLED

    @precondition(lambda self: self.waiting)
    @rule(at=AT)
    def cancel(self, at: int) -> None:
        actor, _ = self.waiting.pop(at % len(self.waiting))
        actor.task.cancel()
        self.stage.turn()
        assert actor.results[-1] == CANCELLED

    @invariant()
    def agree(self) -> None:
        for actor in self.stage.actors:
            assert actor.waits == (actor in [one for one, _ in self.waiting])
        for which, semaphore in enumerate(self.semaphores):
            queued = sum(which in wanted for _, wanted in self.waiting)
            assert semaphore.statistics() == (self.free[which], queued, True)

    def teardown(self) -> None:
        self.stage.close()


TestChoices = Choices.TestCase
TestChoices.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)

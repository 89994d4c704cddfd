"""StripedCounter against a whole number: by this thread, by others, and by tasks that are cancelled."""

from __future__ import annotations

import pytest
from actors import CANCELLED, Staged
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule
from waiting import Thread

from fairlead.sync import Lock, StripedCounter

pytestmark = pytest.mark.once

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


class Counters(Staged):
    def __init__(self) -> None:
        super().__init__()
        self.subject = StripedCounter()
        self.value = 0
        self.lock = Lock()

    @rule(n=NUMBERS)
    def add(self, n: int) -> None:
        self.subject.add(n)
        self.value += n

    @rule(up=st.booleans())
    def step(self, up: bool) -> None:
        (self.subject.increment if up else self.subject.decrement)()
        self.value += 1 if up else -1

    @rule(numbers=st.lists(NUMBERS, max_size=5), threads=st.integers(1, 2))
    def threads_add(self, numbers: list[int], threads: int) -> None:
        def body() -> None:
            for n in numbers:
                self.subject.add(n)

        for thread in [Thread(body) for _ in range(threads)]:
            thread.result()
        self.value += threads * sum(numbers)

    @rule(n=NUMBERS, at=st.integers(0, 4))
    def task_that_is_cancelled_has_added_once(self, n: int, at: int) -> None:
        actor = self.stage.actors[at]
        self.lock.acquire()

        async def body() -> None:
            self.subject.add(n)
            async with self.lock:
                self.subject.add(n)

        self.stage.tell(actor, body)
        actor.task.cancel()
        self.stage.turn()
        self.lock.release()
        assert actor.results[-1] == CANCELLED
        self.value += n

    @rule()
    def take(self) -> None:
        assert self.subject.sum_and_reset() == self.value
        self.value = 0

    @rule()
    def reset(self) -> None:
        self.subject.reset()
        self.value = 0

    @invariant()
    def agree(self) -> None:
        assert self.subject.sum() == int(self.subject) == self.subject.statistics().sum == self.value


TestCounters = Counters.TestCase
TestCounters.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)

"""Lock and Semaphore against a model, by sequences of calls of one loop's tasks and of its thread."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.sync import BoundedSemaphore, Lock

pytestmark = pytest.mark.once


class Permits(RuleBasedStateMachine):
    """With strict order the model knows who has what after each step; barging is the stress test's."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.waiting: list[tuple[asyncio.Task[Any], int]] = []
        self.held: list[int] = []

    @initialize(permits=st.integers(1, 4), lock=st.booleans())
    def make(self, permits: int, lock: bool) -> None:
        self.total = 1 if lock else permits
        self.subject: Any = Lock(fair=True) if lock else BoundedSemaphore(permits, fair=True)
        self.lock = lock

    @property
    def free(self) -> int:
        return self.total - sum(self.held)

    def settle(self) -> None:
        """Lets the loop do all that it can, and the model what it must."""
        served = []
        while self.waiting and self.waiting[0][1] <= self.free:
            task, wanted = self.waiting.pop(0)
            self.held.append(wanted)
            served.append(task)
        for task in served:
            assert self.loop.run_until_complete(asyncio.wait_for(task, 30)) is True

    @rule(wanted=st.integers(1, 4))
    def try_to_take(self, wanted: int) -> None:
        wanted = min(wanted, self.total)
        expected = not self.waiting and wanted <= self.free
        taken = self.subject.acquire(False) if self.lock else self.subject.acquire(False, n=wanted)
        assert taken is expected
        if taken:
            self.held.append(wanted)

    @rule(wanted=st.integers(1, 4))
    def wait(self, wanted: int) -> None:
        wanted = min(wanted, self.total)

        async def body() -> bool:
            return bool(await self.subject.acquire_async(*[] if self.lock else [wanted]))

        task = self.loop.create_task(body())
        self.loop.run_until_complete(asyncio.sleep(0))
        self.waiting.append((task, wanted))
        self.settle()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), late=st.booleans())
    def cancel(self, data: st.DataObject, late: bool) -> None:
        at = data.draw(st.integers(0, len(self.waiting) - 1))
        task, _ = self.waiting.pop(at)
        if late and self.held:
            self.subject.release(*[] if self.lock else [self.held[-1]])
            self.held.pop()
        task.cancel()
        self.loop.run_until_complete(asyncio.wait([task]))
        assert task.cancelled()
        self.settle()

    @precondition(lambda self: self.held)
    @rule()
    def give(self) -> None:
        self.subject.release(*[] if self.lock else [self.held[0]])
        self.held.pop(0)
        self.settle()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "subject"):
            return
        statistics = self.subject.statistics()
        assert statistics.waiting == len(self.waiting)
        assert self.subject.locked() == (self.free == 0)
        if not self.lock:
            assert statistics.value == self.free

    def teardown(self) -> None:
        for task, _ in self.waiting:
            task.cancel()
        if self.waiting:
            self.loop.run_until_complete(asyncio.wait([task for task, _ in self.waiting]))
        self.loop.close()
        if hasattr(self, "subject"):
            assert self.subject.statistics().waiting == 0


TestPermits = Permits.TestCase
TestPermits.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)

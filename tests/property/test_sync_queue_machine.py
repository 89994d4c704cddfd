"""The queues against models (deque, list, heapq), by sequences of calls of a loop's tasks and its thread."""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from fairlead.errors import QueueEmpty, QueueFull, QueueShutDown
from fairlead.sync import LifoQueue, PriorityQueue, Queue

pytestmark = pytest.mark.once


class Model:
    """What a queue holds, in the order of its kind."""

    def __init__(self, kind: type[Any]) -> None:
        self.kind = kind
        self.held: Any = deque() if kind is Queue else []

    def put(self, item: int) -> None:
        if self.kind is PriorityQueue:
            heapq.heappush(self.held, item)
        else:
            self.held.append(item)

    def get(self) -> int:
        if self.kind is Queue:
            return int(self.held.popleft())
        return int(heapq.heappop(self.held) if self.kind is PriorityQueue else self.held.pop())

    def peek(self) -> int:
        return int(self.held[-1] if self.kind is LifoQueue else self.held[0])


class Queues(RuleBasedStateMachine):
    """With strict order the model knows who has what after each step; barging is the stress test's."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.getters: list[asyncio.Task[Any]] = []
        self.putters: list[tuple[asyncio.Task[Any], int]] = []
        self.joiners: list[asyncio.Task[Any]] = []
        self.unfinished = 0
        self.shut = False

    @initialize(kind=st.sampled_from([Queue, LifoQueue, PriorityQueue]), maxsize=st.integers(0, 3))
    def make(self, kind: type[Any], maxsize: int) -> None:
        self.subject = kind(maxsize, fair=True)
        self.model = Model(kind)
        self.maxsize = maxsize

    @property
    def has_room(self) -> bool:
        return not self.maxsize or len(self.model.held) < self.maxsize

    def result(self, task: asyncio.Task[Any]) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(task, 30))

    def start(self, awaitable: Any) -> asyncio.Task[Any]:
        async def body() -> Any:
            return await awaitable

        task = self.loop.create_task(body())
        self.loop.run_until_complete(asyncio.sleep(0))
        return task

    def settle(self) -> None:
        """Lets the loop do all that it can, and the model what it must."""
        while self.putters and self.has_room:
            task, item = self.putters.pop(0)
            assert self.result(task) is None
            self.was_put(item)
        if self.unfinished == 0:
            for task in self.joiners:
                assert self.result(task) is None
            self.joiners.clear()

    def was_put(self, item: int) -> None:
        self.unfinished += 1
        self.model.put(item)
        if self.getters:
            assert self.result(self.getters.pop(0)) == self.model.get()

    @rule(item=st.integers(0, 9))
    def put_nowait(self, item: int) -> None:
        if self.shut:
            with pytest.raises(QueueShutDown):
                self.subject.put_nowait(item)
        elif self.putters or not self.has_room:
            with pytest.raises(QueueFull):
                self.subject.put(item, timeout=0)
        else:
            self.subject.put_nowait(item)
            self.was_put(item)
            self.settle()

    @rule(item=st.integers(0, 9))
    def put_async(self, item: int) -> None:
        task = self.start(self.subject.put_async(item))
        if self.shut:
            with pytest.raises(QueueShutDown):
                self.result(task)
        else:
            self.putters.append((task, item))
            self.settle()

    @rule()
    def get_nowait(self) -> None:
        if self.model.held:
            assert self.subject.peek_nowait() == self.model.peek()
            assert self.subject.get_nowait() == self.model.get()
            self.settle()
        else:
            with pytest.raises(QueueShutDown if self.shut else QueueEmpty):
                self.subject.get_nowait()

    @rule()
    def get_async(self) -> None:
        task = self.start(self.subject.get_async())
        if self.model.held:
            assert self.result(task) == self.model.get()
            self.settle()
        elif self.shut:
            with pytest.raises(QueueShutDown):
                self.result(task)
        else:
            self.getters.append(task)

    @precondition(lambda self: self.getters)
    @rule(data=st.data(), item=st.none() | st.integers(0, 9))
    def cancel_a_getter(self, data: st.DataObject, item: int | None) -> None:
        """Perhaps after it was granted an object."""
        task = self.getters.pop(data.draw(st.integers(0, len(self.getters) - 1)))
        if item is not None:
            self.subject.put_nowait(item)
        self.cancel(task)
        if item is not None:
            self.was_put(item)
        self.settle()

    @precondition(lambda self: self.putters)
    @rule(data=st.data(), late=st.booleans())
    def cancel_a_putter(self, data: st.DataObject, late: bool) -> None:
        task, _ = self.putters.pop(data.draw(st.integers(0, len(self.putters) - 1)))
        if late:
            assert self.subject.get_nowait() == self.model.get()
        self.cancel(task)
        self.settle()

    def cancel(self, task: asyncio.Task[Any]) -> None:
        task.cancel()
        self.loop.run_until_complete(asyncio.wait([task]))
        assert task.cancelled()

    @rule()
    def task_done(self) -> None:
        if self.unfinished:
            self.subject.task_done()
            self.unfinished -= 1
            self.settle()
        else:
            with pytest.raises(ValueError, match="too many"):
                self.subject.task_done()

    @rule()
    def join(self) -> None:
        assert self.subject.join(0) is (self.unfinished == 0)
        self.joiners.append(self.start(self.subject.join_async()))
        self.settle()

    @rule(maxsize=st.integers(0, 4))
    def resize(self, maxsize: int) -> None:
        self.subject.resize(maxsize)
        self.maxsize = maxsize
        if not self.shut:
            self.settle()

    @precondition(lambda self: not self.shut or self.model.held)
    @rule(immediate=st.booleans(), sure=st.sampled_from([False, False, True]))
    def shutdown(self, immediate: bool, sure: bool) -> None:
        if not sure:
            return
        self.subject.shutdown(immediate)
        self.shut = True
        if immediate:
            self.unfinished = max(0, self.unfinished - len(self.model.held))
            self.model.held.clear()
        for task in self.getters + [task for task, _ in self.putters]:
            with pytest.raises(QueueShutDown):
                self.result(task)
        self.getters.clear()
        self.putters.clear()
        self.settle()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "subject"):
            return
        assert self.subject.statistics() == (
            len(self.model.held),
            self.maxsize,
            len(self.getters),
            len(self.putters),
            len(self.joiners),
            self.unfinished,
            self.shut,
            True,
        )
        assert self.subject.empty() is (not self.model.held)
        assert self.subject.full() is (bool(self.maxsize) and not self.has_room)

    def teardown(self) -> None:
        tasks = self.getters + [task for task, _ in self.putters] + self.joiners
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks))
        self.loop.close()
        if hasattr(self, "subject"):
            assert self.subject.statistics()[2:5] == (0, 0, 0)


TestQueues = Queues.TestCase
TestQueues.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)

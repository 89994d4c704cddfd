"""Small things that must be exact when two come at once."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import strategies as st
from waiting import Thread

from fairlead.errors import ResourceBusyError
from fairlead.sync import Event, once
from fairlead.sync.extra import Flag, ResourceGuard, StripedCounter
from specifications.specification import WAITS, Call, Specification, at_once, waits

NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)


class Onces(Specification):
    """The function waits for its end, which an operation decides. If it fails, or is cancelled, the next one
    that waits runs it."""

    value: int | None = None
    runner: Call | None = None
    begun = should_begin = 0

    def make(self) -> Any:
        return once(self.function)

    async def function(self) -> int:
        self.begun += 1
        self.future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await self.future

    def serve(self) -> None:
        super().serve()
        if self.value is None and self.runner not in self.queue + self.granted:
            self.runner = next((call for call in self.queue if call not in self.doomed), None)
            self.should_begin += self.runner is not None

    @waits(task=lambda it: it.subject.call_async())
    def call_it(self) -> Any:
        return WAITS if self.value is None else self.value

    def ran_call_it(self) -> Any:
        self.value = self.me.result
        return self.me.result

    def runs(self) -> bool:
        return self.runner in self.queue and self.runner not in self.doomed

    @at_once(st.integers(0, 9), now=lambda it, value: it.future.set_result(value), when=runs)
    def succeed(self, value: int) -> None:
        self.grant(self.runner, value)

    @at_once(now=lambda it: it.future.set_exception(LookupError()), when=runs)
    def fail(self) -> None:
        self.grant(self.runner, LookupError)

    def check(self) -> None:
        assert self.begun == self.should_begin
        callers = len(self.queue + self.granted)
        assert self.subject.statistics() == (self.value is not None, callers > 0, max(callers - 1, 0))


class ResourceGuards(Specification):
    examples = 8
    make = staticmethod(ResourceGuard)
    busy = False

    @at_once(now=lambda it: it.subject.__enter__())
    def enter(self) -> Any:
        """The one that is inside may not come a second time either."""
        if self.busy:
            return ResourceBusyError
        self.busy = True
        return None

    @at_once(now=lambda it: it.subject.__exit__(None, None, None), when=lambda it: it.busy)
    def leave(self) -> None:
        self.busy = False

    def statistics(self) -> Any:
        return (self.busy,)


class Flags(Specification):
    """Of several that set it at once one succeeds, and its value stays."""

    examples = 8
    make = staticmethod(Flag)
    value: int | None = None

    def set_at_once(self, values: list[int]) -> list[bool]:
        gate = Event()

        def set_behind(value: int) -> bool:
            gate.wait()
            return bool(self.subject.set(value))

        threads = [Thread(set_behind, value) for value in values]
        gate.set()
        told = [thread.result() for thread in threads]
        if True in told:
            assert self.subject.get() == values[told.index(True)]
        return sorted(told)

    @at_once(st.lists(st.integers(0, 9), min_size=1, max_size=3), now=set_at_once)
    def set(self, values: list[int]) -> list[bool]:
        first = self.value is None
        self.value = self.subject.get() if first else self.value
        return [False] * (len(values) - first) + [True] * first

    @at_once()
    def clear(self) -> None:
        self.value = None

    def check(self) -> None:
        is_set = self.value is not None
        assert self.subject.statistics() == (is_set,)
        assert self.subject.is_set() is bool(self.subject) is is_set
        assert self.subject.get(-1) == (self.value if is_set else -1)


class StripedCounters(Specification):
    examples = 15
    make = staticmethod(StripedCounter)
    value = 0

    @at_once(NUMBERS)
    def add(self, n: int) -> None:
        self.value += n

    @at_once(
        st.sampled_from([-1, 1]),
        now=lambda it, n: (it.subject.increment if n > 0 else it.subject.decrement)(),
    )
    def step(self, n: int) -> None:
        self.value += n

    def add_in_threads(self, numbers: list[int], threads: int) -> None:
        for thread in [Thread(list, map(self.subject.add, list(numbers))) for _ in range(threads)]:
            thread.result()

    @at_once(st.lists(NUMBERS, max_size=5), st.integers(1, 2), now=add_in_threads)
    def threads_add(self, numbers: list[int], threads: int) -> None:
        self.value += threads * sum(numbers)

    @at_once(st.booleans(), now=lambda it, reads: it.subject.sum_and_reset() if reads else it.subject.reset())
    def take(self, reads: bool) -> Any:
        value, self.value = self.value, 0
        return value if reads else None

    def check(self) -> None:
        assert self.subject.sum() == int(self.subject) == self.subject.statistics().sum == self.value

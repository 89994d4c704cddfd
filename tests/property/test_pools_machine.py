"""The life of a pool, explored: what engine/contract.py promises of its states, for every kind.

A model knows of each task what it does (returns, raises, ends its worker, waits for a gate, for another task
or for the pool's end, has too little time) and what was done to it; of workers, whether they start at once,
wait for a gate first, which may take too long, or fail at first. Hypothesis chooses what happens next.
Nothing here depends on how fast things are: a task that must still be running waits for a file that the
machine makes.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    multiple,
    precondition,
    rule,
)
from poolkinds import KINDS, pass_time
from pooltasks import negative_raises, square, wait_for
from waiting import PATIENCE_S, until

from fairlead.errors import (
    BrokenPoolError,
    DeadlockError,
    PoolClosedError,
    TaskTimeoutError,
    WorkerDiedError,
)
from fairlead.pools import Pool
from fairlead.pools.engine.contract import Lost, Task, Worker
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.engine.worker_slots import this_thread

pytestmark = pytest.mark.once

WORKERS = 2
IN_THREADS = {"threads", "async"}
"""Kinds whose tasks can have the pool itself."""


class Unlucky(Worker):
    """Cannot be started."""

    def start(self) -> None:
        raise Lost("no worker to be had")

    def run(self, task: Task) -> None:
        raise NotImplementedError

    def stop(self) -> bool:
        return True

    def close(self) -> None:
        pass


class Life:
    """A task as the model sees it."""

    def __init__(self, future: Future[Any], gate: Path | None, expected: Callable[[Any], bool]) -> None:
        self.future = future
        self.gate = gate
        """Made: its call goes on."""
        self.expected = expected
        """Of the outcome, if nobody has cancelled it."""
        self.cancelled = False
        """By this test, and the pool has said that it did."""
        self.called: list[Any] = []
        future.add_done_callback(self.called.append)


def outcome(future: Future[Any]) -> Any:
    """The result, or the exception: CancelledError, too."""
    try:
        return future.exception(PATIENCE_S) or future.result()
    except CancelledError as error:
        return error


class PoolLife(RuleBasedStateMachine):
    """OPEN -> CLOSED or TERMINATED -> over, when its workers have ended."""

    kind: str
    tasks: Bundle[Life] = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="fairlead-"))
        self.lives: list[Life] = []
        self.nested: list[Future[Any]] = []
        self.gates = 0
        self.closed = self.dropped = self.terminated = False
        self.late = False
        """A start may have taken too long, and then the pool is broken."""

    @initialize(how=st.sampled_from(["at once", "gated", "unlucky"]))
    def start(self, how: str) -> None:
        given: dict[str, Any] = {"max_workers": WORKERS}
        self.gated_start = how == "gated" and self.kind != "sequential"
        if self.gated_start:
            given |= {"initializer": wait_for, "initargs": (str(self.place / "0"),), "start_timeout": 3600}
        self.pool: Pool = KINDS[self.kind](**given)
        engine: Any = self.pool._engine
        if how == "unlucky" and isinstance(engine, WorkerManager):
            make = engine._make_worker
            # that which a slot's own thread makes in the place of such a one starts
            engine._make_worker = lambda: make() if this_thread.manager is engine else Unlucky()

    # tasks

    def submit(
        self,
        expected: Callable[[Any], bool],
        function: Callable[..., Any],
        *args: Any,
        gate: Path | None = None,
        **options: Any,
    ) -> Life:
        pool = self.pool.with_options(**options) if options else self.pool
        life = Life(pool.submit(function, *args), gate, expected)
        self.lives.append(life)
        return life

    def is_open(self) -> bool:
        return not self.closed

    def has_workers(self) -> bool:
        return not self.closed and self.kind != "sequential"

    @precondition(is_open)
    @rule(target=tasks, n=st.integers(0, 9))
    def quick(self, n: int) -> Life:
        return self.submit(lambda end: end == n * n, square, n)

    @precondition(is_open)
    @rule(target=tasks)
    def raising(self) -> Life:
        return self.submit(lambda end: isinstance(end, ValueError), negative_raises, -1)

    @precondition(has_workers)
    @rule(target=tasks, number=st.integers(1, WORKERS + 2))
    def gated(self, number: int) -> Any:
        """As many as there are workers, and more."""
        return multiple(*(self.one_gated() for _ in range(number)))

    def one_gated(self) -> Life:
        self.gates += 1
        gate = self.place / str(self.gates)
        return self.submit(lambda end: end == str(gate), wait_for, str(gate), gate=gate)

    @precondition(has_workers)
    @rule(target=tasks)
    def without_time(self) -> Life:
        """Waits for what never comes, and has no time for it."""
        never = str(self.place / "never")
        return self.submit(lambda end: isinstance(end, TaskTimeoutError), wait_for, never, timeout=0.01)

    @precondition(is_open)
    @rule(target=tasks)
    def leaving(self) -> Life:
        """Ends its worker where it can, and raises SystemExit where it cannot."""
        if self.kind == "processes":
            return self.submit(lambda end: isinstance(end, WorkerDiedError), os._exit, 3)
        return self.submit(lambda end: isinstance(end, SystemExit), sys.exit, 3)

    @precondition(lambda self: self.is_open() and self.kind == "threads")
    @rule(target=tasks, n=st.integers(0, 9))
    def waiting_for_another(self, n: int) -> Life:
        """Which the pool may be closed for, or broken, before it is submitted."""

        def nested() -> int:
            future = self.pool.submit(square, n)
            self.nested.append(future)
            return future.result()

        return self.submit(
            lambda end: end == n * n or isinstance(end, PoolClosedError | BrokenPoolError | CancelledError),
            nested,
        )

    @precondition(lambda self: self.is_open() and self.kind in IN_THREADS)
    @rule(target=tasks)
    def waiting_for_the_end(self) -> Life:
        life = self.submit(lambda end: isinstance(end, DeadlockError), self.pool.shutdown)
        self.pool.shutdown(wait=False)  # at once: its task may never begin
        self.closed = True
        return life

    @precondition(lambda self: self.closed)
    @rule()
    def refused(self) -> None:
        with pytest.raises((PoolClosedError, BrokenPoolError) if self.late else PoolClosedError):
            self.pool.submit(square, 2)

    # workers

    @precondition(lambda self: self.gated_start)
    @rule()
    def have_no_time_left(self) -> None:
        """Neither tasks nor starts that have a time-out. A start that has ended may have been in time, and
        the pool is closed in any case."""
        pass_time(self.pool)
        self.pool.shutdown(wait=False)
        self.closed = self.late = True

    # what is done to them

    @rule(life=tasks)
    def cancel(self, life: Life) -> None:
        ended = life.future.done()
        said = life.future.cancel()
        assert said is life.future.cancelled()
        if ended and not life.cancelled and not self.dropped and not self.terminated:
            assert not said
        life.cancelled = life.cancelled or said

    @rule(life=consumes(tasks))
    def wait(self, life: Life) -> None:
        """Others that wait for a gate may be before it, so they are let through."""
        self.open_gates()
        self.check(life)

    def open_gates(self) -> None:
        (self.place / "0").touch()
        for life in self.lives:
            if life.gate is not None:
                life.gate.touch()

    def check(self, life: Life) -> None:
        end = outcome(life.future)
        if self.late and isinstance(end, BrokenPoolError):
            return
        if life.cancelled:
            assert isinstance(end, CancelledError)
        elif self.dropped or self.terminated:
            assert isinstance(end, CancelledError) or life.expected(end), end
        else:
            assert life.expected(end), end

    # the pool

    @precondition(is_open)
    @rule()
    def close(self) -> None:
        self.pool.shutdown(wait=False)
        self.closed = True

    @precondition(is_open)
    @rule()
    def close_and_cancel(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)
        self.closed = self.dropped = True

    @rule()
    def terminate(self) -> None:
        """Ends every task, those that wait for a gate, too."""
        self.pool.terminate()
        self.closed = self.terminated = True
        for life in self.lives:
            self.check(life)

    @rule()
    def count(self) -> None:
        numbers = self.pool.statistics()
        assert 0 <= numbers.running <= max(numbers.workers, len(self.lives))
        assert 0 <= numbers.queued <= len(self.lives)
        assert numbers.started <= numbers.workers + len(self.lives), "one more for each that waits"

    def teardown(self) -> None:
        if not hasattr(self, "pool"):
            return
        self.open_gates()
        self.pool.shutdown(timeout=PATIENCE_S)
        for life in self.lives:
            self.check(life)
        until(lambda: all(life.called for life in self.lives))
        assert all(life.called == [life.future] for life in self.lives), "a callback was called twice"
        numbers = self.pool.statistics()
        assert (numbers.queued, numbers.running) == (0, 0)
        ends = [outcome(future) for future in (*(life.future for life in self.lives), *self.nested)]
        broken = sum(isinstance(end, BrokenPoolError) for end in ends)
        counted = numbers.done + numbers.timed_out + numbers.cancelled + numbers.lost + broken
        assert counted == len(ends), "a task was counted twice, or not at all"
        shutil.rmtree(self.place)


def explored(kind: str, examples: int, steps: int) -> Any:
    """The machine's test for this kind."""
    test = type(f"PoolLife_{kind}", (PoolLife,), {"kind": kind}).TestCase  # type: ignore[attr-defined]
    test.settings = settings(max_examples=examples, stateful_step_count=steps, deadline=None)
    return test


TestSequential = explored("sequential", 10, 10)
TestThreads = explored("threads", 30, 12)
TestAsync = explored("async", 30, 12)
TestProcesses = explored("processes", 5, 10)
if "interpreters" in KINDS:
    TestInterpreters = explored("interpreters", 5, 10)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_lives_of_pools_at_length(kind: str) -> None:
    explored(kind, {"interpreters": 25, "processes": 40}.get(kind, 100), 30)("runTest").runTest()

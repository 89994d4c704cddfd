"""AutoPool: looks at the first calls, chooses a kind of pool for all, and says why."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from fairlead import machine
from fairlead.errors import SerializationError
from fairlead.pools import pool as make
from fairlead.pools.choose import rules
from fairlead.pools.choose.call_profile import NAP_S, CallMeter, CallSample
from fairlead.pools.choose.choice import Choice, ChoiceFacts, choose
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Engine, Options, Statistics, Task, broken
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.executor.base import Pool, checked, checked_callable
from fairlead.pools.serialization import calls, function
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.threads import ThreadWorker

T = TypeVar("T")

LOOK_S = 0.05
"""So long are the first calls looked at."""
CALLS = 5
"""And at most so many."""


class AutoPool(Pool):
    """Calls wherever they are done best, decided with the first ones; ``choice`` says where, and why.

    Coroutine functions go to an event loop. The first calls of any other function are made in a thread of
    this process, and what they do with their time is looked at for a twentieth of a second at most: whether
    they wait or compute, and with the GIL or without. Then all further calls go to threads, interpreters or
    processes. What is decided stays, also for other functions: a pool is for one kind of work.

    Args:
        max_workers: None: as many as the chosen kind makes by itself.
        initializer: called in each worker before its first task, and in the thread of the first calls.
        thread_name_prefix: of the threads that it starts.
        finalizer: called in each worker after its last task, and in the thread of the first calls.
    """

    _engine: _Auto

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        checked_callable("initializer", initializer)
        checked_callable("finalizer", finalizer)
        if max_workers is not None:
            checked("max_workers", max_workers)
        hooks = {"initializer": initializer, "initargs": initargs, "finalizer": finalizer}
        self._begin(_Auto(max_workers, hooks, thread_name_prefix))

    def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: Future[T] | None = None,
    ) -> Future[T]:
        if self._engine.chosen is None:
            return super()._submit(fn, args, kwargs, future)
        return self._engine.view(self._options)._submit(fn, args, kwargs, future)

    @property
    def choice(self) -> Choice | None:
        """What was chosen, and why; None before the first call. Waits while it is being decided."""
        return self._engine.decided()


class _Scout(ThreadWorker):
    """Makes the first calls, under the eyes of a meter."""

    __slots__ = ("meter", "results")

    def __init__(
        self,
        hooks: dict[str, Any],
        meter: CallMeter,
        results: list[Any],
    ) -> None:
        super().__init__(**hooks, interrupt=False)
        self.meter = meter
        self.results = results

    def run(self, task: Task) -> Any:
        self.meter.begin()
        try:
            value = super().run(task)
        finally:
            self.meter.end()
        self.results[:] = (value,)
        return value


class _Auto(Engine):
    """Keeps tasks until it is decided, and gives them to another engine then."""

    sends = True

    def __init__(
        self,
        workers: int | None,
        hooks: dict[str, Any],
        name: str,
    ) -> None:
        self.choice: Choice | None = None
        self._given = workers
        self._hooks = hooks
        self._name = name
        self._lock = EngineLock()
        self._pending: deque[Task] = deque()
        self._scout: WorkerManager | None = None
        self.chosen: Engine | None = None
        self._thread: threading.Thread | None = None
        self._passed_on: dict[Task, Future[Any] | None] = {}
        """What has begun, by the chosen pool's future; None: that pool is being asked. The thread that takes
        a task from here ends it."""
        self._meter = CallMeter()
        self._results: list[Any] = []
        self._cancels = False
        self._terminates = False
        """What was asked for before it was decided is asked of the chosen engine, too."""
        shutdown.remember(self)

    # what the executor calls

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "auto" if self.chosen is None else self.chosen.kind

    @property
    def workers(self) -> int:  # type: ignore[override]
        if self.chosen is not None:
            return self.chosen.workers
        return self._given if self._given is not None else machine.cores().usable

    @property
    def call_cost_s(self) -> float:  # type: ignore[override]
        return super().call_cost_s if self.chosen is None else self.chosen.call_cost_s

    def portable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function if self.chosen is None else self.chosen.portable(function)

    def enqueue(self, task: Task) -> None:
        if self.chosen is None:
            with self._lock:
                self._check_open()
                if self.chosen is None:
                    self._pending.append(task)
                    if self._thread is None:
                        self._thread = shutdown.thread(
                            self._decide, None, f"{self._name or 'AutoPool'}-choice"
                        )
                        self._thread.start()
                    return
        self._pass_on(task)

    def view(self, options: Options) -> Pool:
        """The chosen pool, with these options."""
        if options == self._pool._options:
            return self._pool
        return self._pool.with_options(
            timeout=options.timeout, retries=options.retries, context=options.context
        )

    def _pass_on(self, task: Task) -> None:
        """To the chosen pool, whose future ends that of the task."""
        self._passed_on[task] = None  # before it begins: a cancellation finds it queued or here
        if not task.begin():
            del self._passed_on[task]
            return
        view = self.view(task.options)
        try:
            if task.context is None:
                future = view._submit(task.function, tuple(task.args), task.kwargs)
            else:
                future = task.context.run(view._submit, task.function, tuple(task.args), task.kwargs)
        except Exception as error:  # noqa: BLE001 - the task's
            if self._passed_on.pop(task, self) is not self:
                task.fail(error)
            return
        with self._lock:
            if wanted := task in self._passed_on:
                self._passed_on[task] = future
        if wanted:
            future.listen(lambda _: self._over(task))
        else:
            future.cancel()

    def _over(self, task: Task) -> None:
        future = self._passed_on.pop(task, None)
        if future is None:
            return  # it was stopped
        if future.cancelled():
            task.give_up()
        elif (error := future.exception()) is not None:
            task.fail(error)
        else:
            task.succeed(future.result())

    def decided(self) -> Choice | None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        return self.choice

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:  # noqa: ARG002
        engine = None if self._lock._is_owned() else next(iter(self._engines()), None)
        return call() if engine is None else engine.uninterrupted(call)

    def stop(self, task: Task) -> bool:
        with self._lock:
            passed_on = task in self._passed_on
            future = self._passed_on.pop(task, None)
        if passed_on:
            if future is not None:
                future.cancel_here()
            task.give_up()
            return True
        return any(engine.stop(task) for engine in self._engines())

    def help(self, task: Task) -> None:
        if (future := self._passed_on.get(task)) is not None:
            future.help()
            return
        for engine in self._engines():
            engine.help(task)

    def here(self) -> bool:
        return any(engine.here() for engine in self._engines())

    def lend(self, *, blocking: bool = True) -> tuple[Engine, object] | None:
        for engine in self._engines():
            if (loan := engine.lend(blocking=blocking)) is not None:
                return engine, loan
        return None

    def take_back(self, loan: tuple[Engine, object]) -> None:
        engine, its = loan
        engine.take_back(its)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self.chosen is not None:
                self.chosen.close()

    def cancel_queued(self) -> None:
        with self._lock:
            self._cancels = True
            tasks = list(self._pending)
        for task in tasks:
            task.future.cancel()
        for engine in self._engines():
            engine.cancel_queued()

    def terminate(self) -> None:
        with self._lock:
            self._terminates = True
        self.close()
        self.cancel_queued()
        for engine in self._engines():
            engine.terminate()

    def join(self, timeout: float | None = None) -> bool:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)
        return all(
            engine.join(None if timeout is None else max(0.0, deadline - time.monotonic()))
            for engine in self._engines()
        )

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._lock = EngineLock()
        self._pending = deque()
        self._thread = None

    def statistics(self) -> Statistics:
        with self._lock:
            numbers: dict[str, Any] = {field.name: 0 for field in fields(Statistics)}
            for engine in self._engines():
                counted = engine.statistics()
                for field in fields(Statistics):
                    if field.name != "kind":
                        numbers[field.name] += getattr(counted, field.name)
            waiting = sum(not task.future.done() for task in self._pending)
            numbers.update(kind=self.kind, workers=self.workers, queued=numbers["queued"] + waiting)
        return Statistics(**numbers)

    def _engines(self) -> list[Engine]:
        return [engine for engine in (self._scout, self.chosen) if engine is not None]

    # the thread that decides

    def _decide(self, _: object) -> None:
        first = self._pending[0]
        try:
            sample = None if self._is_coroutines(first) else self._look()
            choice = choose(self._facts(first, sample))
            chosen = self._make(choice)
        except Exception as error:  # noqa: BLE001 - every task's error from now on
            self._break(error)
            return
        finally:
            if self._scout is not None:
                self._scout.close()
        while True:
            with self._lock:
                if not self._pending:  # and from now on all goes there directly
                    self.choice = choice
                    self.chosen = chosen
                    if self._closed:
                        chosen.close()
                    break
                task = self._pending.popleft()
            self._pass_on(task)
        if self._cancels:  # written before the engines are looked at, as the engine is before this
            chosen.cancel_queued()
        if self._terminates:
            chosen.terminate()

    def _break(self, error: Exception) -> None:
        self._broken = broken(f"no kind of pool could be chosen: {error}", error)
        with self._lock:
            self._closed = True
            tasks, self._pending = self._pending, deque()
        for task in tasks:
            if task.begin():
                task.fail(self._broken)

    @staticmethod
    def _is_coroutines(task: Task) -> bool:
        return function.makes_coroutines(_function(task))

    def _look(self) -> CallSample | None:
        """Has the first calls made, and looks at them."""
        self._scout = WorkerManager(
            "threads", 1, lambda: _Scout(self._hooks, self._meter, self._results),
            name=f"{self._name or 'AutoPool'}-first", in_thread=True, call_cost_s=5e-6,
        )  # fmt: skip
        shutdown.forget(self._scout)
        until = math.inf
        sample = None
        for _ in range(CALLS):
            with self._lock:
                if not self._pending:
                    break
                task = self._pending.popleft()
            self._meter.expect()
            try:
                self._scout.enqueue(task)
            except Exception as error:  # noqa: BLE001 - the task's
                if task.begin():
                    task.fail(error)
            if until == math.inf:  # the initializer may take its time, and so may a thread without a core
                while not (self._meter.has_begun or task.future.done()):
                    time.sleep(NAP_S)
                until = time.monotonic() + LOOK_S
            sample = self._meter.watch(max(until - time.monotonic(), 0.0)) or sample
            if time.monotonic() >= until:
                break
        return sample

    def _facts(self, task: Task, sample: CallSample | None) -> ChoiceFacts:
        called = _function(task)
        return ChoiceFacts(
            cores=machine.cores().usable,
            gil=rules.has_gil(),
            makes_coroutines=self._is_coroutines(task),
            sample=sample,
            alone=task.function is not call_chunk,
            cannot_be_sent=lambda: self._refusal(task),
            no_interpreters=rules.no_interpreters(),
            refusals=lambda: function.refusals(function.modules(called, _values(task))),
        )

    def _refusal(self, task: Task) -> str | None:
        try:
            calls.pack(task)
            for value in self._results:
                calls.pack_result(_function(task), value)
        except SerializationError as refusal:
            return str(refusal)
        return None

    def _make(self, choice: Choice) -> Engine:
        self._pool = make(
            str(choice.kind),
            self._given if self._given is not None else choice.workers,
            **self._hooks,
            thread_name_prefix=self._name,
        )
        shutdown.forget(self._pool._engine)  # it is ended by this
        return self._pool._engine


def _function(task: Task) -> Callable[..., Any]:
    called: Callable[..., Any] = task.args[0] if task.function is call_chunk else task.function
    return called


def _values(task: Task) -> list[Any]:
    """What the function is called with."""
    if task.function is not call_chunk:
        return [*task.args, *task.kwargs.values()]
    _, items, star = task.args
    return [value for item in items for value in (item if star else (item,))]

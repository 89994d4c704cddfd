"""AutoPool: looks at the first calls, chooses a kind of pool for all, and says why."""

from __future__ import annotations

import math
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from fairlead import machine
from fairlead.errors import BrokenPoolError, ModuleRefusedError, PoolClosedError, SerializationError
from fairlead.pools import pool as make
from fairlead.pools.choose import rules
from fairlead.pools.choose.call_profile import NAP_S, CallMeter, CallSample
from fairlead.pools.choose.choice import Choice, ChoiceFacts, choose, in_threads
from fairlead.pools.choose.sharing import KnownFunctions, Sharing, calls_of, differs, function_of
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Counts, Options, Task, broken
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.executor.base import Pool, checked, checked_callable, checked_seconds
from fairlead.pools.serialization import calls, function, pickling
from fairlead.pools.serialization.chunks import ChunkCalls, call_chunk
from fairlead.pools.serialization.failure import Failure

T = TypeVar("T")

LOOK_S = 0.05
"""So long are the first calls looked at."""
CALLS = 5
"""And at most so many."""
LINGER_S = 1.0
"""Threads beside the chosen workers end so long after their last call."""


class AutoPool(Pool):
    """Calls wherever they are done best, decided with the first ones; ``choice`` says where, and why.

    Coroutine functions go to an event loop. The first calls of any other function are made in a thread of
    this process, and what they do with their time is looked at for a twentieth of a second at most: whether
    they wait or compute, and with the GIL or without. Then all further calls go to threads, interpreters or
    processes. What is decided stays, also for other functions: a pool is for one kind of work.

    To interpreters and processes go only calls that come to the same there: calls that change what they share
    (globals, closures, their object, their arguments), that read what a worker has otherwise, or of which
    neither can be told, are made in threads.

    Args:
        max_workers: None: as many as the chosen kind makes by itself.
        initializer: called in each worker before its first task, and in the thread of the first calls.
        thread_name_prefix: of the threads that it starts.
        finalizer: called in each worker after its last task, and in the thread of the first calls.
        start_timeout: seconds that a worker's start may take; then the pool is broken. None for no limit.
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
        start_timeout: float | None = None,
    ) -> None:
        checked_callable(initializer=initializer, finalizer=finalizer)
        checked_seconds("start_timeout", start_timeout)
        if max_workers is not None:
            checked("max_workers", max_workers)
        options = {
            "thread_name_prefix": thread_name_prefix, "initializer": initializer, "initargs": initargs,
            "finalizer": finalizer, "start_timeout": start_timeout,
        }  # fmt: skip
        self._begin(_Auto(max_workers, options))
        self._options = Options(context="here")

    def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: Future[T] | None = None,
        engine: Engine | None = None,  # noqa: ARG002
    ) -> Future[T]:
        """Once it is chosen, that pool's engine takes all at once."""
        return super()._submit(fn, args, kwargs, future, self._engine.engine_for(fn, args, kwargs))

    @property
    def choice(self) -> Choice | None:
        """What was chosen, and why; None before the first call. Waits while it is being decided."""
        return self._engine.decided()


class _Auto(Engine):
    """Keeps tasks until it is decided, and hands them over then: to the threads, one of which has made the
    first calls, or to another kind's engine, beside which threads make the calls that must not go there."""

    kind = "auto"
    sends = True

    def __init__(self, workers: int | None, options: dict[str, Any]) -> None:
        self.choice: Choice | None = None
        self.chosen: Engine | None = None
        self._given = workers
        self._options = options
        self._pending: deque[Task] = deque()
        self._engines: list[Engine] = []
        """What tasks are handed over to: the threads, and the chosen one."""
        threads = self._made("threads", workers, idle_timeout=LINGER_S)
        assert isinstance(threads, WorkerManager)
        self._threads = threads
        self._most_threads, threads.workers = threads.workers, 1
        self._thread: threading.Thread | None = None
        self._meter = CallMeter()
        self._results: list[Any] = []
        self._cancels = False
        """What was asked for before it was decided is asked of the chosen engine, too."""
        self._asked = 0
        """Workers that answered whether they have all as this process has it: no calls of the user's."""
        self._known = KnownFunctions()
        if rules.no_interpreters() is None:
            self.task_type = self._tasks_for_interpreters()
        name = options["thread_name_prefix"] or "AutoPool"
        super().__init__(machine.cores().usable if workers is None else workers, name)

    # what the executor calls

    def portable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function if self.chosen is None else self.chosen.portable(function)

    def engine_for(self, called: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Engine | None:
        """Who makes this call; None while that is not decided."""
        chosen = self.chosen
        if chosen is None or not chosen.sends or self._closed:
            return chosen
        return chosen if self._known.may_go(called, args, kwargs) else self._threads

    def _tasks_for_interpreters(self) -> type[Task]:
        """Tasks that threads make after all, where an interpreter could not import what they need."""
        from fairlead.pools.interpreter.engine import Posted

        own = weakref.ref(self)

        class Retried(Posted):
            __slots__ = ()

            def end(self, value: Any, error: BaseException | None) -> None:
                auto = own()
                if auto is not None:
                    if error is None and self.function is call_chunk and auto._rest(self, value[0]):
                        return
                    if isinstance(error, ModuleRefusedError) and auto._in_threads(self):
                        return
                super().end(value, error)

        return Retried

    def _in_threads(self, task: Task) -> bool:
        """Has threads make a call that an interpreter could not; whether they do."""
        if task.future._engine is self._threads or not task.future.hand_over(self._threads):
            return False
        self._known.remember(function_of(task.function, task.args), None)
        task.attempts = 0
        try:
            self._threads.enqueue(task)
        except (PoolClosedError, BrokenPoolError):
            return False
        return True

    def _rest(self, task: Task, outcomes: list[Any]) -> bool:
        """As ``_in_threads``, of some calls of a chunk."""
        refused = [
            place
            for place, one in enumerate(outcomes)
            if isinstance(one, Failure) and isinstance(one.error, ModuleRefusedError)
        ]
        if not refused or task.future._engine is self._threads:
            return False
        function, chunk, star = task.args
        again = (function, ChunkCalls([chunk.left[0][place] for place in refused]), star)
        rest = Task(Future(), call_chunk, again, {}, task.options)
        rest.future.attach(self._threads, rest)

        def done(future: Future[Any]) -> None:
            if not future.cancelled() and future.exception() is None:
                for place, one in zip(refused, future.result()[0], strict=True):
                    outcomes[place] = one
            Task.end(task, (outcomes, 0), None)

        self._known.remember(function, None)
        try:
            self._threads.enqueue(rest)
        except (PoolClosedError, BrokenPoolError):
            return False
        rest.future.listen(done)
        return True

    def enqueue(self, task: Task) -> None:
        chosen = self.chosen or self._chosen_or_kept(task)
        if chosen is not None and task.future.hand_over(chosen):  # it was made before that was chosen
            chosen.enqueue(task)

    def _chosen_or_kept(self, task: Task) -> Engine | None:
        """What was chosen meanwhile, or is now for a function that makes coroutines; None: the task is kept
        until it is decided."""
        with self._lock:
            self._check_open()
            if self.chosen is None and self._thread is None and self._is_coroutines(task):
                choice = choose(self._facts(task, Sharing(task.function), []))
                self._settle(choice, self._made("async", self._given))
            if self.chosen is None:
                self._pending.append(task)
            if self.chosen is None and self._thread is None:
                self._thread = shutdown.thread(self._decide, task, f"{self._name}-choice")
                try:
                    with self._threads._lock:  # now: CPython 3.12.0 to 3.12.2 starts none at a program's end
                        if self._options["start_timeout"] is not None:
                            self._threads._start_watch()
                        self._threads._add_slot()
                    self._thread.start()
                except RuntimeError as error:
                    self._thread = None
                    self._pending.pop()
                    raise broken(f"no thread can be started to choose a kind: {error}", error) from error
            return self.chosen

    def _pass_on(self, task: Task, engine: Engine) -> None:
        """As ``enqueue``, for a task whose submission is over."""
        if task.future.hand_over(engine):
            try:
                engine.enqueue(task)
            except Exception as error:  # noqa: BLE001 - the task's
                if task.begin():
                    self._finish(task, error, again=False)

    def decided(self) -> Choice | None:
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        return self.choice

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:  # noqa: ARG002
        engine = None if self._lock._is_owned() or not self._engines else self._engines[-1]
        return call() if engine is None else engine.uninterrupted(call)

    def help(self, task: Task) -> None:
        for engine in self._engines:
            engine.help(task)

    def here(self) -> bool:
        return any(engine.here() for engine in self._engines)

    def lend(self, *, blocking: bool = True) -> tuple[Engine, object] | None:
        for engine in self._engines:
            if (loan := engine.lend(blocking=blocking)) is not None:
                return engine, loan
        return None

    def take_back(self, loan: tuple[Engine, object]) -> None:
        engine, its = loan
        engine.take_back(its)

    def cancel_queued(self) -> None:
        self._cancels = True
        super().cancel_queued()
        for engine in self._engines:
            engine.cancel_queued()

    def terminate(self) -> None:
        super().terminate()
        for engine in self._engines:
            engine.terminate()

    def join(self, timeout: float | None = None) -> bool:
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        if not super().join(timeout):
            return False
        others = [engine for engine in self._engines if engine is not self._threads]
        if not all(self._joined(engine, deadline) for engine in others):
            return False
        self._threads.close()  # not before: they make what interpreters cannot
        return self._joined(self._threads, deadline)

    @staticmethod
    def _joined(engine: Engine, deadline: float) -> bool:
        return engine.join(None if deadline == math.inf else max(0.0, deadline - time.monotonic()))

    def leave_behind(self, timeout: float) -> bool:
        return all(engine.leave_behind(timeout) for engine in self._engines)

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._pending = deque()
        self._thread = None

    # the queue

    def _close_queue(self) -> None:
        if self.chosen is not None:
            self.chosen.close()

    def _drain(self) -> list[Task]:
        with self._lock:
            tasks, self._pending = self._pending, deque()
        return [task for task in tasks if self._begin(task)]

    def _not_ended(self) -> list[threading.Thread]:
        return [] if self._thread is None else [self._thread]

    def _numbers(self) -> tuple[Counts, int, int, int]:
        total = Counts()
        total.add(self._counts)
        started = running = 0
        queued = sum(not task.future.done() for task in self._pending)
        for engine in self._engines:
            with engine._lock:
                counts, its_started, its_queued, its_running = engine._numbers()
            total.add(counts)
            started, queued, running = started + its_started, queued + its_queued, running + its_running
        total.done -= self._asked
        return total, started, queued, running

    # the thread that decides

    def _decide(self, first: Task) -> None:
        try:
            choice, chosen = _as_caller(first, self._choose, first)
        except Exception as error:  # noqa: BLE001 - every task's error from now on
            self._break(broken(f"no kind of pool could be chosen: {error}", error))
            return
        while True:
            with self._lock:
                if not self._pending:
                    self._settle(choice, chosen)
                    break
                task = self._pending.popleft()
            there = not chosen.sends or _as_caller(
                task, self._known.may_go, task.function, task.args, task.kwargs
            )
            self._pass_on(task, chosen if there else self._threads)
        if self._cancels:  # written before the engines are looked at, as the engine is before this
            chosen.cancel_queued()
        if self._terminated:
            chosen.terminate()

    def _settle(self, choice: Choice, chosen: Engine) -> None:
        """With the lock held: from now on all goes there directly."""
        self.kind, self.workers, self.call_cost_s = chosen.kind, chosen.workers, chosen.call_cost_s
        self.choice, self.chosen = choice, chosen
        if self._closed:
            chosen.close()

    def _choose(self, first: Task) -> tuple[Choice, Engine]:
        called = function_of(first.function, first.args)
        sharing = Sharing(called)
        with self._lock:
            tasks = [one for one in (first, *self._pending) if function_of(one.function, one.args) is called]
        made = [call for one in tasks for call in calls_of(one.function, one.args, one.kwargs)]
        before = set(sys.modules)
        sample = self._look()
        sharing.imports |= {name.partition(".")[0] for name in set(sys.modules) - before}
        facts = self._facts(first, sharing, made, sample)
        choice = choose(facts)
        while choice.kind != "threads":
            self._threads.workers = self._given or machine.cores().usable
            forward = {"forward_logging": True} if sharing.logs else {}
            chosen = self._made(choice.kind, self._given or choice.workers, **forward)
            refusal = self._tried(chosen, sharing)
            if refusal is None:
                if chosen.kind == "interpreters":
                    chosen.task_type = self.task_type
                self._known.remember(called, sharing)
                return choice, chosen
            chosen.terminate()
            if choice.kind == "interpreters":
                facts = replace(facts, no_interpreters=refusal)
                choice = choose(facts)
            else:
                choice = in_threads(facts.cores, choice.reasons[0], refusal)
        self._threads.workers = self._given or choice.workers or self._most_threads
        self._threads._idle_timeout = None
        return choice, self._threads

    def _tried(self, chosen: Engine, sharing: Sharing) -> str | None:
        """What a worker says against making the calls there; None if it has all as this process has it."""
        future: Future[str | None] = Future()
        task = chosen.task_type(future, differs, sharing.question(), {}, Options())
        future.attach(chosen, task)
        try:
            chosen.enqueue(task)
            said = future.result()
        except Exception as error:  # noqa: BLE001 - whatever keeps workers from starting
            return f"a worker cannot make them: {' '.join(str(error).split())}"[:300]
        self._asked += 1
        return said

    @staticmethod
    def _is_coroutines(task: Task) -> bool:
        return function.makes_coroutines(function_of(task.function, task.args))

    def _look(self) -> CallSample | None:
        """Has the first calls made, one after another, and looks at them."""
        until = math.inf
        sample = None
        for _ in range(CALLS):
            with self._lock:
                if not self._pending:
                    break
                task = self._pending.popleft()
            self._meter.expect()
            made, task.function = task.function, self._metered(task.function)
            self._pass_on(task, self._threads)
            if until == math.inf:  # the initializer may take its time, and so may a thread without a core
                while not (self._meter.has_begun or task.future.done()):
                    time.sleep(NAP_S)
                if self._threads._broken is not None:
                    raise self._threads._broken
                until = time.monotonic() + LOOK_S
            sample = self._meter.watch(max(until - time.monotonic(), 0.0)) or sample
            task.function = made
            if time.monotonic() >= until:
                break
        return sample

    def _metered(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Makes the call under the eyes of the meter."""

        def call(*args: Any, **kwargs: Any) -> Any:
            self._meter.begin()
            try:
                value = function(*args, **kwargs)
            finally:
                self._meter.end()
            self._results[:] = (value,)
            return value

        return call

    def _facts(
        self, task: Task, sharing: Sharing, made: list[Any], sample: CallSample | None = None
    ) -> ChoiceFacts:
        """``made``: the arguments of its calls that are known."""
        called = function_of(task.function, task.args)

        def refusals() -> Mapping[str, str]:
            values = [value for args, _ in calls_of(task.function, task.args, task.kwargs) for value in args]
            return function.refusals(
                function.importable({*function.modules(called, values), *sharing.imports})
            )

        return ChoiceFacts(
            cores=machine.cores().usable, gil=rules.has_gil(), makes_coroutines=self._is_coroutines(task),
            sample=sample, alone=task.function is not call_chunk, cannot_be_sent=lambda: self._refusal(task),
            shares=lambda: sharing.doubt(made), no_interpreters=rules.no_interpreters(), refusals=refusals,
        )  # fmt: skip

    def _refusal(self, task: Task) -> str | None:
        try:
            calls.pack(task)
            for value in self._results:
                calls.pack_result(function_of(task.function, task.args), value)
            begin, end = self._options["initializer"], self._options["finalizer"]
            if begin is not None:
                given = begin, self._options["initargs"]
                calls.shipped("initializer", begin, lambda: pickling.dumps(given))
            if end is not None:
                calls.shipped("finalizer", end, lambda: pickling.dumps(end))
        except SerializationError as refusal:
            return str(refusal)
        return None

    def _made(self, kind: str, workers: int | None, **given: Any) -> Engine:
        made = make(kind, workers, **self._options, **given)
        engine = made._engine
        made._at_end.detach()  # this engine ends it, and not its pool, nor the program
        shutdown.forget(engine)
        self._engines.append(engine)
        if self._terminated:  # asked once the engine can be found by terminate()
            engine.terminate()
        return engine


def _as_caller(task: Task, judge: Callable[..., T], *args: Any) -> T:
    """Calls it in the task's context: what libraries go by may be set there."""
    return judge(*args) if task.context is None else task.context.copy().run(judge, *args)

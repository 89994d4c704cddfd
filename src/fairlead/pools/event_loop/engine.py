"""The engine of AsyncPool is the thread of its loop.

Who takes a task out of ``_running``, under ``_lock``, ends it: the loop when the coroutine is over, a
time-out, or a cancellation. A coroutine that waits is cancelled, as any task of asyncio. One that is
computing (or a plain function) has the loop's thread, so that is sent an exception, which must not arrive
when the computing is over and the loop itself is running: see :class:`Step`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from fairlead.errors import DeadlockError, TaskTimeoutError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Engine, Statistics, Task, broken
from fairlead.pools.engine.deadlines import DeadlineTimer
from fairlead.pools.engine.finalizer import finalize
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.event_loop.steps import Step
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure


class Loop(Engine):
    """The queue, the loop and its thread, which begins with the first task."""

    kind = "async"

    def __init__(
        self,
        workers: int,
        initialize: tuple[Callable[..., object], tuple[Any, ...]] | None,
        finalizer: Callable[[], object] | None,
        name: str,
    ) -> None:
        self.workers = workers
        self.ident = 0
        self.inside: Step | None = None
        self.aim: Step | None = None
        self._initialize = initialize
        self._finalizer = finalizer
        self._name = name
        self._lock = threading.RLock()
        self._queue: deque[Task] = deque()
        self._again: set[Task] = set()
        """Those of the queue that have begun before."""
        self._running: dict[Task, tuple[Step, float]] = {}
        """And the moment when their time is up."""
        self._alive = 0
        """Coroutines that have not ended. More than ``_running``: who was cancelled may take its time."""
        self._lent: set[asyncio.Task[Any]] = set()
        """Tasks of the loop that wait for others of this pool, and have lent their places."""
        self._called = False
        """The loop has been told that there is something to do."""
        self._ready = False
        self._terminated_at = math.inf
        self._watch: DeadlineTimer | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._done = self._late = self._cancelled = self._retried = 0
        self._queue_ns = self._run_ns = 0
        shutdown.remember(self)

    # what the executor calls

    def enqueue(self, task: Task) -> None:
        with self._lock:
            self._check_open()
            if self._thread is None:
                self._begin()
            self._queue.append(task)
            self._call_loop()

    def stop(self, task: Task) -> bool:
        with self._lock:
            waits = task in self._again
            self._again.discard(task)
            if not waits and not self._take(task):
                return False
            self._cancelled += 1
        task.give_up()
        return True

    def help(self, task: Task) -> None:
        """Calls a plain function here; a coroutine function cannot be helped."""
        if threading.get_ident() != self.ident:
            return
        function = task.args[0] if task.function is call_chunk else task.function
        if inspect.iscoroutinefunction(function) or task.options.timeout is not None:
            return
        if task.attempts > 0 or not task.begin():
            return
        try:
            value = task.call()
        except BaseException as error:
            task.fail(error)
            if isinstance(error, Stopped):
                raise
        else:
            task.succeed(value)

    def here(self) -> bool:
        return threading.get_ident() == self.ident

    def lend(self, *, blocking: bool = True) -> asyncio.Task[Any] | None:
        if not self.here():
            return None
        if blocking:
            raise DeadlockError(
                "a task of an AsyncPool must not wait in result() for another, which its thread is to run: "
                "use `await pool.run(...)`, or `async for` with a stream"
            )
        # at any step a cancellation may end this: what is lent goes with its task, and no lock is taken
        if (task := asyncio.current_task()) is not None:
            self._lent.add(task)
            self.soon(self._pump)
        return task

    def take_back(self, loan: asyncio.Task[Any]) -> None:
        """It goes on, for a while with one more than there are places."""
        self._lent.discard(loan)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._call_loop()

    def cancel_queued(self) -> None:
        with self._lock:
            tasks = list(self._queue)
        for task in tasks:
            if task.attempts == 0:
                task.future.cancel()
            else:
                self.stop(task)

    def terminate(self) -> None:
        self.close()
        with self._lock:
            self._terminated_at = min(self._terminated_at, time.monotonic())
        self.cancel_queued()
        with self._lock:
            tasks = list(self._running)
            if self._loop is not None:  # a coroutine may refuse to end
                self.soon(lambda: self._loop and self._loop.call_later(shutdown.PATIENCE_S, self._loop.stop))
        for task in tasks:
            self.stop(task)

    def join(self, timeout: float | None = None) -> bool:
        return shutdown.join(self._not_ended, self._watch, timeout)

    def _not_ended(self) -> list[threading.Thread]:
        if self.inside is not None and time.monotonic() > self._terminated_at + shutdown.PATIENCE_S:
            return []  # in a call into C, which may never end
        return [] if self._thread is None else [self._thread]

    def statistics(self) -> Statistics:
        with self._lock:
            return Statistics(
                kind=self.kind, workers=self.workers, started=int(self._loop is not None),
                queued=sum(not task.future.done() for task in self._queue), running=len(self._running),
                done=self._done, timed_out=self._late, cancelled=self._cancelled, lost=0,
                retried=self._retried, restarts=0, queue_time_s=self._queue_ns / 1e9,
                run_time_s=self._run_ns / 1e9, bytes_out=0, bytes_in=0,
            )  # fmt: skip

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._lock = threading.RLock()
        self._queue, self._again, self._running = deque(), set(), {}
        self._watch = self._thread = self._loop = None

    # with the lock

    def _begin(self) -> None:
        thread = shutdown.thread(self._live, None, self._name)
        try:
            thread.start()
        except RuntimeError as error:
            raise broken(f"no thread can be started for the loop: {error}", error) from error
        self._thread = thread

    def _call_loop(self) -> None:
        if self._ready and not self._called:
            self.soon(self._pump)
            self._called = True  # after it: an interrupt in between costs a call in vain, and no task

    def soon(self, call: Callable[[], object]) -> None:
        """Has the loop call it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(call, context=contextvars.Context())

    def _take(self, task: Task) -> bool:
        """Takes a task that runs away from it and has it end; False if it is not running any more."""
        step, _ = self._running.pop(task, (None, 0.0))
        if step is None:
            return False
        self._run_ns += time.monotonic_ns() - task.began_ns
        step.interrupt()
        return True

    # the loop's thread

    def _live(self, _: object) -> None:
        try:
            loop = asyncio.new_event_loop()
        except Exception as error:  # noqa: BLE001 - every task's error from now on
            self._break(error)
            return
        self.ident = threading.get_ident()
        try:
            asyncio.set_event_loop(loop)
            try:
                if self._initialize is not None:
                    function, args = self._initialize
                    loop.run_until_complete(_awaited(function, *args))
            except BaseException as error:  # noqa: BLE001 - every task's error from now on
                self._break(error)
                return
            with self._lock:
                self._loop = loop
                self._ready = True
                self._call_loop()
            loop.run_forever()
            if (last := self._finalizer) is not None:
                finalize(lambda: loop.run_until_complete(_awaited(last)))
        finally:
            with self._lock:
                self._ready = False
                self._loop = None
            loop.run_until_complete(_cleared(loop))
            asyncio.set_event_loop(None)
            loop.close()
            self.ident = 0
            if self._watch is not None:
                self._watch.end()

    def _break(self, error: BaseException) -> None:
        with self._lock:
            self._broken = broken(str(error), error)
            self._closed = True
            tasks, self._queue = self._queue, deque()
        for task in tasks:
            if task.begin():
                task.fail(self._broken)

    def _pump(self) -> None:
        """Begins what there is room for; ends the loop when all is over."""
        with self._lock:
            self._called = False
            while self._queue and self._alive - len(self._lent) < self.workers:
                self._begin_task(self._queue.popleft())
            if (
                self._closed
                and not self._queue
                and self._alive == 0
                and self._loop is not None
                and self._ready
            ):
                self._ready = False  # what is called from now on must not stop the finalizer
                self._loop.stop()

    def _begin_task(self, task: Task) -> None:
        if task.attempts > 0:
            if task not in self._again:
                return
            self._again.discard(task)
        if not task.begin():
            self._cancelled += 1
            return
        assert self._loop is not None
        if task.options.timeout is not None and self._watch is None:
            try:
                self._watch = DeadlineTimer(self._expire, f"{self._name}-watch")
            except RuntimeError as error:
                refusal = broken(f"no thread can be started for time-outs: {error}", error)
                self._loop.call_soon(task.fail, refusal)
                return
        self._queue_ns += task.began_ns - task.queued_ns
        limit = task.options.timeout
        deadline = math.inf if limit is None else time.monotonic() + limit
        step = Step(self, task)
        context = contextvars.Context() if task.context is None else task.context.copy()
        step.handle = self._loop.create_task(step, context=context)
        step.handle.add_done_callback(lambda handle: self._over(step, handle))
        self._alive += 1
        self._running[task] = step, deadline
        if self._watch is not None and limit is not None:
            self._watch.expect(deadline)

    def _over(self, step: Step, handle: asyncio.Task[Any]) -> None:
        task = step.task
        with self._lock:
            mine = task in self._running and self._running[task][0] is step  # not a further attempt
            self._alive -= 1
            self._lent.discard(handle)
            if mine:
                del self._running[task]
                self._run_ns += time.monotonic_ns() - task.began_ns
                self._done += 1
            self._pump()
        error = None if handle.cancelled() else handle.exception()
        if not mine:
            return
        if handle.cancelled():
            task.give_up()  # by itself, as asyncio counts it
        elif error is not None:
            task.fail(error)
        elif type(value := handle.result()) is Failure:
            task.fail(value.error)
        else:
            task.succeed(value)

    # the watch's thread

    def _expire(self) -> float:
        """Ends the tasks whose time is up; when to look again."""
        now = time.monotonic()
        failed: list[Task] = []
        with self._lock:
            for task in [task for task, (_, deadline) in self._running.items() if deadline <= now]:
                self._take(task)
                self._late += 1
                if task.may_retry() and self._terminated_at == math.inf:
                    self._retried += 1
                    task.queued_ns = time.monotonic_ns()
                    self._again.add(task)
                    self._queue.append(task)
                    self._call_loop()
                else:
                    failed.append(task)
            after = min((deadline for _, deadline in self._running.values()), default=math.inf)
        for task in failed:
            task.fail(TaskTimeoutError(f"the task ran longer than {task.options.timeout:g} s"))
        return after


async def _awaited(function: Callable[..., object], *args: Any) -> None:
    value = function(*args)
    if inspect.isawaitable(value):
        await value


async def _cleared(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels what the pool's tasks have left on the loop."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=shutdown.PATIENCE_S)
    await loop.shutdown_asyncgens()

"""The engine of AsyncPool is the thread of its loop.

A task that runs is in ``_running``. The loop takes it from there, under ``_lock``, when the coroutine is
over, and what stops it does so before. A coroutine that waits is cancelled, as any task of asyncio. One that
is computing (or a plain function) has the loop's thread, so that is sent an exception, which must not arrive
when the computing is over and the loop itself is running: see :class:`Step`.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from fairlead.errors import DeadlockError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Counts, StartLimit, Task, broken
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.engine.worker_state import enter, finalize
from fairlead.pools.event_loop.steps import Step
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure
from fairlead.wait import current_mailbox

T = TypeVar("T")


class Loop(Engine):
    """The queue, the loop and its thread, which begins with the first task."""

    kind = "async"
    most_helped = 60  # none can take its place

    def __init__(
        self,
        workers: int,
        initialize: tuple[Callable[..., object], tuple[Any, ...]] | None,
        finalizer: Callable[[], object] | None,
        name: str,
        start_limit: StartLimit | None,
    ) -> None:
        self.ident = 0
        self.helping = 0
        self.counts = Counts()
        """Of what the loop's thread has seen end."""
        self.inside: Step | None = None
        self.aim: Step | None = None
        self._initialize = initialize
        self._finalizer = finalizer
        self._queue: deque[Task] = deque()
        self._running: dict[Task, Step] = {}
        self._alive = 0
        """Coroutines that have not ended. More than ``_running``: a cancelled one may take its time."""
        self._lent: set[asyncio.Task[Any]] = set()
        """Tasks of the loop that wait for others of this pool, and have lent their places."""
        self._called = False
        """The loop has been told that there is something to do."""
        self._ready = False
        self._opening: asyncio.Task[None]
        self._stopping: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.deadline = math.inf
        """Of its thread's start."""
        super().__init__(workers, name, start_limit)

    # what the executor calls

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:
        # a task that stops itself goes on until it awaits, and is not interrupted while it waits for a thread
        own = self.here() and (task is None or self._running.get(task) is self.inside)
        return call() if own else super().uninterrupted(call)

    def help(self, task: Task) -> None:
        """Calls a plain function here; a coroutine function cannot be helped."""
        if not self.here():
            return
        function = task.args[0] if task.function is call_chunk else task.function
        if inspect.iscoroutinefunction(function) or task.options.timeout is not None:
            return
        self._help(task, Task.call, self)

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

    def terminate(self) -> None:
        super().terminate()
        with self._lock:
            self.soon(self._stop_loop)

    def _stop_loop(self) -> None:
        """On the loop, once terminated."""
        self._opening.cancel()
        if self._loop is not None and self._stopping is None:  # a coroutine may refuse to end
            self._stopping = self._loop.call_later(shutdown.PATIENCE_S, self._loop.stop)

    def _start_is_late(self, start: Loop) -> None:
        assert self._start_limit is not None
        if not start._opening.done():
            self._break(self._start_limit.exceeded())
            self.terminate()

    def _not_ended(self) -> list[threading.Thread]:
        # in a call that may never end: of a task, or of a hook that has kept the loop from being stopped
        if self._patience_is_over(1 if self.inside is not None else 3):
            return []
        return [] if self._thread is None else [self._thread]

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._queue, self._running = deque(), {}
        self._thread = self._loop = None

    # with the lock

    def _put(self, task: Task) -> None:
        if self._thread is None:
            self._start()
        self._queue.append(task)
        self._call_loop()

    def _close_queue(self) -> None:
        self._call_loop()

    def _perhaps_over(self) -> None:
        with self._lock:
            self._call_loop()

    def _begun_tasks(self) -> list[Task]:
        return list(self._running)

    def _numbers(self) -> tuple[Counts, int, int, int]:
        queued = sum(not task.future.done() for task in self._queue)
        total = replace(self._counts)
        total.add(self.counts)
        return total, int(self._loop is not None), queued, len(self._running)

    def _start(self) -> None:
        thread = shutdown.thread(self._live, None, self._name)
        try:
            thread.start()
        except RuntimeError as error:
            raise broken(f"no thread can be started for the loop: {error}", error) from error
        self._thread = thread

    def _call_loop(self) -> None:
        """With the lock held: else the call may be over before it is noted, and none be made any more."""
        if self._ready and not self._called:
            self.soon(self._pump)
            self._called = True  # after it: an interrupt in between costs a call in vain, and no task

    def soon(self, call: Callable[[], object]) -> None:
        """Has the loop call it."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(call, context=contextvars.Context())

    def _seize(self, task: Task, *, late: bool) -> Callable[[], bool] | None:
        if task not in self._running:
            return None
        again = late and self._tries_again(task)
        step = self._running.pop(task)
        self._counts.attempt(task)
        step.interrupt()
        return lambda: again

    # the loop's thread

    def _live(self, _: object) -> None:
        here = threading.current_thread()
        with self._lock:
            if self._thread is None:  # an interrupt has kept the thread that started this one from it
                self._thread = here
            if self._thread is not here:
                return
        try:
            loop = asyncio.new_event_loop()
        except Exception as error:  # noqa: BLE001 - every task's error from now on
            self._break(error)
            self.ended()
            return
        self.ident = threading.get_ident()
        try:
            asyncio.set_event_loop(loop)
            if self._start_limit is not None:
                self._guard(self, self._start_limit.seconds)
            self._opening = loop.create_task(_begun(self._initialize))
            with self._lock:
                self._loop = loop
                if self._terminated:
                    self.soon(self._stop_loop)
            try:
                loop.run_until_complete(self._opening)
            except BaseException as error:  # noqa: BLE001 - every task's error from now on
                if not self._terminated:
                    self._break(error)
                return
            finally:
                self._timed.discard(self)
            with self._lock:
                self._ready = True
                self._call_loop()
            loop.run_forever()
            if (last := self._finalizer) is not None:
                finalize(lambda: loop.run_until_complete(_awaited(last)))
        finally:
            with self._lock:
                self._ready = False
                self._loop = None
            if self._stopping is not None:
                self._stopping.cancel()
            loop.run_until_complete(_cleared(loop))
            asyncio.set_event_loop(None)
            loop.close()
            self.ident = 0
            self.ended()

    def _drain(self) -> list[Task]:
        with self._lock:
            tasks, self._queue = self._queue, deque()
        return [task for task in tasks if self._begin(task)]

    def _pump(self) -> None:
        """Begins what there is room for; ends the loop when all is over."""
        with self._lock:
            self._called = False
            while self._ready and self._queue and self._alive - len(self._lent) < self.workers:
                self._begin_task(self._queue.popleft())
            if (
                self._closed
                and not self._queue
                and not self._again
                and self._alive == 0
                and self._loop is not None
                and self._ready
            ):
                self._ready = False  # what is called from now on must not stop the finalizer
                self._loop.stop()

    def _begin_task(self, task: Task) -> None:
        if not self._begin(task):
            return
        assert self._loop is not None
        step = Step(self, task)
        context = contextvars.Context() if task.context is None else task.context.copy()
        step.handle = self._loop.create_task(step, context=context)
        step.handle.add_done_callback(lambda handle: self._over(step, handle))
        self._alive += 1
        self._running[task] = step
        if task.options.timeout is not None:
            self._guard(task, task.options.timeout)

    def _over(self, step: Step, handle: asyncio.Task[Any]) -> None:
        task = step.task
        step.handle = None  # a task of asyncio keeps its coroutine
        with self._lock:
            mine = self._running.get(task) is step  # not a further attempt
            self._alive -= 1
            self._lent.discard(handle)
            if mine:
                del self._running[task]
                self._timed.discard(task)
                self.counts.attempt(task, done=True)
            self._pump()
        error = None if handle.cancelled() else handle.exception()
        if not mine:
            return
        if handle.cancelled():
            task.give_up()  # by itself, as asyncio counts it
        elif error is not None:
            task.end(None, error)
        else:
            value = handle.result()
            task.end(value, value.error if type(value) is Failure else None)


async def _begun(initialize: tuple[Callable[..., object], tuple[Any, ...]] | None) -> None:
    with contextlib.suppress(NotImplementedError):  # a loop that watches no descriptors
        current_mailbox()  # made now: an exception that is sent to a task would end that halfway
    if initialize is not None:
        function, args = initialize
        enter(await _awaited(function, *args))


async def _awaited(function: Callable[..., object], *args: Any) -> object:
    value = function(*args)
    return await value if inspect.isawaitable(value) else value


async def _cleared(loop: asyncio.AbstractEventLoop) -> None:
    """Cancels what the pool's tasks have left on the loop."""
    left = asyncio.all_tasks(loop) - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=shutdown.PATIENCE_S)
    await loop.shutdown_asyncgens()

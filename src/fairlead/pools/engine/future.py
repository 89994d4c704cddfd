"""A concurrent.futures.Future whose ``cancel`` also stops what runs, where the kind of pool can."""

from __future__ import annotations

import _thread
import concurrent.futures
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import _base
from typing import TYPE_CHECKING, Any, Self, TypeVar

from fairlead.errors import DeadlockError
from fairlead.pools.engine import aside
from fairlead.pools.engine.contract import CALLER, Lending
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.stopped import Stopped
from fairlead.sync import Event

if TYPE_CHECKING:
    from fairlead.pools.engine.contract import Task
    from fairlead.pools.engine.scheduler import Engine

T = TypeVar("T")


class _Turn(EngineLock):  # type: ignore[misc] # final only in its base's stub
    """What a future's methods need of a threading.Condition, in one object in place of four: each task has
    one, and most end before there is a waiter."""

    _bells: list[_thread.LockType] | None = None
    """Of the waiters; changed with the lock held."""

    def wait(self, timeout: float | None = None) -> bool:
        bell = _thread.allocate_lock()
        bell.acquire()
        if self._bells is None:
            self._bells = []
        self._bells.append(bell)
        held = None
        rung = False
        try:
            held = self._release_save()
            rung = bell.acquire() if timeout is None else bell.acquire(True, max(timeout, 0))
        finally:
            if held is not None:
                self._acquire_restore(held)
            elif not self._is_owned():  # an exception has come between the two
                self.acquire()
            if not rung and bell in self._bells:
                self._bells.remove(bell)
        return rung

    def notify_all(self) -> None:
        if self._bells is not None:
            while self._bells:
                self._bells.pop().release()


class Future(concurrent.futures.Future[T]):
    """The result of a task that is to come.

    As the standard library's, with two differences. ``cancel()`` of a task that runs ends the future at once
    and stops the work: a process is killed and replaced, a thread is sent an exception that ends it at its
    next step in Python. And ``result()`` called by a worker of the same pool runs a task that no worker has
    begun, so that waiting for tasks of one's own pool does not deadlock it.
    """

    _engine: Engine | None = None
    _task: Task | None = None
    _listeners: list[Callable[[Any], object]] | None = None

    def __init__(self) -> None:
        # all that the standard library's has
        self._condition: Any = _Turn()
        self._state = _base.PENDING
        self._result: T | None = None
        self._exception: BaseException | None = None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Any] = []

    def attach(self, engine: Engine, task: Task) -> None:
        self._engine = engine
        self._task = task
        if engine.here():
            self._waiters = Waiters(engine)

    def forget(self) -> None:
        """Lets go of the task, and with it of the function and the arguments."""
        self._task = None

    def begin(self) -> bool:
        """PENDING to RUNNING; False if it was in another state."""
        with self._condition:
            begins = self._state == _base.PENDING
            if begins:
                self._state = _base.RUNNING
            return begins

    def hand_over(self, engine: Engine) -> bool:
        """Its task is another engine's from now on; False if it has begun, or ended."""
        with self._condition:
            pending = self._state == _base.PENDING
            if pending:
                self._engine = engine
            return pending

    def running(self) -> bool:
        task, engine = self._task, self._engine
        if task is not None and engine is not None and self._state == _base.PENDING and engine.runs(task):
            return True
        return super().running()

    def cancel(self) -> bool:
        return self._cancel(lambda engine, task: engine.uninterrupted(lambda: engine.stop(task), task))

    def cancel_here(self) -> bool:
        """As cancel(), for a thread that must not wait for another."""
        return self._cancel(lambda engine, task: engine.stop(task))

    def _cancel(self, stop: Callable[[Engine, Task], bool]) -> bool:
        engine = None
        while not self._cancel_pending():
            task, before, engine = self._task, engine, self._engine
            if task is None or engine is None or engine is before:  # not handed over meanwhile
                return self.cancelled()
            if stop(engine, task):
                return True
        return True

    def _cancel_pending(self) -> bool:
        """Cancels it if its state says that it has not begun."""
        with self._condition:
            engine = self._engine
            pending = self._state == _base.PENDING and (engine is None or not engine.keeps_state)
            if pending:
                self._set_cancelled()
        if pending:
            self.forget()
            self._invoke_callbacks()
        return pending

    def end_cancelled(self) -> None:
        """RUNNING to CANCELLED."""
        with self._condition:
            self._set_cancelled()
        self._invoke_callbacks()

    def _set_cancelled(self) -> None:
        """And does what the standard library leaves to the worker that finds it cancelled: wait() and
        as_completed() need not wait for one."""
        self._state = _base.CANCELLED_AND_NOTIFIED
        self._condition.notify_all()
        for waiter in self._waiters:
            waiter.add_cancelled(self)

    def add_done_callback(self, fn: Callable[[concurrent.futures.Future[T]], object]) -> None:
        """As the standard library's. Tasks of asyncio wait by one: in run_in_executor(), for example."""
        super().add_done_callback(fn)
        engine = self._engine
        if engine is not None and CALLER.get((None, ()))[1] and not (self.done() or engine.here()):
            engine.lend(blocking=False)

    def listen(self, listener: Callable[[Self], object]) -> None:
        """As add_done_callback, for the pools' own parts, which neither block nor raise: called by the very
        thread that ends the future."""
        with self._condition:
            if self._state in (_base.PENDING, _base.RUNNING):
                if self._listeners is None:
                    self._listeners = []
                self._listeners.append(listener)
                return
        listener(self)

    def _invoke_callbacks(self) -> None:
        listeners, self._listeners = self._listeners, None
        if listeners is not None:
            for listener in listeners:
                listener(self)
        if self._done_callbacks:
            if (apart := aside.of_this_thread()) is not None:
                apart.call(self.call_back)
            else:
                self.call_back()

    def call_back(self) -> None:
        """Calls the done-callbacks and lets go of them: what they refer to may refer to this future.

        What they raise is logged and harms no other thread, not even the one that ended the future.
        """
        stop: BaseException | None = None
        for callback in self._done_callbacks:
            try:
                callback(self)
            except Stopped as sent:  # the task's in which this future was waited for
                stop = sent
            except BaseException as error:  # noqa: BLE001 - it is a user's
                _base.LOGGER.exception("exception calling callback for %r", self)
                if (
                    isinstance(error, KeyboardInterrupt)
                    and threading.current_thread() is threading.main_thread()
                ):
                    stop = error
        self._done_callbacks.clear()
        if stop is not None:
            raise stop

    def result(self, timeout: float | None = None) -> T:
        if self._task is not None:
            timeout = self._wait(timeout)
        if self._state == _base.FINISHED and self._exception is None:  # nothing changes any more
            return self._result  # type: ignore[return-value]
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        return super().exception(timeout if self._task is None else self._wait(timeout))

    def __await__(self) -> Generator[Any, Any, T]:
        """In a task of any loop that fairlead.sync knows. If that is cancelled while it waits, so is this."""
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        self._check_process()
        if not self.done():
            ended = Event()
            self.listen(lambda _: ended.set())
            with Lending(self._engine, blocking=False):
                try:
                    await ended.wait_async()
                except BaseException:
                    self.cancel_here()
                    raise
        return self.result()

    def ended(self, timeout: float | None = None) -> bool:
        """Waits for its end, and says whether that has come."""
        self._wait(timeout)
        return self._state not in (_base.PENDING, _base.RUNNING)

    def _wait(self, timeout: float | None) -> float | None:
        """Until it has ended, or the time is over: what is left of that then. Helps a pool's own worker that
        waits, or has another take its place meanwhile."""
        self._check_process()
        task, engine = self._task, self._engine
        if task is not None and engine is not None and self._state == _base.PENDING:
            if engine.keeps_state:
                deadline = None if timeout is None else time.monotonic() + timeout
                engine.wait(task, None if timeout is None else max(timeout, 0.0))
                timeout = None if deadline is None else deadline - time.monotonic()
            else:
                engine.help(task)
        if self._state in (_base.PENDING, _base.RUNNING):
            # without a task its end is near: the worker has let go of it, and sets the result next
            with Lending(engine if task is not None else None), self._condition:
                if self._state in (_base.PENDING, _base.RUNNING):
                    self._condition.wait(timeout)
        return None if timeout is None else 0.0

    def _check_process(self) -> None:
        """Raises DeadlockError if its worker is another process's, where alone it will end."""
        if self._engine is not None and self._engine.forked and self._state in (_base.PENDING, _base.RUNNING):
            raise DeadlockError("the task runs in the process that this one was forked from, and ends there")

    def help(self) -> None:
        """The calling thread is about to wait: one of the pool's own threads runs the task, if no worker
        has begun it."""
        task = self._task
        if task is not None and self._engine is not None:
            self._engine.help(task)

    def cancel_queued(self) -> None:
        """Cancels it if it has not begun."""
        if not (self.running() or self._cancel_pending()):
            task, engine = self._task, self._engine
            if task is not None and engine is not None and engine.keeps_state:
                engine.stop(task)

    def retract(self) -> bool:
        """After an interrupted submission: whether its task will surely never begin."""
        task, engine = self._task, self._engine
        if self._state == _base.PENDING and (
            task is None or (engine is not None and engine.keeps_state and not task.attempts)
        ):
            return True
        self.cancel_queued()
        return self.cancelled()


class Waiters(list[Any]):
    """What wait() and as_completed() put a waiter into, of a future that a worker of the pool has: while one
    is there, that worker waits for its own pool."""

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self._engine = engine
        self._loans: list[object | None] = []

    def append(self, waiter: Any) -> None:
        self._loans.append(self._engine.lend())
        super().append(waiter)

    def remove(self, waiter: Any) -> None:
        super().remove(waiter)
        if (loan := self._loans.pop()) is not None:
            self._engine.take_back(loan)

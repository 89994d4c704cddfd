"""A concurrent.futures.Future whose ``cancel`` also stops what runs, where the kind of pool can."""

from __future__ import annotations

import _thread
import concurrent.futures
import time
from concurrent.futures import _base
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from fairlead.pools.contract import Engine, Task

T = TypeVar("T")


class _Turn(_thread.RLock):  # type: ignore[misc] # final only in its stub
    """What a future's methods need of a threading.Condition, in one object in place of four: each task has
    one, and most end before anybody waits."""

    _bells: list[_thread.LockType] | None = None
    """Of those who wait; changed by whoever has the lock."""

    def wait(self, timeout: float | None = None) -> bool:
        bell = _thread.allocate_lock()
        bell.acquire()
        if self._bells is None:
            self._bells = []
        self._bells.append(bell)
        held = self._release_save()
        rung = False
        try:
            rung = bell.acquire() if timeout is None else bell.acquire(True, max(timeout, 0))
        finally:
            self._acquire_restore(held)
            if not rung and bell in self._bells:
                self._bells.remove(bell)
        return rung

    def notify_all(self) -> None:
        if self._bells is not None:
            while self._bells:
                self._bells.pop().release()

    if TYPE_CHECKING:  # what threading.Condition asks of its lock

        def _release_save(self) -> object: ...
        def _acquire_restore(self, held: object) -> None: ...


class Future(concurrent.futures.Future[T]):
    """The result of a task that is to come.

    As the standard library's, with two differences. ``cancel()`` of a task that runs ends the future at once
    and stops the work: a process is killed and replaced, a thread is sent an exception that ends it at its
    next step in Python. And ``result()`` called by a worker of the same pool runs a task that nobody has
    begun, so that waiting for tasks of one's own pool does not deadlock it.
    """

    _engine: Engine | None = None
    _task: Task | None = None

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

    def forget(self) -> None:
        """Lets go of the task, and with it of the function and the arguments."""
        self._task = None

    def begin(self) -> bool:
        """PENDING to RUNNING; False if it was in another state. Waiters learn of a cancellation here."""
        with self._condition:
            if self._state == _base.PENDING:
                self._state = _base.RUNNING
                return True
            if self._state == _base.CANCELLED:
                self._notify_cancelled()
            return False

    def running(self) -> bool:
        task, engine = self._task, self._engine
        if task is not None and engine is not None and self._state == _base.PENDING and engine.runs(task):
            return True
        return super().running()

    def cancel(self) -> bool:
        task, engine = self._task, self._engine
        if engine is not None and engine.keeps_state:
            return (task is not None and engine.stop(task)) or self.cancelled()
        if super().cancel():
            self.forget()
            with self._condition:
                self._notify_cancelled()
            return True
        return task is not None and engine is not None and engine.stop(task)

    def end_cancelled(self) -> None:
        """RUNNING to CANCELLED."""
        with self._condition:
            self._state = _base.CANCELLED
            self._condition.notify_all()
            self._notify_cancelled()
        self._invoke_callbacks()

    def _notify_cancelled(self) -> None:
        """What the standard library leaves to the worker that finds it cancelled: wait() and as_completed()
        need not wait for one."""
        if self._state == _base.CANCELLED:
            self._state = _base.CANCELLED_AND_NOTIFIED
            for waiter in self._waiters:
                waiter.add_cancelled(self)

    def _invoke_callbacks(self) -> None:
        """Lets go of the callbacks, too: what they refer to may refer to this future."""
        if self._done_callbacks:
            super()._invoke_callbacks()  # type: ignore[misc]
            self._done_callbacks.clear()

    def result(self, timeout: float | None = None) -> T:
        if self._task is not None:
            timeout = self._wait(timeout)
        if self._state == _base.FINISHED and self._exception is None:  # nothing changes any more
            return self._result  # type: ignore[return-value]
        return super().result(timeout)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if self._task is not None:
            timeout = self._wait(timeout)
        return super().exception(timeout)

    def _wait(self, timeout: float | None) -> float | None:
        """Helps, or waits where the engine has better means; what is left of the time."""
        task, engine = self._task, self._engine
        if task is None or engine is None or self._state != _base.PENDING:
            return timeout
        if not engine.keeps_state:
            engine.help(task)
            return timeout
        if timeout is None:
            engine.wait(task, None)
            return None
        deadline = time.monotonic() + timeout
        engine.wait(task, max(timeout, 0.0))
        return max(0.0, deadline - time.monotonic())

    def help(self) -> None:
        """The calling thread is about to wait: it runs the task if it is one of its pool's threads and nobody
        has begun it."""
        task = self._task
        if task is not None and self._engine is not None:
            self._engine.help(task)

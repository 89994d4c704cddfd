"""SequentialPool: every call at once, in the thread that submits it. For debugging, and to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from fairlead.errors import TaskTimeoutError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Broken, Engine, Statistics, Task
from fairlead.pools.engine.finalizer import finalize
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.executor.base import Pool, checked_callable
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure


class SequentialPool(Pool):
    """Calls at once, in the thread that submits: no concurrency, and a debugger's steps lead into the
    function.

    A task cannot be stopped or cancelled, because nothing else runs meanwhile. One that took longer than its
    time-out raises TaskTimeoutError when it has ended, and is not retried. The initializer is called before
    the first call, and the finalizer by the pool's end.
    """

    def __init__(
        self,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        checked_callable("initializer", initializer)
        checked_callable("finalizer", finalizer)
        self._begin(_AtOnce(initializer, initargs, finalizer))


class _AtOnce(Engine):
    kind = "sequential"
    workers = 1
    call_cost_s = 0.0

    def __init__(
        self,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        finalizer: Callable[[], object] | None,
    ) -> None:
        self._initialize = None if initializer is None else (initializer, initargs)
        self._finalizer = finalizer
        self._started = False
        self._lock = EngineLock()
        self._done = 0
        self._late = 0
        self._running = 0
        self._run_ns = 0
        shutdown.remember(self)

    def enqueue(self, task: Task) -> None:
        self._check_open()
        if self._initialize is not None:
            (function, args), self._initialize = self._initialize, None
            try:
                function(*args)
            except BaseException as refusal:
                self._broken = Broken(f"the initializer raised {refusal!r}")
                if isinstance(refusal, KeyboardInterrupt):
                    raise
                raise self._broken from refusal
        self._started = True
        task.begin()
        with self._lock:
            self._running += 1
        value: Any = None
        error: BaseException | None = None
        try:
            if task.function is call_chunk:
                task.args = (*task.args, _not_ctrl_c)
            value = task.call()
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        took_ns = time.monotonic_ns() - task.began_ns
        limit = task.options.timeout
        late = limit is not None and took_ns > limit * 1e9
        with self._lock:
            self._running -= 1
            self._run_ns += took_ns
            self._done += not late
            self._late += late
        if late:
            task.fail(
                TaskTimeoutError(f"the task ran longer than {limit:g} s (a sequential pool cannot stop it)")
            )
        elif error is not None:
            task.fail(error)
            if isinstance(error, KeyboardInterrupt):
                raise error
        else:
            task.succeed(value)

    def stop(self, task: Task) -> bool:  # noqa: ARG002
        return False

    def help(self, task: Task) -> None:
        """There is never a task that has not begun."""

    def close(self) -> None:
        with self._lock:
            ends = self._started and not self._closed
            self._closed = True
        if ends:
            finalize(self._finalizer)

    def cancel_queued(self) -> None:
        """Nothing is ever queued."""

    def terminate(self) -> None:
        self.close()

    def join(self, timeout: float | None = None) -> bool:  # noqa: ARG002
        return True

    def forget_after_fork(self) -> None:
        self._lock = EngineLock()

    def statistics(self) -> Statistics:
        with self._lock:
            return Statistics(
                kind=self.kind, workers=1, started=1, queued=0, running=self._running, done=self._done,
                timed_out=self._late, cancelled=0, lost=0, retried=0, restarts=0, queue_time_s=0.0,
                run_time_s=self._run_ns / 1e9, bytes_out=0, bytes_in=0,
            )  # fmt: skip


def _not_ctrl_c(error: BaseException) -> Failure:
    """An item's outcome, but for Ctrl-C, which is meant for the thread that the call is made in."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    return Failure(error)

"""SequentialPool: every call at once, in the thread that submits it. For debugging, and to compare with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

from fairlead.errors import TaskTimeoutError
from fairlead.pools.engine.contract import Counts, Task, broken
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.engine.worker_state import enter
from fairlead.pools.executor.base import Pool, checked, checked_callable
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.threads import ThreadWorker

T = TypeVar("T")


class SequentialPool(Pool):
    """Calls at once, in the thread that submits: no concurrency, and a debugger's steps lead into the
    function.

    A task cannot be stopped or cancelled, because nothing else runs meanwhile. One that took longer than its
    time-out raises TaskTimeoutError when it has ended, and is not retried. The initializer is called before
    the first call, and the finalizer by the pool's end.

    Args:
        max_workers: there is one, whatever this says: so any kind can be asked for by one line of code.
        initializer: called before the first call. If it raises, the pool is broken.
        finalizer: called by the pool's end.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        *,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        finalizer: Callable[[], object] | None = None,
    ) -> None:
        if max_workers is not None:
            checked("max_workers", max_workers)
        checked_callable(initializer=initializer, finalizer=finalizer)
        self._begin(_AtOnce(ThreadWorker(initializer, initargs, finalizer, interrupt=False)))


class _AtOnce(Engine):
    """Its worker is whichever thread submits."""

    kind = "sequential"
    call_cost_s = 0.0

    def __init__(self, worker: ThreadWorker) -> None:
        self._worker = worker
        self._started = False
        self._running = 0
        super().__init__(1, "SequentialPool")

    def enqueue(self, task: Task) -> None:
        self._check_open()
        if not self._started:
            self._started = True
            here = enter(None)  # this thread may be another pool's worker
            try:
                self._worker.start()
            except BaseException as refusal:
                why = broken(f"the initializer raised {refusal!r}", refusal)
                self._break(why)
                if isinstance(refusal, KeyboardInterrupt):
                    raise
                raise why from refusal
            finally:
                enter(here)
        task.begin()
        with self._lock:
            self._running += 1
        value: Any = None
        error: BaseException | None = None
        here = enter(self._worker.state)
        try:
            if task.function is call_chunk:
                task.args = (*task.args, _not_ctrl_c)
            value = self._worker.run(task)
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        finally:
            enter(here)
        limit = task.options.timeout
        late = limit is not None and time.monotonic_ns() - task.began_ns > limit * 1e9
        with self._lock:
            self._running -= 1
            self._counts.attempt(task, done=not late)
            self._counts.timed_out += late
        if late:
            error = TaskTimeoutError(
                f"the task ran longer than {limit:g} s (a sequential pool cannot stop it)"
            )
        task.end(value, error)
        if isinstance(error, KeyboardInterrupt):
            raise error

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:  # noqa: ARG002
        return call()

    def close(self) -> None:
        with self._lock:
            ends = not self._closed
            super().close()
        if ends:
            self._worker.close()

    def terminate(self) -> None:
        self.close()

    def forget_after_fork(self) -> None:
        self._lock = EngineLock()

    def _numbers(self) -> tuple[Counts, int, int, int]:
        return self._counts, 1, 0, self._running


def _not_ctrl_c(error: BaseException) -> Failure:
    """An item's outcome, but for Ctrl-C, which is meant for the thread that the call is made in."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    return Failure(error)

"""ThreadPool: calls in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from fairlead._native import recall_exception
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import StartLimit, Task, Worker
from fairlead.pools.engine.finalizer import finalize
from fairlead.pools.engine.stopped import send_stop
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.engine.worker_state import initialize
from fairlead.pools.executor.base import (
    Pool,
    checked,
    checked_callable,
    checked_seconds,
    checked_workers,
    pool_name,
)


class ThreadPool(Pool):
    """Calls in threads of this process: for work that waits, and, without a GIL, for work that computes.

    Time-outs and cancellation end the future at once, and another thread takes the place. The call itself
    goes on until it returns, or asks by ``fairlead.pools.check_cancelled()``. With ``interrupt=True`` its
    thread is sent an exception, which arrives at its next step in Python, wherever that is: in a library that
    is not prepared for it, too. **A thread that is inside a call into C (sleeping, reading, a long
    computation) is not stopped before that call returns**, nor one whose code catches BaseException.

    Args:
        max_workers: threads; None: as many as cores that this process may use, plus four, because threads
            mostly wait.
        thread_name_prefix: of the threads.
        initializer: called in each thread before its first task. If it raises, the pool is broken, and every
            task raises a BrokenPoolError whose cause is that exception.
        max_tasks_per_child: tasks after which a thread is replaced; None for never.
        interrupt: whether calls that are cancelled or whose time is up are stopped by an exception.
        finalizer: called in each thread after its last task. What it raises is logged.
        idle_timeout: seconds without a task after which a thread ends; None for never.
        start_timeout: seconds that the initializer may take in a thread; then the pool is broken, as if it
            had raised, and leaves that thread behind. None for no limit.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        interrupt: bool = False,
        finalizer: Callable[[], object] | None = None,
        idle_timeout: float | None = None,
        start_timeout: float | None = None,
    ) -> None:
        checked_callable(initializer=initializer, finalizer=finalizer)
        self._begin(
            WorkerManager(
                "threads",
                checked_workers(None) + 4 if max_workers is None else checked_workers(max_workers),
                lambda: ThreadWorker(initializer, initargs, finalizer, interrupt=interrupt),
                name=pool_name(thread_name_prefix, "ThreadPool"),
                most_tasks=0
                if max_tasks_per_child is None
                else checked("max_tasks_per_child", max_tasks_per_child),
                idle_timeout=checked_seconds("idle_timeout", idle_timeout),
                in_thread=True,
                call_cost_s=5e-6,
                start_limit=StartLimit.of(checked_seconds("start_timeout", start_timeout), initializer),
            )
        )


class ThreadWorker(Worker):
    """Calls in the slot's own thread."""

    __slots__ = ("_args", "_finalizer", "_ident", "_initializer", "_interrupt", "_started", "state")

    def __init__(
        self,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
        finalizer: Callable[[], object] | None,
        *,
        interrupt: bool,
    ) -> None:
        self._interrupt = interrupt
        self._initializer = initializer
        self._args = initargs
        self._finalizer = finalizer
        self._ident = 0
        self._started = False
        self.state: object = None

    def start(self) -> None:
        self._ident = threading.get_ident()
        self.state = initialize(self._initializer, self._args)
        self._started = True

    def run(self, task: Task) -> Any:
        return task.call()

    def stop(self) -> bool:
        # at the interpreter's end in any case: where no thread may be a daemon, that waits for all
        if self._ident and (self._interrupt or shutdown.over is not None):
            send_stop(self._ident)
        return False

    def settle(self) -> None:
        recall_exception()

    def close(self) -> None:
        if self._started:
            finalize(self._finalizer)

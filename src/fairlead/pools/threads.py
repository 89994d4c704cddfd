"""ThreadPool: calls in threads of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairlead._native import recall_exception
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Task, Worker
from fairlead.pools.engine.stopped import send_stop
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.engine.worker_state import finalize, initialize
from fairlead.pools.executor.base import Pool, checked_workers, worker_options


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
        options = worker_options(
            "ThreadPool", thread_name_prefix, initializer, finalizer, max_tasks_per_child, idle_timeout,
            start_timeout,
        )  # fmt: skip
        workers = checked_workers(max_workers) + 4 * (max_workers is None)
        self._begin(
            WorkerManager(
                "threads", workers,
                lambda: ThreadWorker(initializer, initargs, finalizer, interrupt=interrupt),
                in_thread=True, call_cost_s=5e-6, **options,
            )
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class ThreadWorker(Worker):
    """Calls in the slot's own thread."""

    initializer: Callable[..., object] | None
    initargs: tuple[Any, ...]
    finalizer: Callable[[], object] | None
    interrupt: bool
    state: object = None
    ident: int = 0
    started: bool = False

    def start(self) -> None:
        self.ident = threading.get_ident()
        self.state = initialize(self.initializer, self.initargs)
        self.started = True

    def run(self, task: Task) -> Any:
        return task.call()

    def stop(self) -> bool:
        # at the interpreter's end in any case: where no thread may be a daemon, that waits for all
        if self.ident and (self.interrupt or shutdown.over is not None):
            send_stop(self.ident)
        return False

    def settle(self) -> None:
        recall_exception()

    def close(self) -> None:
        if self.started:
            finalize(self.finalizer)

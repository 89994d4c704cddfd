"""The slot of a worker, as worker_manager.py has it, and what its thread is asked for."""

from __future__ import annotations

import math
import threading
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from fairlead.pools.engine.contract import CALLER, Counts, Task, Worker
from fairlead.pools.engine.lock import EngineLock

if TYPE_CHECKING:
    from fairlead.pools.engine.worker_manager import WorkerManager


class Here(threading.local):
    """Set in threads that run tasks themselves. All others find it here, which is quicker than not at all."""

    manager: WorkerManager | None = None
    slot: WorkerSlot


this_thread = Here()


class WorkerSlot:
    """A thread, its worker, and the task that is in it."""

    __slots__ = (
        "calls_out", "counts", "dead", "deadline", "failed_starts", "handing", "helping", "lent", "lock",
        "promised", "running", "starting", "task", "tasks", "thread", "worker",
    )  # fmt: skip

    def __init__(self, worker: Worker) -> None:
        self.worker: Any = worker
        """In a DirectManager a DirectWorker."""
        self.lock = EngineLock()
        self.handing = EngineLock()
        self.dead = False
        self.promised: Task | None = None
        """What the thread that submits it is about to send to its idle worker."""
        self.lent = 0
        """How often its thread has said that it waits, and not yet that it goes on."""
        self.task: Task | None = None
        self.running = False
        """Its thread is in the call of a task, which may have been taken from it."""
        self.starting = True
        """Its worker's ``start`` is going on, and can be stopped; changed with ``lock``."""
        self.deadline = math.inf
        """Of its start."""
        self.failed_starts = 0
        """In a row."""
        self.calls_out = False
        """Its thread is in a done-callback or a finalizer, which may never end."""
        self.helping = 0
        """How many tasks its thread runs on top of one that waits for them."""
        self.tasks = 0
        self.counts = Counts()
        self.thread: threading.Thread

    def add_to(self, total: Counts) -> None:
        total.add(self.counts)
        sent, received = self.worker.traffic()
        total.bytes_out += sent
        total.bytes_in += received


class BlockedWorker:
    """While it is entered, the calling thread, a worker's or not, waits for a coroutine. Once that waits for
    a task of the worker's own manager, the worker's place is lent."""

    __slots__ = ("_ended", "_lent", "_slot", "_token", "manager")

    def __enter__(self) -> None:
        self._ended = self._lent = False
        self.manager = this_thread.manager
        if self.manager is not None:
            self._slot = this_thread.slot
        loop, others = CALLER.get()
        self._token = CALLER.set((loop, (*others, self)))

    def lend(self) -> None:
        """By the coroutine, or what waits on its behalf; without effect once the thread has gone on."""
        assert self.manager is not None
        with self.manager._lock:
            if self._ended or self._lent:
                return
            self._lent = True
            then = self.manager._lend(self._slot)
        if then is not None:
            then()

    def __exit__(self, *_: object) -> None:
        CALLER.reset(self._token)
        if self.manager is not None:
            with self.manager._lock:
                self._ended = True
            if self._lent:
                self.manager.take_back(self._slot)


def check_cancelled() -> None:
    """Raises CancelledError in a task of a ThreadPool that was cancelled, or whose time is up.

    For tasks that co-operate; elsewhere, and in workers of other kinds, it does nothing: those are stopped
    from outside.
    """
    if this_thread.manager is not None and this_thread.slot.running and this_thread.slot.task is None:
        raise CancelledError

"""Worker slots: where a manager keeps its workers, how many there are, what they did (worker_manager.py)."""

from __future__ import annotations

import functools
import math
import threading
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue

from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import CALLER, StartLimit, Task, Worker
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.scheduler import Counts, TaskScheduler


class Here(threading.local):
    """Set in threads that run tasks themselves. All others find it here, which is quicker than not at all."""

    manager: WorkerSlots | None = None
    slot: WorkerSlot


this_thread = Here()


class WorkerSlot:
    """A thread, its worker, and the task that is in it."""

    __slots__ = (
        "calls_out", "counts", "dead", "deadline", "failed_starts", "handing", "helping", "lent", "lock",
        "promised", "running", "starting", "task", "tasks", "thread", "worker",
    )  # fmt: skip

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
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


class WorkerSlots(TaskScheduler):
    """The part of a manager that keeps its queue and its slots, and counts.

    Args:
        kind: the pool's kind, as its statistics call it.
        workers: how many there are at most.
        make_worker: makes one, not started yet.
        name: of the threads, before their number.
        most_tasks: tasks after which a worker is replaced; 0 for never.
        idle_timeout: seconds without a task after which a worker leaves; None for never.
        in_thread: the workers run tasks in their slots' own threads.
        call_cost_s: what a task costs by itself.
        start_limit: as TaskScheduler's.
    """

    def __init__(
        self,
        kind: str,
        workers: int,
        make_worker: Callable[[], Worker],
        *,
        name: str,
        most_tasks: int = 0,
        idle_timeout: float | None = None,
        in_thread: bool = False,
        call_cost_s: float,
        start_limit: StartLimit | None = None,
    ) -> None:
        self.kind = kind
        self.call_cost_s = call_cost_s
        self._make_worker = make_worker
        self._most_tasks = most_tasks
        self._idle_timeout = idle_timeout
        self._in_thread = in_thread
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._taken = 0
        self._slots: set[WorkerSlot] = set()
        self._idle: list[WorkerSlot] = []
        """Of ``_slots``, where the thread that submits sends a task to its worker (direct_manager.py)."""
        self._lent: set[WorkerSlot] = set()
        """Of ``_slots``."""
        self._looks = 0
        self._surplus = False
        """There may be one slot too many."""
        self._leaving: set[WorkerSlot] = set()
        """Without a place, and their threads sure to end soon."""
        self._left_behind: set[WorkerSlot] = set()
        self._ending: list[threading.Thread] = []
        """Stopped, and their threads may never end."""
        self._numbered = 0
        super().__init__(workers, name, start_limit)

    # what the executor calls

    def here(self) -> bool:
        return this_thread.manager is self

    def lend(self, *, blocking: bool = True) -> WorkerSlot | None:  # noqa: ARG002 - a thread waits, whatever for
        if this_thread.manager is not self:
            for blocked in CALLER.get((None, ()))[1]:
                if blocked.manager is self:
                    blocked.lend()
            return None
        slot = this_thread.slot
        with self._lock:
            then = self._lend(slot)
        if then is not None:
            then()
        return slot

    def take_back(self, loan: WorkerSlot) -> None:
        with self._lock:
            loan.lent -= 1
            if not loan.lent and loan in self._lent:
                self._lent.discard(loan)
                if self._too_many():
                    self._surplus = True
                    self._shrink()

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._queue = SimpleQueue()
        self._slots, self._leaving, self._left_behind = set(), set(), set()
        self._idle, self._lent, self._looks = [], set(), 0

    # queue and slots; the lock is held

    def _put(self, task: Task) -> Callable[[], None] | None:
        self._taken += 1
        self._queue.put(task)
        return self._add_slot() if self._wants_slot() else None

    def _lend(self, slot: WorkerSlot) -> Callable[[], None] | None:
        """As _put."""
        slot.lent += 1
        if slot.lent > 1 or slot not in self._slots:
            return None
        self._lent.add(slot)
        return self._add_slot() if self._wants_slot() else None

    def _wants_slot(self) -> bool:
        slots = len(self._slots)
        if not self._lent:
            return slots < self.workers and self._taken - self._ended() > slots
        work = self._taken - self._ended() - len(self._lent)
        return slots - len(self._lent) < self.workers and work > slots - len(self._lent)

    def _too_many(self) -> bool:
        return len(self._slots) - len(self._lent) > self.workers

    def _shrink(self) -> None:
        """Has a slot that has nothing to do leave."""
        self._looks += 1
        self._queue.put(None)

    def _all_slots(self) -> tuple[WorkerSlot, ...]:
        return (*self._slots, *self._leaving, *self._left_behind)

    def _ended(self) -> int:
        return self._counts.ended + sum([slot.counts.ended for slot in self._all_slots()])

    def _begun_tasks(self) -> list[Task]:
        return [task for slot in self._slots if (task := slot.task) is not None]

    def _numbers(self) -> tuple[Counts, int, int, int]:
        total = Counts()
        total.add(self._counts)
        for slot in self._all_slots():
            slot.add_to(total)
        queued = max(self._queue.qsize() - self._closed - self._looks, 0)
        return total, len(self._slots), queued, len(self._begun_tasks())

    def _close_queue(self) -> None:
        self._queue.put(None)

    def _add_slot(self) -> Callable[[], None] | None:
        """As _put."""
        slot = WorkerSlot(self._make_worker())
        self._numbered += 1
        slot.thread = shutdown.thread(self._begin_slot, slot, f"{self._name}-{self._numbered}")
        try:
            slot.thread.start()
        except RuntimeError as error:
            # if there are other slots that work, they will do
            return None if len(self._slots) > len(self._lent) else functools.partial(self._strand, error)
        self._slots.add(slot)
        return None

    def _begin_slot(self, slot: WorkerSlot) -> None:
        with self._lock:
            self._slots.add(slot)  # an interrupt may have kept the thread that started this one from it
        self._run_slot(slot)

    def _discard(self, slot: WorkerSlot, to: set[WorkerSlot]) -> None:
        self._slots.discard(slot)
        self._lent.discard(slot)
        to.add(slot)

    def _drain(self) -> list[Task]:
        tasks = []
        with self._lock:
            marks = 0
            try:
                while True:
                    task = self._queue.get_nowait()
                    if task is None:
                        marks += 1
                    else:
                        tasks.append(task)
            except Empty:
                pass
            self._counts.ended += len(tasks)
            for _ in range(marks):
                self._queue.put(None)
        return [task for task in tasks if self._begin(task)]

    # what managers do with them

    @abstractmethod
    def _run_slot(self, slot: WorkerSlot) -> None:
        """What a slot's thread runs."""

    @abstractmethod
    def _strand(self, error: RuntimeError) -> None:
        """There is no worker to run what is queued, and none can be started. Called without the lock."""


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

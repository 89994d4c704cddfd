"""The engine of kinds whose workers each have a thread in this process: threads, processes, clusters.

One queue, N slots. A slot is a thread of this process and the worker that it owns; it takes tasks from the
queue and has its worker run them one by one. So whatever befalls a worker befalls one task: when it dies, or
is stopped because its task's time is up or was cancelled, its slot is given up and a fresh one takes its
place at once.

Invariants, besides those of scheduler.py:

* A worker's task is in its slot, ``slot.task``. The thread that sets that to None, under ``slot.lock``, ends
  the task or has it in ``_again`` before; each other finds that it is not its own. ``worker.stop()`` is
  called under that lock, so that it never meets another task than the one meant. A task is put into the slot
  before it begins, under the same lock, and taken from ``_again`` after that.
* Of the queue's None, the mark of the end, there is one, once closed. The thread that takes it puts it back
  behind the rest. ``_looks`` counts those besides it, which only have a slot look whether it is one too many.
* Slots are made on demand: ``_taken`` counts what was ever put into the queue, ``ended`` in each slot's
  counts what was taken out and is over; no slot is idle when their difference is larger than the number of
  slots.
* A slot whose thread waits for tasks of this very manager (in its task or a done-callback) is in ``_lent``
  and counts neither as a worker nor, with its task, as busy: another slot takes its place meanwhile. When it
  goes on there may be one slot too many; the next that has nothing to do, or ends a task, leaves.
* While tasks are queued there is a slot. One that ends gives its place to another, which its own thread sees
  to if no other has. Where no thread can be started and there is no slot, the queued tasks are failed.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any, Literal

from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import CALLER, Counts, Lost, StartLimit, Task, Worker, broken
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.engine.worker_slots import WorkerSlot, this_thread


class WorkerManager(Engine):
    """Makes workers as they are needed, and ends them.

    Args:
        kind: the pool's kind, as its statistics call it.
        workers: how many there are at most.
        make_worker: makes one, not started yet.
        name: of the threads, before their number.
        most_tasks: tasks after which a worker is replaced; 0 for never.
        idle_timeout: seconds without a task after which a worker leaves; None for never.
        in_thread: the workers run tasks in their slots' own threads.
        call_cost_s: what a task costs by itself.
        start_limit: as Engine's.
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

    # what pools and futures call

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

    def help(self, task: Task) -> None:
        if this_thread.manager is not self or not self._in_thread or task.options.timeout is not None:
            return
        self._help(task, this_thread.slot.worker.run, this_thread.slot)

    def terminate(self) -> None:
        super().terminate()
        with self._lock:
            slots = list(self._slots)
        for slot in slots:
            self._stop_start(slot)

    def _not_ended(self) -> list[threading.Thread]:
        with self._lock:
            # the watch may have taken a task from a worker that is gone, and not put it into the queue yet
            watch = [] if self._watch is None or not self._again else [self._watch.thread]
            given_up = self._patience_is_over()
            slots = [slot for slot in (*self._slots, *self._leaving) if not (given_up and slot.calls_out)]
            return [*(slot.thread for slot in slots), *self._ending, *watch]

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
        total = replace(self._counts)
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
        slot.thread = shutdown.thread(self._run_slot, slot, f"{self._name}-{self._numbered}")
        try:
            slot.thread.start()
        except RuntimeError as error:
            if len(self._slots) > len(self._lent):
                return None  # those will do
            # what is queued has no worker; what comes later may be luckier
            why = broken(f"no thread can be started for a worker: {error}", error)
            return functools.partial(self._end_queued, why)
        self._slots.add(slot)
        return None

    def _discard(self, slot: WorkerSlot, *, ends: bool = True) -> Literal[True]:
        """Takes its place away."""
        self._slots.discard(slot)
        self._lent.discard(slot)
        (self._leaving if ends else self._left_behind).add(slot)
        return True

    def _drain(self) -> list[Task]:
        found: list[Task | None] = []
        with self._lock:
            with contextlib.suppress(Empty):
                while True:
                    found.append(self._queue.get_nowait())
            tasks = [task for task in found if task is not None]
            self._counts.ended += len(tasks)
            for _ in range(len(found) - len(tasks)):
                self._queue.put(None)
        return [task for task in tasks if self._begin(task)]

    # without the lock

    def _replace(self, slot: WorkerSlot, *, ends: bool) -> None:
        """Takes the slot's place away, and gives it to another if there is, or may be, something to do."""
        then = None
        with self._lock:
            if slot not in self._slots:
                return
            self._discard(slot, ends=ends)
            if self._broken is None and not (self._closed and self._queue.qsize() <= 1 + self._looks):
                self._counts.restarts += 1
                then = self._add_slot()
        if then is not None:
            then()

    # the slots' threads

    def _run_slot(self, slot: WorkerSlot) -> None:
        with self._lock:
            self._slots.add(slot)  # an interrupt may have kept the thread that started this one from it
        this_thread.manager, this_thread.slot = self, slot
        try:
            if self._start(slot):
                self._work(slot)
        except Stopped:
            pass  # it has come when the task was over
        finally:
            # the thread that stopped it may not have come so far, and may find it gone
            self._replace(slot, ends=True)
            slot.calls_out = self._in_thread
            try:
                slot.worker.close()
            finally:
                self._leave(slot)

    def _start(self, slot: WorkerSlot) -> bool:
        """Whether the slot has a worker that is ready, and a place."""
        while not (self._terminated or self._broken):
            error: BaseException | None = None
            if self._start_limit is not None:
                self._guard(slot, self._start_limit.seconds)
            try:
                slot.worker.start()
            except BaseException as raised:  # noqa: BLE001 - every task's from now on, or another start helps
                error = raised
            with slot.lock:
                stopped = not slot.starting
                slot.starting = False
            self._timed.discard(slot)
            if stopped:
                slot.worker.settle()
                return False
            if error is None:
                slot.failed_starts = 0
                return True
            if not isinstance(error, Lost):
                self._break(error)
                return False
            if not self._goes_on(slot, error):
                return False
            slot.worker.close()
            self._pause(slot)
            worker = self._make_worker()
            with slot.lock:
                slot.worker = worker
                slot.starting = True
        return False

    def _goes_on(self, slot: WorkerSlot, gone: Lost) -> bool:
        """Whether its start is tried again."""
        with self._lock:
            if self._queue.qsize() <= self._closed + self._looks:
                return not self._discard(slot)
            again = self._starts_again(slot, self._slots - self._lent)
        if not again:
            self._break(broken(str(gone), gone.__cause__ or RuntimeError(str(gone))))
        return again

    def _start_is_late(self, start: WorkerSlot) -> None:
        assert self._start_limit is not None
        self._stop_start(start, self._start_limit.exceeded())

    def _stop_start(self, slot: WorkerSlot, why: BaseException | None = None) -> None:
        """Unless the worker is ready, has its start end, for which the pool may have to be broken."""
        with slot.lock:
            if not slot.starting:
                return
            slot.starting = False
            ends = slot.worker.stop()
        if why is not None:
            self._break(why)
        self._replace(slot, ends=ends)

    def _leave(self, slot: WorkerSlot) -> None:
        with self._lock:
            for slots in (self._slots, self._lent, self._leaving, self._left_behind):
                slots.discard(slot)
            slot.add_to(self._counts)
            self._ending = shutdown.with_this_thread(self._ending)
        self._perhaps_over()

    def _perhaps_over(self) -> None:
        with self._lock:
            over = self._closed and not self._slots and not self._again
        if over:
            self.ended()

    def _work(self, slot: WorkerSlot) -> None:
        queue = self._queue
        while True:
            try:
                task = queue.get(True, self._idle_timeout)
            except Empty:
                if self._reap(slot):
                    return
                continue
            if task is None:
                if self._leaves(slot):
                    return
                continue
            if not self._take(slot, task):
                return
            del task

    def _reap(self, slot: WorkerSlot) -> bool:
        """Has a slot leave that has had no task for long; False if there is one now."""
        with self._lock:
            return self._queue.empty() and self._discard(slot)

    def _leaves(self, slot: WorkerSlot) -> bool:
        """Having taken a None: whether the slot is to leave, and has lost its place."""
        with self._lock:
            if self._looks:
                self._looks -= 1
                if not self._too_many():
                    return False
            else:
                self._queue.put(None)
                if self._queue.qsize() > 1 + self._looks:
                    return False
            return self._discard(slot)

    # the task in its slot

    def _take(self, slot: WorkerSlot, task: Task) -> bool:
        """Has the worker run it; whether the slot can take another."""
        if self._enter(slot, task):
            return self._conclude(slot, task, slot.worker.run)
        if self._terminated:  # what its being stopped has sent must not come later
            slot.worker.settle()
        return True

    def _enter(self, slot: WorkerSlot, task: Task) -> bool:
        """Begins it; False if it was cancelled meanwhile."""
        counts = slot.counts
        with slot.lock:
            slot.task = task
            # _begin() for a first attempt, without the call: this is done for every task
            begun = self._begin(task) if task.attempts else task.begin()
            if begun:
                if task.options.timeout is not None:
                    self._guard(task, task.options.timeout)
            else:
                slot.task = None
                counts.cancelled += not task.attempts and task.future.cancelled()
                counts.ended += 1
        # from here on this thread may be sent an exception: it takes no lock that others need until the task
        # is over, as that exception could arrive between the lock's taking and the block that gives it back
        return begun and not (self._terminated and self._take_back(slot, task))

    def _withdraw(self, slot: WorkerSlot, task: Task) -> bool:
        """Takes a task from its slot that the worker has not been given; False if another thread has."""
        with slot.lock:
            if slot.task is not task:
                return False
            slot.task = None
        self._timed.discard(task)
        slot.counts.ended += 1
        return True

    def _take_back(self, slot: WorkerSlot, task: Task) -> bool:
        """As _withdraw, and cancels it."""
        mine = self._withdraw(slot, task)
        if mine:
            self._give_up([task])
        return mine

    def _conclude(self, slot: WorkerSlot, task: Task, run: Callable[[Task], Any]) -> bool:
        """Ends it with what ``run`` returns or raises; whether the slot can take another."""
        counts = slot.counts
        value = error = lost = None
        slot.running = True
        try:
            value = run(task)
        except Lost as gone:
            lost = gone
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        slot.running = False
        with slot.lock:
            mine = slot.task is task
            again = mine and lost is not None and self._lose(task, lost)
            slot.task = None
        if not mine:
            del value, error
            slot.worker.settle()
            return False
        if task.options.timeout is not None and not again:
            self._timed.discard(task)
        # a slot whose thread calls callbacks is as busy as before
        calls_back = bool(task.future._done_callbacks) and lost is None
        if calls_back:
            slot.calls_out = True
        else:
            counts.ended += 1
        if lost is not None:
            counts.attempt(task)
            self._replace(slot, ends=True)
            slot.calls_out = True
            self._finish(task, lost.error(task), again=again)
            slot.calls_out = False
            return False
        counts.attempt(task, done=True)
        slot.tasks += 1
        worn = 0 < self._most_tasks <= slot.tasks
        if worn:
            self._replace(slot, ends=True)
        task.end(value, error)
        del error
        if calls_back:
            slot.calls_out = False
            counts.ended += 1
        return not (worn or (self._surplus and self._retires(slot)))

    def _retires(self, slot: WorkerSlot) -> bool:
        """Whether it is one too many, and has lost its place."""
        with self._lock:
            retires = self._too_many() and self._discard(slot)
            self._surplus = self._too_many()
            return retires

    def _seize(self, task: Task, *, late: bool) -> Callable[[], bool | None] | None:
        slot = next((slot for slot in self._all_slots() if slot.task is task), None)
        return None if slot is None else functools.partial(self._stop_worker, slot, task, late=late)

    def _stop_worker(self, slot: WorkerSlot, task: Task, *, late: bool) -> bool | None:
        with slot.lock:
            if slot.task is not task:
                return None
            again = late and self._tries_again(task)
            slot.task = None
            ends = slot.worker.stop()
        with self._lock:  # not in the slot's counts: its thread may have handed them in already
            self._counts.ended += 1
            self._counts.attempt(task)
        self._replace(slot, ends=ends)
        return again

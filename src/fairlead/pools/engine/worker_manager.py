"""The engine of kinds whose workers each have a thread in this process: threads, processes, interpreters.

One queue, N slots. A slot is a thread of this process and the worker that it owns; it takes tasks from the
queue and has its worker run them one by one. So whatever befalls a worker befalls one task: when it dies, or
is stopped because its task's time is up or was cancelled, its slot is given up and a fresh one takes its
place at once.

Invariants:

* A task that has begun and is not over is in exactly one place: in a slot, ``slot.task``, or in ``_again``,
  where it waits for a further attempt. So a cancellation finds it, and can say at once whether it ended it.
* Who sets ``slot.task`` to None, under ``slot.lock``, ends the task or has it in ``_again`` before;
  each other finds that it is not its own. ``worker.stop()`` is called under that lock, so that it never
  meets another task than the one meant. A task is put into the slot before it begins, under the same lock.
* Who takes a task from ``_again``, under ``_lock``, runs it or ends it. It is put into the queue after that.
* Of the queue's None, the mark of the end, there is one, once closed. Who takes it puts it back behind the
  rest. ``_looks`` counts those besides it, which only have a slot look whether it is one too many.
* Slots are made on demand: ``_taken`` counts what was ever put into the queue, ``ended`` in each slot's
  counts what was taken out and is over; no slot is idle when their difference is larger than the number of
  slots.
* A slot whose thread waits for tasks of this very manager (in its task or a done-callback) is in ``_lent``
  and counts neither as a worker nor, with its task, as busy: another slot takes its place meanwhile. When it
  goes on there may be one slot too many; the next that has nothing to do, or ends a task, leaves.
* While tasks are queued there is a slot. One that ends gives its place to another, which its own thread sees
  to if no other has. Where no thread can be started and there is no slot, the queued tasks are failed.

No future is ended, and so no callback called, with a lock held. ``_lock`` is re-entrant because a pool's
finalizer, which closes its manager, may run wherever objects are freed.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from queue import Empty
from typing import Any

from fairlead.errors import TaskTimeoutError, WorkerDiedError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Broken, Lost, Task, Unread, broken
from fairlead.pools.engine.deadlines import DeadlineTimer
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.engine.worker_slots import WorkerSlot, WorkerSlots, this_thread

MOST_LOST_STARTS = 10
"""So many workers in a row that are lost before they are ready break the pool."""


class WorkerManager(WorkerSlots):
    """Makes workers as they are needed, and ends them."""

    _watch: DeadlineTimer | None = None

    # what the executor calls

    def enqueue(self, task: Task) -> None:
        with self._lock:
            self._check_open()
            then = self._put(task)
        if then is not None:
            then()

    def stop(self, task: Task) -> bool:
        while True:
            with self._lock:  # no task goes between a slot and _again meanwhile
                if task in self._again:
                    self._again.discard(task)
                    break
                holder = next((slot for slot in self._all_slots() if slot.task is task), None)
            if holder is None:
                return False
            if self._stop(holder, task, late=False):
                return True
        task.give_up()
        return True

    def help(self, task: Task) -> None:
        if this_thread.manager is not self or not self._in_thread or task.options.timeout is not None:
            return
        if task.attempts > 0 or not task.begin():
            return
        slot, outer = this_thread.slot, this_thread.slot.task
        try:
            value = slot.worker.run(task)
        except BaseException as error:
            if isinstance(error, Stopped) and slot.task is not outer:
                task.give_up()
                raise
            task.fail(error)
        else:
            task.succeed(value)

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)

    def cancel_queued(self) -> None:
        for task in self._drain():
            if task.attempts == 0:
                task.future.cancel()
            else:
                self.stop(task)

    def terminate(self) -> None:
        self.close()
        self._terminated = True  # before the slots are looked at: see _run
        self.cancel_queued()
        with self._lock:
            slots = list(self._slots)
        for slot in slots:
            if (task := slot.task) is not None:
                self._stop(slot, task, late=False)
            # from 3.14 on, an exception sent to a thread that takes the lock may leave it taken
            if slot.starting:
                with slot.lock:
                    if slot.starting:
                        slot.worker.stop()

    def join(self, timeout: float | None = None) -> bool:
        return shutdown.join(self._not_ended, self._watch, timeout)

    def _not_ended(self) -> list[threading.Thread]:
        with self._lock:
            return [*(slot.thread for slot in (*self._slots, *self._leaving)), *self._ending]

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._watch = None

    # without the lock

    def _strand(self, error: RuntimeError) -> None:
        """Fails what is queued: it has no worker, and none can be started. What comes later may be
        luckier."""
        self._fail_queued(broken(f"no thread can be started for a worker: {error}", error))

    def _fail_queued(self, error: Broken) -> None:
        for task in self._drain():
            if self._begin(task):
                task.fail(error)

    def _replace(self, slot: WorkerSlot, *, ends: bool) -> None:
        """Takes the slot's place away, and gives it to another if there is, or may be, something to do."""
        then = None
        with self._lock:
            if slot not in self._slots:
                return
            self._discard(slot, self._leaving if ends else self._left_behind)
            if self._broken is None and not (self._closed and self._queue.qsize() <= 1 + self._looks):
                self._restarts += 1
                then = self._add_slot()
        if then is not None:
            then()

    # the slots' threads

    def _run_slot(self, slot: WorkerSlot) -> None:
        this_thread.manager, this_thread.slot = self, slot
        try:
            try:
                if self._terminated:
                    return
                slot.worker.start()
                self._lost_starts = 0
                with slot.lock:
                    slot.starting = False
            except Lost as gone:
                if not self._start_another(slot):
                    self._break(RuntimeError(str(gone)))
            except BaseException as error:  # noqa: BLE001 - every task's error from now on
                self._break(error)
            else:
                self._work(slot)
        except Stopped:
            pass  # it has come when the task was over
        finally:
            # the thread that stopped it may not have come so far, and may find it gone
            self._replace(slot, ends=True)
            try:
                slot.worker.close()
            finally:
                self._leave(slot)

    def _start_another(self, slot: WorkerSlot) -> bool:
        """In the place of one that was lost before it was ready; False after so many in a row."""
        with self._lock:
            self._lost_starts += 1
            if self._lost_starts == MOST_LOST_STARTS:
                return False
        self._replace(slot, ends=True)
        return True

    def _leave(self, slot: WorkerSlot) -> None:
        with self._lock:
            for slots in (self._slots, self._lent, self._leaving, self._left_behind):
                slots.discard(slot)
            self._gone.add(slot.counts)
            self._gone.bytes_out += slot.worker.bytes_out
            self._gone.bytes_in += slot.worker.bytes_in
            self._ending = shutdown.with_this_thread(self._ending)
            last = self._closed and not self._slots
        if last:
            self.ended()

    def ended(self) -> None:
        """The last worker of a closed manager has gone, by whose thread this is called."""
        if self._watch is not None:
            self._watch.end()

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
            idle = self._queue.empty()
            if idle:
                self._discard(slot, self._leaving)
            return idle

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
            self._discard(slot, self._leaving)
            return True

    # the task in its slot

    def _begin(self, task: Task) -> bool:
        if task.attempts > 0:
            with self._lock:
                if task not in self._again:
                    return False
                self._again.discard(task)
        return task.begin()

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
        if task.options.timeout is not None:
            try:
                self._guard(slot, task.options.timeout)
            except RuntimeError as error:
                counts.ended += 1
                if self._begin(task):
                    counts.done += 1
                    task.fail(broken(f"no thread can be started for time-outs: {error}", error))
                return False
        with slot.lock:
            slot.task = task
            # _begin() for a first attempt, without the call: this is done for every task
            begun = self._begin(task) if task.attempts else task.begin()
            if begun:
                counts.queue_ns += task.began_ns - task.queued_ns
            else:
                slot.task = None
                slot.deadline = math.inf
                counts.cancelled += task.future.cancelled()
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
            slot.deadline = math.inf
        slot.counts.done += 1
        slot.counts.ended += 1
        return True

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
            again = mine and lost is not None and self._tries_again(task, unread=isinstance(lost, Unread))
            slot.task = None
            slot.deadline = math.inf
        if not mine:
            del value, error
            slot.worker.settle()
            return False
        counts.run_ns += time.monotonic_ns() - task.began_ns
        # a slot whose thread calls callbacks is as busy as before
        calls_back = bool(task.future._done_callbacks) and lost is None
        counts.ended += not calls_back
        if lost is not None:
            counts.lost += not (again and isinstance(lost, Unread))
            self._replace(slot, ends=True)
            if again:
                self._put_again(task)
            else:
                task.fail(WorkerDiedError(f"{lost}; only this task is lost"))
            return False
        counts.done += 1
        slot.tasks += 1
        worn = 0 < self._most_tasks <= slot.tasks
        if worn:
            self._replace(slot, ends=True)
        if error is None:
            task.succeed(value)
        else:
            task.fail(error)
            del error
        counts.ended += calls_back
        return not (worn or (self._surplus and self._retires(slot)))

    def _retires(self, slot: WorkerSlot) -> bool:
        """Whether it is one too many, and has lost its place."""
        with self._lock:
            retires = self._too_many()
            if retires:
                self._discard(slot, self._leaving)
            self._surplus = self._too_many()
            return retires

    def _take_back(self, slot: WorkerSlot, task: Task) -> bool:
        """Cancels a task that the worker has not been given; False if another thread has."""
        with slot.lock:
            mine = slot.task is task
            slot.task = None
            slot.deadline = math.inf
        if mine:
            slot.counts.cancelled += 1
            slot.counts.ended += 1
            task.give_up()
        return mine

    def _break(self, error: BaseException) -> None:
        why = broken(str(error), error)
        with self._lock:
            self._broken = why
            self.close()
        self._fail_queued(why)

    # stopping

    def _guard(self, slot: WorkerSlot, timeout: float) -> None:
        if self._watch is None:
            with self._lock:
                if self._watch is None:
                    self._watch = DeadlineTimer(self._expire, f"{self._name}-watch")
        slot.deadline = deadline = time.monotonic() + timeout
        self._watch.expect(deadline)

    def _expire(self) -> float:
        """Ends the tasks whose time is up; when to look again."""
        with self._lock:
            slots = list(self._slots)
        now = time.monotonic()
        for slot in slots:
            task = slot.task
            if task is not None and slot.deadline <= now:
                self._stop(slot, task, late=True)
        return min((slot.deadline for slot in slots), default=math.inf)

    def _stop(self, slot: WorkerSlot, task: Task, *, late: bool) -> bool:
        """Takes the task from its slot and has the worker stop. What is late is tried again or fails, the
        rest is cancelled. False if it is not there any more."""
        with slot.lock:
            if slot.task is not task:
                return False
            again = late and self._tries_again(task)
            slot.task = None
            slot.deadline = math.inf
            ends = slot.worker.stop()
        with self._lock:  # not in the slot's counts: its thread may have handed them in already
            self._gone.ended += 1
            self._gone.run_ns += time.monotonic_ns() - task.began_ns
            self._gone.timed_out += late
            self._gone.cancelled += not late
        self._replace(slot, ends=ends)
        if again:
            self._put_again(task)
        elif late:
            task.fail(TaskTimeoutError(f"the task ran longer than {task.options.timeout:g} s"))
        else:
            task.give_up()
        return True

    def _tries_again(self, task: Task, *, unread: bool = False) -> bool:
        """Whether there will be a further attempt: it is in ``_again`` then. With the lock of its slot, which
        it is about to leave."""
        with self._lock:
            if unread and task.unread < MOST_LOST_STARTS:
                task.unread += 1
            elif task.may_retry() and self._broken is None:
                self._gone.retried += 1
            else:
                return False
            self._again.add(task)
            return True

    def _put_again(self, task: Task) -> None:
        """Queues it for the further attempt, if it has not been cancelled meanwhile."""
        then = None
        with self._lock:
            if task not in self._again:
                return
            why = self._broken
            over = self._terminated or why is not None
            if over:
                self._again.discard(task)
            else:
                task.queued_ns = time.monotonic_ns()
                then = self._put(task)
        if then is not None:
            then()
        elif why is not None:
            task.fail(why)
        elif over:
            task.give_up()

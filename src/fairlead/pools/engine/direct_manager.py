"""A manager whose tasks are sent to their workers by the thread that submits them, if a worker is idle.

That thread is awake already: a slot's would have to be woken first, only to send. A slot's thread waits for
its worker's answer instead, also while the worker has no task.

Invariants, besides those of worker_manager.py:

* While a slot is in ``_idle``, nothing is in the queue. The thread that takes it from there, under ``_lock``,
  hands it a task, or has it end.
* Handing over is done with ``slot.handing``, which the slot's thread takes before it looks at what has come.
  If there is no task then, the worker has ended, and the slot is ``dead``: the task goes another way.
* From when a slot leaves ``_idle`` until its worker has been sent the task, ``slot.promised`` is that task.
  So a submission that Ctrl-C interrupts in between costs that worker, which is replaced, and never its place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from queue import Empty

from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Task
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.engine.worker_slots import WorkerSlot


class DirectManager(WorkerManager):
    """``make_worker`` makes a DirectWorker."""

    sends = True

    def enqueue(self, task: Task) -> None:
        try:
            super().enqueue(task)
        except BaseException:
            self._break_promise(task)
            raise

    def close(self) -> None:
        with self._lock:
            super().close()
            idle, self._idle = self._idle, []
            for slot in idle:
                self._dismiss(slot)

    def terminate(self) -> None:
        super().terminate()
        with self._lock:
            slots = [*self._slots, *self._leaving]  # whose finalizers may never end
        for slot in slots:
            with slot.lock:
                slot.worker.stop()

    # with the lock

    def _put(self, task: Task) -> Callable[[], None] | None:
        if not self._idle:
            return super()._put(task)
        self._taken += 1
        slot = self._idle[-1]
        slot.promised = task
        del self._idle[-1]  # no call, after which a signal's handler may run, since it was found
        return functools.partial(self._hand, slot, task)

    def _dismiss(self, slot: WorkerSlot) -> None:
        """Has an idle worker end."""
        self._discard(slot)
        slot.worker.end()

    def _shrink(self) -> None:
        if self._idle:
            self._dismiss(self._idle.pop())

    def _next(self, slot: WorkerSlot) -> Task | None:
        """Of the queue; None: there is none, and the slot is idle or, if the manager is closed, dismissed."""
        with self._lock:
            while not slot.dead:
                try:
                    task = self._queue.get_nowait()
                except Empty:
                    self._idle.append(slot)
                    slot.promised = None  # after it: until then an interrupt costs the worker, and no place
                    return None
                if task is not None:
                    return task
                self._queue.put(None)
                if self._queue.qsize() == 1:
                    self._dismiss(slot)
                    return None
        return None

    def _reap(self, slot: WorkerSlot) -> bool:
        with self._lock:
            idle = slot in self._idle
            if idle:
                self._idle.remove(slot)
                self._dismiss(slot)
            return idle

    # the slot's thread

    def _work(self, slot: WorkerSlot) -> None:
        goes_on = True
        while goes_on:
            task = self._next(slot)
            if task is not None:
                goes_on = self._take(slot, task)
                continue
            worker = slot.worker
            if not worker.wait(self._idle_timeout):
                self._reap(slot)
                worker.wait()
            with slot.handing:
                task = slot.task
                slot.dead = task is None
            if task is None:  # it was stopped, told to end, or died while it was idle
                with self._lock:
                    if slot in self._idle:  # the next task will have another
                        self._idle.remove(slot)
                        self._discard(slot)
                worker.settle()
                return
            goes_on = self._conclude(slot, task, worker.read)

    # the thread that submits

    def _hand(self, slot: WorkerSlot, task: Task) -> None:
        """Sends the task to the slot's worker. What cannot be sent leaves room for another."""
        if not self._sent(slot, task):
            self._hand_another(slot)

    def _sent(self, slot: WorkerSlot, task: Task) -> bool:
        """False: the slot has a worker, and no task."""
        error: Exception | None = None
        with slot.handing:
            if not (dead := slot.dead):
                try:
                    if self._enter(slot, task):
                        slot.worker.send(task)
                        slot.promised = None
                        return True
                except Exception as refusal:  # noqa: BLE001 - the task's
                    error = refusal
                    mine = self._withdraw(slot, task)
                except BaseException:
                    with slot.lock:
                        if not task.attempts:
                            slot.task = None  # it has not begun; else the worker's end is that of an attempt
                        slot.worker.stop()  # it may have been sent in part
                    raise
        if dead:
            with self._lock:
                slot.promised = None
                self._taken -= 1
                then = self._put(task)
            if then is not None:
                then()
            return True
        if error is not None:
            if not mine:
                return True  # stopped, and the worker with it
            slot.counts.attempt(task, done=True)
            task.end(None, error)
        return False

    def _hand_another(self, slot: WorkerSlot) -> None:
        """Of the queue, in a thread that Ctrl-C does not reach: such a task is another submission's."""
        with self._lock:
            if self._queue.empty():
                self._next(slot)
                return
        thread = shutdown.thread(self._hand_queued, slot, f"{slot.thread.name}-handing")
        try:
            thread.start()
        except RuntimeError:  # no thread is left
            self._hand_queued(slot)

    def _hand_queued(self, slot: WorkerSlot) -> None:
        while (task := self._next(slot)) is not None:
            slot.promised = None  # the worker is not the first submission's to stop any more
            if self._sent(slot, task):
                return

    def _break_promise(self, task: Task) -> None:
        """Its submission has raised. A worker that was to be sent it, and may have been in part, ends."""
        with self._lock:
            slot = next((slot for slot in self._slots if slot.promised is task), None)
        if slot is None:
            return
        never_entered = task.attempts == 0 and not task.future.done()
        if not task.future.cancel() and never_entered:
            task.give_up()
        if never_entered:  # otherwise it is counted where it left its slot
            with self._lock:
                self._counts.ended += 1
                self._counts.cancelled += 1
        with slot.lock:
            slot.worker.stop()

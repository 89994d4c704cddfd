"""The engine of kinds whose workers each have a thread in this process: threads, processes, interpreters.

One queue, N seats. A seat is a thread of this process and the worker that it owns; it takes tasks from the
queue and has its worker run them one by one. So whatever befalls a worker befalls one task: when it dies, or
is stopped because its task's time is up or was cancelled, its seat is given up and a fresh one takes its
place at once.

Invariants:

* A task that has begun is in exactly one seat, ``seat.task``. Who sets that to None, under ``seat.lock``,
  ends the task; everybody else finds that it is not theirs. ``worker.stop()`` is called under that lock, so
  that it never meets another task than the one meant.
* A task that waits for a further attempt is in the queue and in ``_again``; who takes it from ``_again``,
  under ``_lock``, runs it or ends it.
* Of the queue's None, the mark of the end, there is one, once closed. Who takes it puts it back behind the
  rest. ``_looks`` counts those besides it, which only have a seat look whether it is one too many.
* Seats are made on demand: ``_taken`` counts what was ever put into the queue, ``ended`` in each seat's
  counts what was taken out and is over; no seat is idle when their difference is larger than the number of
  seats.
* A seat whose thread waits for tasks of this very crew (in its task, or in a done-callback) is in ``_lent``
  and counts neither as a worker nor, with its task, as busy: another seat takes its place meanwhile. When it
  goes on there may be one seat too many; the next that has nothing to do, or ends a task, leaves.
* While tasks are queued there is a seat. Where no thread can be started and there is none, they are failed.

No future is ended, and so no callback called, with a lock held. ``_lock`` is re-entrant because a pool's
finalizer, which closes its crew, may run wherever objects are freed.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from typing import Any

from fairlead.errors import TaskTimeoutError, WorkerDiedError
from fairlead.pools import ending
from fairlead.pools.contract import Broken, Lost, Stopped, Task, Unread, broken
from fairlead.pools.seats import Seat, Seats, this_thread
from fairlead.pools.watch import Watch

MOST_LOST_STARTS = 10
"""So many workers in a row that are lost before they are ready break the pool."""


class Crew(Seats):
    """Makes workers as they are needed, and ends them."""

    _watch: Watch | None = None

    # what the face calls

    def enqueue(self, task: Task) -> None:
        with self._lock:
            self._check_open()
            then = self._put(task)
        if then is not None:
            then()

    def stop(self, task: Task) -> bool:
        with self._lock:
            waits = task in self._again
            self._again.discard(task)
            seats = list(self._seats)
        if waits:
            task.give_up()
            return True
        return any(seat.task is task and self._cancel(seat, task) for seat in seats)

    def help(self, task: Task) -> None:
        if this_thread.crew is not self or not self._in_thread or task.options.timeout is not None:
            return
        if task.attempts > 0 or not task.begin():
            return
        seat, outer = this_thread.seat, this_thread.seat.task
        try:
            value = seat.worker.run(task)
        except BaseException as error:
            if isinstance(error, Stopped) and seat.task is not outer:
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
        self._terminated = True  # before the seats are looked at: see _run
        self.cancel_queued()
        with self._lock:
            seats = list(self._seats)
        for seat in seats:
            if (task := seat.task) is not None:
                self._cancel(seat, task)
            with seat.lock:
                if seat.starting:
                    seat.worker.stop()

    def join(self, timeout: float | None = None) -> bool:
        return ending.join(self._not_ended, self._watch, timeout)

    def _not_ended(self) -> list[threading.Thread]:
        with self._lock:
            return [seat.thread for seat in (*self._seats, *self._leaving)]

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._watch = None

    # without the lock

    def _strand(self, error: RuntimeError) -> None:
        """Fails what is queued: nobody is there to run it, and nobody can be had. What comes later may be
        luckier."""
        self._fail_queued(broken(f"no thread can be started for a worker: {error}", error))

    def _fail_queued(self, error: Broken) -> None:
        for task in self._drain():
            if self._begin(task):
                task.fail(error)

    def _replace(self, seat: Seat, *, ends: bool) -> None:
        """Takes the seat's place away, and gives it to another if there is, or may be, something to do."""
        then = None
        with self._lock:
            if seat not in self._seats:
                return
            self._discard(seat, self._leaving if ends else self._left_behind)
            if self._broken is None and not (self._closed and self._queue.qsize() <= 1 + self._looks):
                self._restarts += 1
                then = self._add_seat()
        if then is not None:
            then()

    # the seats' threads

    def _sit(self, seat: Seat) -> None:
        this_thread.crew, this_thread.seat = self, seat
        try:
            try:
                if self._terminated:
                    return
                seat.worker.start()
                self._lost_starts = 0
                with seat.lock:
                    seat.starting = False
            except Lost as gone:
                if not self._start_another(seat):
                    self._break(RuntimeError(str(gone)))
            except BaseException as error:  # noqa: BLE001 - every task's error from now on
                self._break(error)
            else:
                self._work(seat)
        except Stopped:
            pass  # it has come when the task was over
        finally:
            try:
                seat.worker.close()
            finally:
                self._leave(seat)

    def _start_another(self, seat: Seat) -> bool:
        """In the place of one that was lost before it was ready; False after so many in a row."""
        with self._lock:
            self._lost_starts += 1
            if self._lost_starts == MOST_LOST_STARTS:
                return False
        self._replace(seat, ends=True)
        return True

    def _leave(self, seat: Seat) -> None:
        with self._lock:
            for seats in (self._seats, self._lent, self._leaving, self._left_behind):
                seats.discard(seat)
            self._gone.add(seat.counts)
            self._gone.bytes_out += seat.worker.bytes_out
            self._gone.bytes_in += seat.worker.bytes_in
            last = self._closed and not self._seats
        if last:
            self.ended()

    def ended(self) -> None:
        """The last worker of a closed crew has gone, by whose thread this is called."""
        if self._watch is not None:
            self._watch.end()

    def _work(self, seat: Seat) -> None:
        queue = self._queue
        while True:
            task = queue.get()
            if task is None:
                if self._leaves(seat):
                    return
                continue
            if not self._take(seat, task):
                return
            del task

    def _leaves(self, seat: Seat) -> bool:
        """Having taken a None: whether the seat is to leave, and has lost its place."""
        with self._lock:
            if self._looks:
                self._looks -= 1
                if not self._too_many():
                    return False
            else:
                self._queue.put(None)
                if self._queue.qsize() > 1 + self._looks:
                    return False
            self._discard(seat, self._leaving)
            return True

    # the task in its seat

    def _begin(self, task: Task) -> bool:
        if task.attempts > 0:
            with self._lock:
                if task not in self._again:
                    return False
                self._again.discard(task)
        return task.begin()

    def _take(self, seat: Seat, task: Task) -> bool:
        """Has the worker run it; whether the seat can take another."""
        return not self._enter(seat, task) or self._conclude(seat, task, seat.worker.run)

    def _enter(self, seat: Seat, task: Task) -> bool:
        """Begins it; False if it was cancelled meanwhile."""
        counts = seat.counts
        # _begin() for a first attempt, without the call: this is done for every task
        if not (self._begin(task) if task.attempts else task.begin()):
            counts.cancelled += task.future.cancelled()
            counts.ended += 1
            return False
        counts.queue_ns += task.began_ns - task.queued_ns
        seat.task = task
        if self._terminated and self._take_back(seat, task):
            return False
        if task.options.timeout is not None:
            try:
                self._guard(seat, task.options.timeout)
            except RuntimeError as error:
                if self._withdraw(seat, task):
                    task.fail(broken(f"no thread can be started for time-outs: {error}", error))
                return False
        return True

    def _withdraw(self, seat: Seat, task: Task) -> bool:
        """Takes a task from its seat that the worker has not been given; False if somebody else has."""
        with seat.lock:
            if seat.task is not task:
                return False
            seat.task = None
            seat.deadline = math.inf
        seat.counts.done += 1
        seat.counts.ended += 1
        return True

    def _conclude(self, seat: Seat, task: Task, run: Callable[[Task], Any]) -> bool:
        """Ends it with what ``run`` returns or raises; whether the seat can take another."""
        counts = seat.counts
        value = error = lost = None
        seat.running = True
        try:
            value = run(task)
        except Lost as gone:
            lost = gone
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        seat.running = False
        with seat.lock:
            mine = seat.task is task
            seat.task = None
            seat.deadline = math.inf
        if not mine:
            del value, error
            seat.worker.settle()
            return False
        counts.run_ns += time.monotonic_ns() - task.began_ns
        # a seat whose thread calls callbacks is as busy as before
        calls_back = bool(task.future._done_callbacks) and lost is None
        counts.ended += not calls_back
        if lost is not None:
            self._replace(seat, ends=True)
            if isinstance(lost, Unread) and task.unread < MOST_LOST_STARTS:
                task.unread += 1
                self._put_again(task)
            else:
                counts.lost += 1
                self._again_or_fail(task, WorkerDiedError(f"{lost}; only this task is lost"))
            return False
        counts.done += 1
        seat.tasks += 1
        worn = 0 < self._most_tasks <= seat.tasks
        if worn:
            self._replace(seat, ends=True)
        if error is None:
            task.succeed(value)
        else:
            task.fail(error)
            del error
        counts.ended += calls_back
        return not (worn or (self._surplus and self._retires(seat)))

    def _retires(self, seat: Seat) -> bool:
        """Whether it is one too many, and has lost its place."""
        with self._lock:
            retires = self._too_many()
            if retires:
                self._discard(seat, self._leaving)
            self._surplus = self._too_many()
            return retires

    def _take_back(self, seat: Seat, task: Task) -> bool:
        """Cancels a task that the worker has not been given; False if somebody else has."""
        with seat.lock:
            mine = seat.task is task
            seat.task = None
        if mine:
            seat.counts.cancelled += 1
            seat.counts.ended += 1
            task.give_up()
        return mine

    def _break(self, error: BaseException) -> None:
        why = broken(str(error), error)
        with self._lock:
            self._broken = why
            self.close()
        self._fail_queued(why)

    # stopping

    def _guard(self, seat: Seat, timeout: float) -> None:
        if self._watch is None:
            with self._lock:
                if self._watch is None:
                    self._watch = Watch(self._expire, f"{self._name}-watch")
        seat.deadline = deadline = time.monotonic() + timeout
        self._watch.expect(deadline)

    def _expire(self) -> float:
        """Ends the tasks whose time is up; when to look again."""
        with self._lock:
            seats = list(self._seats)
        now = time.monotonic()
        for seat in seats:
            task = seat.task
            if task is not None and seat.deadline <= now and self._stop(seat, task, late=True):
                limit = f"{task.options.timeout:g} s"
                self._again_or_fail(task, TaskTimeoutError(f"the task ran longer than {limit}"))
        return min((seat.deadline for seat in seats), default=math.inf)

    def _cancel(self, seat: Seat, task: Task) -> bool:
        if not self._stop(seat, task, late=False):
            return False
        task.give_up()
        return True

    def _stop(self, seat: Seat, task: Task, *, late: bool) -> bool:
        """Takes the task from its seat and has the worker stop; False if it is not there any more."""
        with seat.lock:
            if seat.task is not task:
                return False
            seat.task = None
            seat.deadline = math.inf
            ends = seat.worker.stop()
        with self._lock:  # not in the seat's counts: its thread may have handed them in already
            self._gone.ended += 1
            self._gone.run_ns += time.monotonic_ns() - task.began_ns
            self._gone.timed_out += late
            self._gone.cancelled += not late
        self._replace(seat, ends=ends)
        return True

    def _again_or_fail(self, task: Task, error: Exception) -> None:
        with self._lock:
            again = task.may_retry() and self._broken is None
            self._gone.retried += again
        if again:
            self._put_again(task)
        else:
            task.fail(error)

    def _put_again(self, task: Task) -> None:
        with self._lock:
            why = self._broken
            if why is None:
                task.queued_ns = time.monotonic_ns()
                self._again.add(task)
                then = self._put(task)
        if why is not None:
            task.fail(why)
        elif then is not None:
            then()

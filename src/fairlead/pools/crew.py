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
  rest.
* Seats are made on demand: ``_taken`` counts what was ever put into the queue, ``ended`` in each seat's
  counts what was taken out and is over; no seat is idle when their difference is larger than the number of
  seats.

No future is ended, and so no callback called, with a lock held. ``_lock`` is re-entrant because a pool's
finalizer, which closes its crew, may run wherever objects are freed.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from fairlead.errors import PoolClosed, TaskTimeout, WorkerLost
from fairlead.pools import ending
from fairlead.pools.contract import Broken, Engine, Lost, Statistics, Stopped, Task, Worker
from fairlead.pools.watch import Watch

MOST_LOST_STARTS = 10
"""So many workers in a row that are lost before they are ready break the pool."""


class _Here(threading.local):
    """Set in threads that run tasks themselves. All others find it here, which is quicker than not at all."""

    crew: Crew | None = None
    seat: Seat


_here = _Here()


class NoThread(Exception):
    """There is no seat, and none can be had."""


class Counts:
    """What one seat has done, written by its thread; or all that are gone, and what others did to seats."""

    __slots__ = (
        "bytes_in", "bytes_out", "cancelled", "done", "ended", "lost", "queue_ns", "retried", "run_ns",
        "timed_out",
    )  # fmt: skip

    def __init__(self) -> None:
        for name in self.__slots__:
            setattr(self, name, 0)

    def add(self, other: Counts) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    done: int
    timed_out: int
    cancelled: int
    lost: int
    retried: int
    ended: int
    queue_ns: int
    run_ns: int
    bytes_out: int
    bytes_in: int


class Seat:
    """A thread, its worker, and the task that is in it."""

    __slots__ = (
        "counts", "dead", "deadline", "handing", "lock", "starting", "task", "tasks", "thread", "worker"
    )  # fmt: skip

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.lock = threading.Lock()
        self.handing = threading.Lock()
        self.dead = False
        self.task: Task | None = None
        self.deadline = math.inf
        self.starting = True
        self.tasks = 0
        self.counts = Counts()
        self.thread: threading.Thread


class Crew(Engine):
    """Makes workers as they are needed, and ends them.

    Args:
        kind: the pool's kind, as its statistics call it.
        workers: how many there are at most.
        make_worker: makes one, not started yet.
        name: of the threads, before their number.
        most_tasks: tasks after which a worker is replaced; 0 for never.
        in_thread: the workers run tasks in their seats' own threads.
        call_cost_s: what a task costs by itself.
    """

    def __init__(
        self,
        kind: str,
        workers: int,
        make_worker: Callable[[], Worker],
        *,
        name: str,
        most_tasks: int = 0,
        in_thread: bool = False,
        call_cost_s: float,
    ) -> None:
        self.kind = kind
        self.workers = workers
        self.call_cost_s = call_cost_s
        self._make_worker = make_worker
        self._name = name
        self._most_tasks = most_tasks
        self._in_thread = in_thread
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = threading.RLock()
        self._taken = 0
        self._again: set[Task] = set()
        self._seats: set[Seat] = set()
        self._leaving: set[Seat] = set()
        """Without a place, and their threads sure to end soon."""
        self._left_behind: set[Seat] = set()
        """Stopped, and their threads may never end."""
        self._gone = Counts()
        self._restarts = 0
        self._numbered = 0
        self._lost_starts = 0
        self._closed = False
        self._terminated = False
        self._broken: BaseException | None = None
        self._watch: Watch | None = None
        ending.remember(self)

    # what the face calls

    def enqueue(self, task: Task) -> None:
        try:
            with self._lock:
                if self._broken is not None:
                    raise Broken(str(self._broken)) from self._broken
                if self._closed:
                    raise PoolClosed(ending.over or "the pool has been shut down: it takes no more tasks")
                then = self._put(task)
            if then is not None:
                then()
        except NoThread as error:
            self._break(error)
            raise Broken(str(error)) from error

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
        if _here.crew is not self or task.options.timeout is not None:
            return
        if task.attempts > 0 or not task.begin():
            return
        seat = _here.seat
        outer = seat.task
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
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            with self._lock:
                others = [
                    seat for seat in (*self._seats, *self._leaving)
                    if seat.thread is not threading.current_thread()
                ]  # fmt: skip
            if not others:
                break
            if time.monotonic() > deadline:
                return False
            # not for longer: the seat may be given up meanwhile, and its thread then never end
            others[0].thread.join(min(0.05, max(0.0, deadline - time.monotonic())))
        if (watch := self._watch) is not None:
            watch.end()
            watch.join()
        return True

    def statistics(self) -> Statistics:
        with self._lock:
            total = self._total()
            return Statistics(
                kind=self.kind, workers=self.workers, started=len(self._seats),
                queued=max(self._queue.qsize() - self._closed, 0),
                running=sum(seat.task is not None for seat in self._seats),
                done=total.done, timed_out=total.timed_out, cancelled=total.cancelled,
                lost=total.lost, retried=total.retried, restarts=self._restarts,
                queue_time_s=total.queue_ns / 1e9, run_time_s=total.run_ns / 1e9,
                bytes_out=total.bytes_out, bytes_in=total.bytes_in,
            )  # fmt: skip

    @property
    def closed(self) -> bool:
        return self._closed

    def forget_after_fork(self) -> None:
        self._lock = threading.RLock()
        self._queue = SimpleQueue()
        self._closed = True
        self._again, self._seats, self._leaving, self._left_behind = set(), set(), set(), set()
        self._watch = None

    # queue and seats; the lock is held

    def _put(self, task: Task) -> Callable[[], None] | None:
        """Returns what the caller has to do for it once the lock is free, if anything."""
        self._taken += 1
        self._queue.put(task)
        if len(self._seats) < self.workers and self._taken - self._ended() > len(self._seats):
            self._add_seat()
        return None

    def _all_seats(self) -> tuple[Seat, ...]:
        return (*self._seats, *self._leaving, *self._left_behind)

    def _ended(self) -> int:
        return self._gone.ended + sum([seat.counts.ended for seat in self._all_seats()])

    def _total(self) -> Counts:
        total = Counts()
        total.add(self._gone)
        for seat in self._all_seats():
            total.add(seat.counts)
            total.bytes_out += seat.worker.bytes_out
            total.bytes_in += seat.worker.bytes_in
        return total

    def _add_seat(self) -> None:
        seat = Seat(self._make_worker())
        self._numbered += 1
        seat.thread = ending.thread(self._sit, seat, f"{self._name}-{self._numbered}")
        self._seats.add(seat)
        try:
            seat.thread.start()
        except RuntimeError as error:
            self._seats.discard(seat)
            if not self._seats:  # if there are any, they will do
                raise NoThread(f"no thread can be started for a worker: {error}") from error

    def _replace(self, seat: Seat, *, ends: bool) -> None:
        """Takes the seat's place away, and gives it to another if there is, or may be, something to do."""
        with self._lock:
            if seat not in self._seats:
                return
            self._seats.discard(seat)
            (self._leaving if ends else self._left_behind).add(seat)
            if self._broken is None and not (self._closed and self._queue.qsize() <= 1):
                self._restarts += 1
                self._add_seat()

    # the seats' threads

    def _sit(self, seat: Seat) -> None:
        try:
            if self._in_thread:
                _here.crew, _here.seat = self, seat
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
            for seats in (self._seats, self._leaving, self._left_behind):
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
                with self._lock:
                    queue.put(None)
                    if queue.qsize() > 1:
                        continue
                    self._seats.discard(seat)
                    self._leaving.add(seat)
                    return
            if not self._take(seat, task):
                return
            del task

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
            self._guard(seat, task.options.timeout)
        return True

    def _conclude(self, seat: Seat, task: Task, run: Callable[[Task], Any]) -> bool:
        """Ends it with what ``run`` returns or raises; whether the seat can take another."""
        counts = seat.counts
        value = error = lost = None
        try:
            value = run(task)
        except Lost as gone:
            lost = gone
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        with seat.lock:
            mine = seat.task is task
            seat.task = None
            seat.deadline = math.inf
        if not mine:
            del value, error
            seat.worker.settle()
            return False
        counts.run_ns += time.monotonic_ns() - task.began_ns
        counts.ended += 1
        if lost is not None:
            counts.lost += 1
            self._replace(seat, ends=True)
            self._again_or_fail(task, WorkerLost(f"{lost}; only this task is lost"))
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
        return not worn

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
        broken = Broken(str(error))
        broken.__cause__ = error
        with self._lock:
            self._broken = broken
            self.close()
        for task in self._drain():
            if self._begin(task):
                task.fail(broken)

    def _drain(self) -> list[Task]:
        """What is in the queue."""
        tasks = []
        with self._lock:
            ended = False
            try:
                while True:
                    task = self._queue.get_nowait()
                    if task is None:
                        ended = True
                    else:
                        tasks.append(task)
            except Empty:
                pass
            self._gone.ended += len(tasks)
            if ended:
                self._queue.put(None)
        return tasks

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
                self._again_or_fail(task, TaskTimeout(f"the task ran longer than {limit}"))
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
            if again := task.may_retry() and self._broken is None:
                self._gone.retried += 1
                task.queued_ns = time.monotonic_ns()
                self._again.add(task)
                then = self._put(task)
        if not again:
            task.fail(error)
        elif then is not None:
            then()

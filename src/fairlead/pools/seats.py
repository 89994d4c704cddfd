"""Seats: where a crew's workers sit, how many there are, and what they have done. See crew.py."""

from __future__ import annotations

import functools
import math
import threading
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue

from fairlead.pools import ending
from fairlead.pools.contract import Engine, Statistics, Task, Worker


class Here(threading.local):
    """Set in threads that run tasks themselves. All others find it here, which is quicker than not at all."""

    crew: Seats | None = None
    seat: Seat


this_thread = Here()


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
        "counts", "dead", "deadline", "handing", "lent", "lock", "running", "starting", "task", "tasks",
        "thread", "worker",
    )  # fmt: skip

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.lock = threading.Lock()
        self.handing = threading.Lock()
        self.dead = False
        self.lent = 0
        """How often its thread has said that it waits, and not yet that it goes on."""
        self.task: Task | None = None
        self.running = False
        """Its thread is in the call of a task, which may have been taken from it."""
        self.deadline = math.inf
        self.starting = True
        self.tasks = 0
        self.counts = Counts()
        self.thread: threading.Thread


class Seats(Engine):
    """The part of a crew that keeps its queue and its seats, and counts.

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
        self._lent: set[Seat] = set()
        """Of ``_seats``."""
        self._looks = 0
        self._surplus = False
        """There may be one seat too many."""
        self._leaving: set[Seat] = set()
        """Without a place, and their threads sure to end soon."""
        self._left_behind: set[Seat] = set()
        """Stopped, and their threads may never end."""
        self._gone = Counts()
        self._restarts = 0
        self._numbered = 0
        self._lost_starts = 0
        self._terminated = False
        ending.remember(self)

    # what the face calls

    def here(self) -> bool:
        return this_thread.crew is self

    def lend(self, *, blocking: bool = True) -> bool:  # noqa: ARG002 - a thread waits, whatever for
        if this_thread.crew is not self:
            return False
        seat = this_thread.seat
        with self._lock:
            seat.lent += 1
            if seat.lent > 1 or seat not in self._seats:
                return True
            self._lent.add(seat)
            then = self._add_seat() if self._wants_seat() else None
        if then is not None:
            then()
        return True

    def take_back(self) -> None:
        if this_thread.crew is not self:
            return
        seat = this_thread.seat
        with self._lock:
            seat.lent -= 1
            if not seat.lent and seat in self._lent:
                self._lent.discard(seat)
                if self._too_many():
                    self._surplus = True
                    self._shrink()

    def statistics(self) -> Statistics:
        with self._lock:
            total = self._total()
            return Statistics(
                kind=self.kind, workers=self.workers, started=len(self._seats),
                queued=max(self._queue.qsize() - self._closed - self._looks, 0),
                running=sum(seat.task is not None for seat in self._seats),
                done=total.done, timed_out=total.timed_out, cancelled=total.cancelled,
                lost=total.lost, retried=total.retried, restarts=self._restarts,
                queue_time_s=total.queue_ns / 1e9, run_time_s=total.run_ns / 1e9,
                bytes_out=total.bytes_out, bytes_in=total.bytes_in,
            )  # fmt: skip

    def forget_after_fork(self) -> None:
        self._lock = threading.RLock()
        self._queue = SimpleQueue()
        self._closed = True
        self._again, self._seats, self._leaving, self._left_behind = set(), set(), set(), set()
        self._lent, self._looks = set(), 0

    # queue and seats; the lock is held

    def _put(self, task: Task) -> Callable[[], None] | None:
        """Returns what the caller has to do for it once the lock is free, if anything."""
        self._taken += 1
        self._queue.put(task)
        return self._add_seat() if self._wants_seat() else None

    def _wants_seat(self) -> bool:
        seats = len(self._seats)
        if not self._lent:
            return seats < self.workers and self._taken - self._ended() > seats
        work = self._taken - self._ended() - len(self._lent)
        return seats - len(self._lent) < self.workers and work > seats - len(self._lent)

    def _too_many(self) -> bool:
        return len(self._seats) - len(self._lent) > self.workers

    def _shrink(self) -> None:
        """Has a seat that has nothing to do leave."""
        self._looks += 1
        self._queue.put(None)

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

    def _add_seat(self) -> Callable[[], None] | None:
        """As _put."""
        seat = Seat(self._make_worker())
        self._numbered += 1
        try:
            seat.thread = ending.thread(self._sit, seat, f"{self._name}-{self._numbered}")
            self._seats.add(seat)
            seat.thread.start()
        except RuntimeError as error:
            self._seats.discard(seat)
            # if there are other seats that work, they will do
            return None if len(self._seats) > len(self._lent) else functools.partial(self._strand, error)
        return None

    def _discard(self, seat: Seat, to: set[Seat]) -> None:
        self._seats.discard(seat)
        self._lent.discard(seat)
        to.add(seat)

    def _drain(self) -> list[Task]:
        """What is in the queue."""
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
            self._gone.ended += len(tasks)
            for _ in range(marks):
                self._queue.put(None)
        return tasks

    # what crews do with them

    @abstractmethod
    def _sit(self, seat: Seat) -> None:
        """What a seat's thread runs."""

    @abstractmethod
    def _strand(self, error: RuntimeError) -> None:
        """Nobody is there to run what is queued, and nobody can be had. Called without the lock."""


def check_cancelled() -> None:
    """Raises CancelledError in a task of a ThreadPool that was cancelled, or whose time is up.

    For tasks that co-operate; elsewhere, and in workers of other kinds, it does nothing: those are stopped
    from outside.
    """
    if this_thread.crew is not None and this_thread.seat.running and this_thread.seat.task is None:
        raise CancelledError

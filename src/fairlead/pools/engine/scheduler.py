"""The life of a task from its submission to its end, in each kind of pool.

    QUEUED ── a worker takes it ──> RUNNING ── returns, raises ───────────────────────> ENDED
      │  ^                             │
      │  └── BETWEEN two attempts <────┼── its time is up, or its worker died, and it has an attempt left
      │                │               │
      └── cancelled ───┴───────────────┴── cancelled, or no attempt left ─────────────> ENDED

A :class:`TaskScheduler` owns these states, deadlines, further attempts, what ``cancel()`` says, the counters,
and how a pool is closed, broken and terminated. A back end (worker_manager.py, interpreter/engine.py,
event_loop/engine.py, sequential.py) has the queue and the workers: how a call gets to one, how one is
interrupted and ends. AutoPool's (auto.py) hands its tasks over to those of others.

Invariants:

* A task that has begun and is not over is with one worker, or in ``_again``, or in both for a moment. It is
  in ``_again`` before it leaves its worker for a further attempt, and until it is with the next one. So a
  cancellation finds it, and can say at once whether it ended it.
* The thread that takes a task from its worker, or from ``_again`` under ``_lock``, ends it or has it run.
* Once the pool is terminated or broken, ``_again`` stays empty.

No future is ended, and so no callback called, with a lock held. ``_lock`` is re-entrant because a pool's
finalizer, which closes its engine, may run wherever objects are freed.
"""

from __future__ import annotations

import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fairlead.errors import PoolClosedError, TaskTimeoutError
from fairlead.pools.engine import aside, shutdown
from fairlead.pools.engine.contract import Broken, Function, Statistics, Task, broken
from fairlead.pools.engine.deadlines import DeadlineTimer
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.stopped import Stopped

T = TypeVar("T")

MOST_UNREAD = 10
"""So many workers in a row may be gone before they have read a task."""


@dataclass(slots=True)
class Counts:
    """What was done: by one worker slot, written by its thread, or by all else."""

    done: int = 0
    timed_out: int = 0
    cancelled: int = 0
    lost: int = 0
    retried: int = 0
    restarts: int = 0
    ended: int = 0
    queue_ns: int = 0
    run_ns: int = 0
    bytes_out: int = 0
    bytes_in: int = 0

    def add(self, other: Counts) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class TaskScheduler(ABC):
    """Runs tasks. Methods without an underscore may be called from any thread.

    Args:
        workers: how many there are at most.
        name: of the threads, before their number.
    """

    kind: str
    workers: int
    call_cost_s = 20e-6
    """What a task costs by itself; chunks are made long enough for that to be small beside their work."""

    task_type: type[Task] = Task
    """What its tasks are, where there is more to know of them."""
    sends = False
    """Whether calls are pickled and sent; otherwise they are made in this interpreter."""
    keeps_state = False
    """Whether only it knows what has begun: futures are PENDING until they end, and ask ``runs``, ``stop``
    and ``wait``."""
    _closed = False
    """It takes no more tasks."""
    forked = False
    """Its workers are the parent's of this process."""
    _terminated = False
    _broken: Broken | None = None
    """Why it has no workers, and will not have any; it is closed then, too."""
    _watch: DeadlineTimer | None = None

    def __init__(self, workers: int, name: str) -> None:
        self.workers = workers
        self._name = name
        self._lock = EngineLock()
        self._again: set[Task] = set()
        """Have begun, and wait for a further attempt."""
        self._timed: set[Task] = set()
        """Run, and have a deadline."""
        self._counts = Counts()
        shutdown.remember(self)

    # what the executor calls

    @property
    def closed(self) -> bool:
        return self._closed

    def portable(self, function: Function) -> Function:
        """A function that does the same, if that one is cheaper to send many times."""
        return function

    def enqueue(self, task: Task) -> None:
        """Takes it over. PoolClosedError or BrokenPoolError: it was not taken, and its future has not
        ended."""
        with self._lock:
            self._check_open()
            if task.options.timeout is not None and self._watch is None:
                self._start_watch()
            then = self._put(task)
        if then is not None:
            then()

    def _check_open(self) -> None:
        """Raises what ``enqueue`` raises."""
        if self._broken is not None:
            raise type(self._broken)(str(self._broken)) from self._broken
        if self._closed:
            if self.forked:
                raise PoolClosedError(
                    "the pool belongs to the process that this one was forked from; make another here"
                )
            raise PoolClosedError(shutdown.over or "the pool has been shut down: it takes no more tasks")

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:  # noqa: ARG002
        """Makes a call that stops the task, or several, and that no interrupt of the calling thread leaves
        half done."""
        # a deallocator may run where the lock is held, which another thread would wait for
        return call() if self._lock._is_owned() else aside.uninterrupted(call)

    def stop(self, task: Task) -> bool:
        """Cancels a task that may have begun. Whether this ended its future, as cancelled. After a False it
        ends otherwise, or has ended, or another thread cancels it at this moment."""
        return self._stop(task, late=False)

    def help(self, task: Task) -> None:  # noqa: ARG002
        """The calling thread is about to wait for the task: run it here if that thread is one of the workers
        and it has not begun. May do nothing."""
        return

    def here(self) -> bool:
        """Whether the calling thread is one that its tasks need: a worker's, or the event loop's."""
        return False

    def lend(self, *, blocking: bool = True) -> object | None:  # noqa: ARG002
        """The calling thread, or with ``blocking=False`` the calling task of a loop, is about to wait for
        tasks of this engine. If their worker is needed for that, another takes its place until
        ``take_back``, which is to be called with what this returns, if that is not None. Raises DeadlockError
        if the wait could never end."""
        return None

    def take_back(self, loan: Any) -> None:  # noqa: ARG002
        """By the lender; or wherever a coroutine that was left is closed."""
        return

    def runs(self, task: Task) -> bool:  # noqa: ARG002
        """Where it keeps the state: whether a worker has the task."""
        return False

    def wait(self, task: Task, timeout: float | None) -> None:  # noqa: ARG002
        """Where it keeps the state: waits for the task's end; returns at once if another thread does."""
        return

    def close(self) -> None:
        """No more tasks; those taken are run, and then the workers end. Does not wait."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._close_queue()

    def cancel_queued(self) -> None:
        """Cancels what has not begun."""
        self._end_queued(None)

    def terminate(self) -> None:
        """As close, but what is queued is cancelled and what runs is stopped. Does not wait."""
        with self._lock:
            self._terminated = True  # before it is looked at what runs: what begins then looks at this
            self.close()
        self.cancel_queued()
        with self._lock:
            tasks = [*self._again, *self._begun_tasks()]
        for task in tasks:
            self.stop(task)

    def join(self, timeout: float | None = None) -> bool:
        """Waits until the workers of a closed engine have ended; those that could not be stopped are not
        waited for. False if they had not within the time."""
        return shutdown.join(self._not_ended, self._watch, timeout)

    def leave_behind(self, timeout: float) -> bool:  # noqa: ARG002
        """At the program's end, after ``terminate`` and ``join``: waits, -1 for as long as it takes, until
        no worker is in a state that the interpreter's end must not meet. None gets into one any more."""
        return True

    def forget_after_fork(self) -> None:
        """In a forked child, which has none of its threads and workers: takes no more tasks. A thread that
        waits for one gets a DeadlockError. Makes its locks anew."""
        self._closed = self.forked = True
        self._lock = EngineLock()
        self._again, self._timed = set(), set()
        self._watch = None

    def statistics(self) -> Statistics:
        with self._lock:
            counts, started, queued, running = self._numbers()
            return Statistics(
                kind=self.kind, workers=self.workers, started=started, queued=queued, running=running,
                done=counts.done, timed_out=counts.timed_out, cancelled=counts.cancelled, lost=counts.lost,
                retried=counts.retried, restarts=counts.restarts, queue_time_s=counts.queue_ns / 1e9,
                run_time_s=counts.run_ns / 1e9, bytes_out=counts.bytes_out, bytes_in=counts.bytes_in,
            )  # fmt: skip

    # the beginning of an attempt

    def _begin(self, task: Task) -> bool:
        """Takes a task from the queue, to run or to end it; False if it was cancelled or helped."""
        if task.attempts:
            return self._claim(task) and task.begin()
        begun = task.begin()
        if not begun and task.future.cancelled():
            with self._lock:
                self._counts.cancelled += 1
        return begun

    def _claim(self, task: Task) -> bool:
        """Takes it from between two attempts; False if it is not there any more."""
        with self._lock:
            claimed = task in self._again
            self._again.discard(task)
            return claimed

    def _help(self, task: Task, run: Callable[[Task], Any]) -> None:
        """Runs a task, if it has not begun, in a thread that is about to wait for it."""
        if task.attempts or not task.begin():
            return
        try:
            value = run(task)
        except Stopped:  # sent to the task that waits
            task.give_up()
            raise
        except BaseException as error:  # noqa: BLE001 - the task's
            task.fail(error)
        else:
            task.succeed(value)

    # its end

    def _stop(self, task: Task, *, late: bool) -> bool:
        """Has an attempt end. What is late is tried again or fails, the rest is cancelled, also between two
        attempts. False: there is none, or not any more."""
        again: bool | None = None
        while again is None:
            with self._lock:  # no task goes between a worker and _again meanwhile
                if late:
                    if task.deadline > time.monotonic():  # a further attempt's
                        return False
                elif self._claim(task):
                    break
                self._timed.discard(task)
                then = self._seize(task, late=late)
            if then is None:
                return False
            again = then()
        with self._lock:
            self._counts.timed_out += late
            self._counts.cancelled += not late
        error = TaskTimeoutError(f"the task ran longer than {task.options.timeout:g} s") if late else None
        self._finish(task, error, again=bool(again))
        return True

    def _tries_again(self, task: Task, *, unread: bool = False) -> bool:
        """Whether there will be a further attempt: it is in ``_again`` then. Asked before it leaves its
        worker. ``unread``: it has not begun there, and that is no attempt."""
        with self._lock:
            if self._terminated or self._broken is not None:
                return False
            if unread and task.unread < MOST_UNREAD:
                task.unread += 1
            elif task.may_retry():
                self._counts.retried += 1
            else:
                return False
            self._timed.discard(task)
            task.deadline = math.inf
            self._again.add(task)
            return True

    def _put_again(self, task: Task) -> None:
        """Queues it for the further attempt, if it was not cancelled meanwhile."""
        with self._lock:
            if task in self._again:
                task.queued_ns = time.monotonic_ns()
                then = self._put(task)
            else:
                then = self._perhaps_over
        if then is not None:
            then()

    def _finish(self, task: Task, error: BaseException | None, *, again: bool) -> None:
        """After an attempt without an outcome; no error: it is cancelled, as all are once terminated."""
        if again:
            self._put_again(task)
        elif error is None or self._terminated:
            task.give_up()
        else:
            task.fail(error)

    def _end_queued(self, error: Broken | None) -> None:
        tasks = self._drain()
        if error is None:
            with self._lock:
                self._counts.cancelled += len(tasks)
        for task in tasks:
            self._finish(task, error, again=False)

    def _break(self, error: BaseException) -> None:
        """There are no workers, and will not be any."""
        why = broken(str(error), error)
        with self._lock:
            self._broken = why
            self.close()
            between = [task for task in list(self._again) if self._claim(task)]
        for task in between:
            task.fail(why)
        self._end_queued(why)

    # deadlines

    def _start_watch(self) -> None:
        with self._lock:
            self._check_open()
            try:
                if self._watch is None:
                    self._watch = DeadlineTimer(self._expire, f"{self._name}-watch")
            except RuntimeError as error:
                raise broken(f"no thread can be started for time-outs: {error}", error) from error

    def _guard(self, task: Task, timeout: float) -> None:
        """Its attempt has begun."""
        task.deadline = time.monotonic() + timeout
        self._timed.add(task)
        if self._watch is not None:
            self._watch.expect(task.deadline)

    def _expire(self) -> float:
        """Ends the attempts whose time is up; when to look again."""
        now = time.monotonic()
        for task in list(self._timed):
            if task.deadline <= now:
                self._stop(task, late=True)
        return min((task.deadline for task in list(self._timed)), default=math.inf)

    def ended(self) -> None:
        """The last worker of a closed pool has gone, and no task waits for a further attempt."""
        if self._watch is not None:
            self._watch.end()

    # the back end

    def _put(self, task: Task) -> Callable[[], None] | None:
        """With the lock held: queues it. Returns what the caller has to do for it once the lock is free, if
        anything. A back end that queues without the lock has ``enqueue`` and ``_put_again`` of its own."""
        raise NotImplementedError

    def _perhaps_over(self) -> None:
        """A task has ended between two attempts: it may have been the last that a closed pool waited for."""
        return

    def _drain(self) -> list[Task]:
        """Takes what is queued, which the caller ends: see _begin."""
        return []

    def _close_queue(self) -> None:
        """With the lock held: nothing is queued any more but further attempts, and workers end when there is
        nothing to do for them."""
        return

    def _begun_tasks(self) -> list[Task]:
        """With the lock held: those that are with workers."""
        return []

    def _seize(self, task: Task, *, late: bool) -> Callable[[], bool | None] | None:  # noqa: ARG002
        """With the lock held: takes an attempt from its worker, which is to end it; None: no worker has it.
        The caller calls what this returns once the lock is free. That says whether there will be a further
        attempt, having asked ``_tries_again`` if it is late; or None: it has left that worker meanwhile."""
        return None

    def _not_ended(self) -> list[threading.Thread]:
        """Threads that a closed pool waits for, as they are now."""
        return []

    @abstractmethod
    def _numbers(self) -> tuple[Counts, int, int, int]:
        """With the lock held: what was done, workers, tasks queued and running."""

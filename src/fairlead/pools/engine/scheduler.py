"""The life of a task from its submission to its end, in each kind of pool.

    QUEUED ── a worker takes it ──> RUNNING ── returns, raises ───────────────────────> ENDED
      │  ^                             │
      │  └── BETWEEN two attempts <────┼── its time is up, or its worker died, and it has an attempt left
      │                │               │
      └── cancelled ───┴───────────────┴── cancelled, or no attempt left ─────────────> ENDED

The :class:`Engine` owns these states, deadlines, further attempts, what ``cancel()`` says, and how a pool is
closed, broken and terminated. A back end (worker_manager.py, interpreter/engine.py, event_loop/engine.py,
sequential.py) has the queue and the workers: how a call gets to one, how one is interrupted and ends.
AutoPool's (auto.py) hands its tasks over to those of others.

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

import contextlib
import math
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol, TypeVar

from fairlead.errors import DeadlockError, PoolClosedError, TaskTimeoutError
from fairlead.pools.engine import aside, shutdown
from fairlead.pools.engine.contract import Broken, Counts, Lost, StartLimit, Statistics, Task, Unread, broken
from fairlead.pools.engine.deadlines import DeadlineTimer
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.stopped import Stopped

T = TypeVar("T")

MOST_UNREAD = 10
"""So many workers in a row may be gone before they have read a task."""


MOST_FAILED_STARTS = 10
"""So many starts in a row that fail by no fault of the pool's break it, if it has no other worker."""
PAUSE_S = 0.01
"""Before the second start; it doubles with each."""
LONGEST_PAUSE_S = 0.25


class HasDeadline(Protocol):
    """An attempt or a start."""

    deadline: float


class WorkerStart(HasDeadline, Protocol):
    """A worker that starts."""

    failed_starts: int
    """In a row; 0 once it is ready."""


class Helper(Protocol):
    """A worker that waits for tasks of its own pool."""

    counts: Counts
    helping: int
    """How many it runs now, each on top of one that waits for it."""


class Engine(ABC):
    """Runs tasks: what pools, streams and futures ask for, from any thread, and below what a back end adds.

    Args:
        workers: how many there are at most.
        name: of the threads, before their number.
        start_limit: of the workers' starts; a start that exceeds it breaks the pool.
    """

    kind: str
    workers: int
    """At most so many at once."""
    call_cost_s = 20e-6
    """What a task costs by itself; chunks are made long enough for that to be small beside their work."""
    task_type: type[Task] = Task
    """What its tasks are, where there is more to know of them."""
    sends = False
    """Whether calls are pickled and sent; otherwise they are made in this interpreter."""
    keeps_state = False
    """Whether only it knows what has begun: futures are PENDING until they end, and ask ``runs``, ``stop``
    and ``wait``."""
    forked = False
    """Its workers are the parent's of this process."""
    most_helped = 20
    """So many tasks are run on top of one that waits for them; then another thread takes its place."""
    _closed = False
    _terminated = 0.0
    """When ``terminate`` was called first; 0: it was not."""
    _broken: Broken | None = None
    """Why it has no workers, and will not have any; it is closed then, too."""
    _watch: DeadlineTimer | None = None

    def __init__(self, workers: int, name: str, start_limit: StartLimit | None = None) -> None:
        self.workers = workers
        self._start_limit = start_limit
        self._name = name
        self._lock = EngineLock()
        self._again: set[Task] = set()
        """Have begun, and wait for a further attempt."""
        self._timed: set[HasDeadline] = set()
        """Tasks that run, and workers that start, which have a deadline."""
        self._counts = Counts()
        shutdown.remember(self)

    # tasks

    def portable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that does the same, if that one is cheaper to send many times."""
        return function

    def enqueue(self, task: Task) -> None:
        """Takes it over. PoolClosedError or BrokenPoolError: it was not taken, and its future has not
        ended."""
        with self._lock:
            self._check_open()
            if self._watch is None and (task.options.timeout or self._start_limit) is not None:
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
            raise PoolClosedError(shutdown.over or shutdown.CLOSED)

    def uninterrupted(self, call: Callable[[], T], task: Task | None = None) -> T:  # noqa: ARG002
        """Makes a call that stops the task, or several, and that no interrupt of the calling thread leaves
        half done."""
        # a deallocator may run where the lock is held, which another thread would wait for
        return call() if self._lock._is_owned() else aside.uninterrupted(call)

    def stop(self, task: Task) -> bool:
        """Cancels a task that may have begun. Whether this ended its future, as cancelled. After a False it
        ends otherwise, or has ended, or another thread cancels it at this moment."""
        return self._stop(task, late=False)

    # waiting for tasks

    def runs(self, task: Task) -> bool:  # noqa: ARG002
        """Where it keeps the state: whether a worker has the task."""
        return False

    def wait(self, task: Task, timeout: float | None) -> None:  # noqa: ARG002
        """Where it keeps the state: waits for the task's end; returns at once if another thread does."""
        return

    def here(self) -> bool:
        """Whether the calling thread is one that its tasks need: a worker's, or the event loop's."""
        return False

    def help(self, task: Task) -> None:  # noqa: ARG002
        """The calling thread is about to wait for the task: run it here if that thread is one of the workers
        and it has not begun. May do nothing."""
        return

    def lend(self, *, blocking: bool = True) -> object | None:  # noqa: ARG002
        """The calling thread, or with ``blocking=False`` the calling task of a loop, is about to wait for
        tasks of this engine. If their worker is needed for that, another takes its place until
        ``take_back``, which is to be called with what this returns, if that is not None. Raises DeadlockError
        if the wait could never end."""
        return None

    def take_back(self, loan: Any) -> None:  # noqa: ARG002
        """By the lender; or wherever a coroutine that was left is closed."""
        return

    # its end

    @property
    def closed(self) -> bool:
        """It takes no more tasks."""
        return self._closed

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
            # before it is looked at what runs: what begins then looks at this
            self._terminated = self._terminated or time.monotonic()
            self.close()
        self.cancel_queued()
        with self._lock:
            tasks = [*self._again, *self._begun_tasks()]
        for task in tasks:
            self.stop(task)

    def join(self, timeout: float | None = None) -> bool:
        """Waits until the workers of a closed engine have ended; those that could not be stopped are not
        waited for. False if they had not within the time. DeadlockError in one of its own tasks or
        done-callbacks, whose worker cannot end before it."""
        if self.here() and not self.forked:
            raise DeadlockError(
                "the pool takes no more tasks, but one of its own, or a done-callback of one, cannot wait "
                "for its end: call shutdown(wait=False) there"
            )
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
            return counts.statistics(self.kind, self.workers, started, queued, running)

    # the beginning of an attempt

    def _begin(self, task: Task) -> bool:
        """Takes a task from the queue, to run or to end it; False if it was cancelled or helped."""
        if task.attempts:
            claimed = self._claim(task)
            if claimed:
                task.begin_again()
            return claimed
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

    def _help(self, task: Task, run: Callable[[Task], Any], helper: Helper) -> None:
        """Runs a task, if it has not begun, in a thread that is about to wait for it, and whose stack is not
        too deep for that."""
        if helper.helping >= self.most_helped or not task.begin():
            return
        helper.helping += 1
        value = error = None
        try:
            value = run(task)
        except Stopped:  # sent to the task that waits
            self._give_up([task])
            raise
        except BaseException as raised:  # noqa: BLE001 - the task's
            error = raised
        finally:
            helper.helping -= 1
        helper.counts.attempt(task, done=True)
        task.end(value, error)

    # its end: what a call returned or raised is counted by Counts.attempt, and ended by Task.end

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
        if not late:
            self._give_up([task])
            return True
        with self._lock:
            self._counts.timed_out += 1
        error = TaskTimeoutError(f"the task ran longer than {task.options.timeout:g} s")
        self._finish(task, error, again=bool(again))
        return True

    def _give_up(self, tasks: Collection[Task]) -> None:
        """Ends as cancelled what the caller has taken."""
        with self._lock:
            self._counts.cancelled += len(tasks)
        for task in tasks:
            task.give_up()

    def _lose(self, task: Task, lost: Lost) -> bool:
        """Its worker is gone, and an attempt with it: whether there will be a further one, as
        ``_tries_again`` says."""
        with self._lock:
            again = self._tries_again(task, unread=lost.begins_anew(task))
            self._counts.lost += not (again and isinstance(lost, Unread))
            return again

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

    def _finish(self, task: Task, error: BaseException, *, again: bool) -> None:
        """After an attempt without an outcome: once terminated all are cancelled."""
        if again:
            self._put_again(task)
        elif self._terminated:
            task.give_up()
        else:
            task.end(None, error)

    def _end_queued(self, error: Broken | None) -> None:
        tasks = self._drain()
        if error is None or self._terminated:
            self._give_up(tasks)
        else:
            for task in tasks:
                task.end(None, error)

    def _break(self, error: BaseException) -> None:
        """There are no workers, and will not be any."""
        why = broken(str(error), error)
        with self._lock:
            self._broken = why
            self.close()
            between = [task for task in list(self._again) if self._claim(task)]
        for task in between:
            task.end(None, why)
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

    def _guard(self, timed: HasDeadline, timeout: float) -> None:
        """Its attempt, or its start, has begun."""
        timed.deadline = time.monotonic() + timeout
        self._timed.add(timed)
        if self._watch is not None:
            self._watch.expect(timed.deadline)

    def _expire(self) -> float:
        """Ends the attempts and starts whose time is up; when to look again."""
        now = time.monotonic()
        for timed in list(self._timed):
            if timed.deadline <= now:
                if isinstance(timed, Task):
                    self._stop(timed, late=True)
                else:
                    with contextlib.suppress(KeyError):  # it is ready
                        self._timed.remove(timed)
                        self._start_is_late(timed)
        return min((timed.deadline for timed in list(self._timed)), default=math.inf)

    def ended(self) -> None:
        """The last worker of a closed pool has gone, and no task waits for a further attempt."""
        if self._watch is not None:
            self._watch.end()

    def _patience_is_over(self, times: int = 1) -> bool:
        """Whether it was terminated so long ago that what still goes on may never end."""
        return 0.0 < self._terminated < time.monotonic() - times * shutdown.PATIENCE_S

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

    def _starts_again(self, start: WorkerStart, others: Iterable[WorkerStart]) -> bool:
        """With the lock held, after a start that failed by no fault of the pool's, and for which there is
        work: whether to try again, after a pause. As long as there are other workers; otherwise some times,
        and then the pool is to be broken."""
        start.failed_starts += 1
        again = start.failed_starts < MOST_FAILED_STARTS or not all(other.failed_starts for other in others)
        self._counts.restarts += again
        return again

    @staticmethod
    def _pause(start: WorkerStart) -> None:
        time.sleep(min(PAUSE_S * 2.0 ** (start.failed_starts - 1), LONGEST_PAUSE_S))

    def _start_is_late(self, start: Any) -> None:  # noqa: ARG002
        """Unless the worker is ready: breaks the pool, and has the start end."""
        return

    def _not_ended(self) -> list[threading.Thread]:
        """Threads that a closed pool waits for, as they are now."""
        return []

    @abstractmethod
    def _numbers(self) -> tuple[Counts, int, int, int]:
        """With the lock held: what was done, workers, tasks queued and running."""

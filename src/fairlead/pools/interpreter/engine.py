"""The engine of interpreters whose workers take their calls from one board (native/interpreters/board.h).

Each worker is a thread of this process that runs a loop (worker.py) in an interpreter of its own. Calls go
from the thread that submits straight to the worker that is free first, and replies straight to the thread
that waits for that very result; one thread here, the reader, takes those without a waiter.

Invariants:

* A job on the board ends once (board.h says how), and who ends it ends the task's future, or posts it again.
* A task that is to be posted again is in ``_between`` until it has been. A cancellation that takes it from
  there, under ``_lock``, ends its future and marks it ``dropped``; its new job, if it comes to that, is taken
  back or its reply left alone.
* The future of a task is PENDING until it has ended; whether it runs, the board knows.
* Of workers there are as many as jobs, up to the limit: a thread that posts one, or sees a worker end,
  makes another when there are fewer.
* A worker whose task was taken back is in ``_leaving``: it gets no other, is interrupted, and ends when it
  can. Its interpreter is ended by its own thread, when no call is in it (JobQueue.leave).

No future is ended, and so no callback called, with the lock held.
"""

from __future__ import annotations

import contextlib
import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from fairlead import _native
from fairlead.errors import SerializationError, TaskTimeoutError, WorkerDiedError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.aside import Aside
from fairlead.pools.engine.contract import Engine, Options, Statistics, Task, broken
from fairlead.pools.engine.deadlines import DeadlineTimer
from fairlead.pools.engine.future import Future
from fairlead.pools.interpreter.serialization import Shipping, goes_by_value, read_outcome, unreadable
from fairlead.pools.interpreter.worker import BEGUN, BROKEN, RECORD, RESULT, UNREADABLE
from fairlead.pools.serialization import records
from fairlead.pools.serialization.calls import OF_THE_THREAD

_BOOT = """
import sys
sys.path[:] = {path!r}
from fairlead.pools.interpreter import worker
worker.main({board}, {worker}, *{hooks!r}, {most_tasks}, {idle_timeout}, {levels!r})
"""


class Posted(Task):
    """A task and the job that it is on the board."""

    __slots__ = ("by_value", "deadline", "dropped", "job")

    def __init__(
        self,
        future: Future[Any],
        function: Callable[..., Any],
        args: Any,
        kwargs: dict[str, Any],
        options: Options,
    ) -> None:
        super().__init__(future, function, args, kwargs, options)
        self.job: _native.Job | None = None
        self.deadline = math.inf
        self.by_value = False
        self.dropped = False
        """Cancelled between two attempts."""


class _Worker:
    """A thread and its interpreter."""

    __slots__ = ("number", "stopped_at", "thread")

    def __init__(self, number: int) -> None:
        self.number = number
        self.thread: threading.Thread
        self.stopped_at = math.inf


class Interpreters(Engine):
    """See above.

    Args:
        workers: how many there are at most.
        hooks: the initializer and the finalizer, pickled.
        most_tasks: tasks after which a worker is replaced; 0 for never.
        idle_timeout: seconds without a task after which a worker ends; None for never.
        forward_logging: whether workers' log records are handled here.
        name: of the threads, before their number.
    """

    kind = "interpreters"
    call_cost_s = 10e-6
    task_type = Posted
    keeps_state = True
    sends = True

    def __init__(
        self,
        workers: int,
        hooks: tuple[bytes | None, bytes | None],
        *,
        name: str,
        most_tasks: int,
        idle_timeout: float | None,
        forward_logging: bool,
    ) -> None:
        self.workers = workers
        self._name = name
        self._most_tasks = most_tasks
        self._idle_timeout = idle_timeout
        self._forward_logging = forward_logging
        self._hooks = hooks
        self._board = _native.JobQueue()
        self._shipping = Shipping()
        self._lock = threading.RLock()
        self._places: dict[int, _Worker] = {}
        self._leaving: dict[int, _Worker] = {}
        self._ending: list[threading.Thread] = []
        self._timed: set[Posted] = set()
        self._between: set[Posted] = set()
        """Between two attempts: taken from the board, and not posted again yet."""
        self._terminated = False
        self._numbered = 0
        self._restarts = 0
        self._timed_out = self._cancelled = self._lost = self._retried = 0
        self._reader: threading.Thread | None = None
        self._watch: DeadlineTimer | None = None
        shutdown.remember(self)

    # what the executor calls

    def enqueue(self, task: Task) -> None:
        assert isinstance(task, Posted)
        try:
            posted = self._post(task)
        except SerializationError as error:
            self._check_open()
            task.fail(error)
        else:
            if not posted:
                self._check_open()

    def _post(self, task: Posted) -> bool:
        """False if the board is closed. Raises SerializationError for a call that cannot be sent."""
        call = self._pack(task)
        task.attempts += 1
        try:
            posted = self._board.post(task, call, task.options.timeout is not None)
        except OF_THE_THREAD:
            raise
        except BaseException:  # noqa: BLE001 - objects raise what they like when they are pickled
            call = self._pack(task, by_value=True)
            posted = self._board.post(task, call, task.options.timeout is not None)
        if posted is None:
            return False
        task.job, outstanding = posted
        if outstanding > len(self._places) < self.workers:
            self._perhaps_add_worker()
        return True

    def _pack(self, task: Posted, *, by_value: bool = False) -> tuple[Any, ...]:
        return self._shipping.pack(task, by_value=by_value or task.by_value)

    def runs(self, task: Task) -> bool:
        job = task.job if isinstance(task, Posted) else None
        return job is not None and self._board.is_running(job)

    def stop(self, task: Task) -> bool:
        if not isinstance(task, Posted):
            return False
        with self._lock:
            if task in self._between:
                task.dropped = True  # before it is taken away: see _succeed
                self._between.discard(task)
                worker = 0
            else:
                worker = -1 if task.job is None else self._board.take_back(task.job)
        if worker < 0:
            return False
        self._cancelled += 1
        if worker > 0:
            self._interrupt(worker)
        task.give_up()
        return True

    def wait(self, task: Task, timeout: float | None) -> None:
        """Waits for a reply to the task and ends it; does nothing if another thread is about to."""
        job = task.job if isinstance(task, Posted) else None
        if job is not None and (news := self._board.help(job, timeout)) is not None:
            self._end(*news)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._board.close()
        self._perhaps_over()

    def cancel_queued(self) -> None:
        for task in self._board.clear():
            self._cancelled += 1
            task.give_up()

    def terminate(self) -> None:
        self._terminated = True  # before the board is closed: see _repost
        self.close()
        self.cancel_queued()
        for task, worker in self._board.seize():
            self._cancelled += 1
            self._interrupt(worker)
            task.give_up()
        with self._lock:
            idle = list(self._places)
        for worker in idle:
            self._interrupt(worker)

    def join(self, timeout: float | None = None) -> bool:
        return shutdown.join(self._not_ended, self._watch, timeout)

    def _not_ended(self) -> list[threading.Thread]:
        with self._lock:
            late = time.monotonic() - shutdown.PATIENCE_S
            leaving = [worker.thread for worker in self._leaving.values() if worker.stopped_at > late]
            reader = [] if self._reader is None else [self._reader]
            return [*(worker.thread for worker in self._places.values()), *leaving, *reader, *self._ending]

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._lock = threading.RLock()
        self._places, self._leaving, self._timed, self._between = {}, {}, set(), set()
        self._reader = self._watch = None
        self._board = _native.JobQueue()
        self._board.close()

    def statistics(self) -> Statistics:
        queued, running, done, queue_ns, run_ns, bytes_out, bytes_in = self._board.statistics()
        with self._lock:
            return Statistics(
                kind=self.kind, workers=self.workers, started=len(self._places),
                queued=queued, running=running, done=done,
                timed_out=self._timed_out, cancelled=self._cancelled, lost=self._lost,
                retried=self._retried, restarts=self._restarts,
                queue_time_s=queue_ns / 1e9, run_time_s=run_ns / 1e9,
                bytes_out=bytes_out, bytes_in=bytes_in,
            )  # fmt: skip

    # workers

    def _perhaps_add_worker(self) -> None:
        """Makes one if there are fewer than jobs and than there may be."""
        with self._lock:
            queued, running, *_ = self._board.statistics()
            if self._broken is not None or not len(self._places) < min(self.workers, queued + running):
                return
            self._numbered += 1
            worker = _Worker(self._numbered)
            worker.thread = shutdown.thread(self._serve, worker, f"{self._name}-{worker.number}")
            self._places[worker.number] = worker
            try:
                if self._reader is None:
                    reader = shutdown.thread(self._read, None, f"{self._name}-reader")
                    reader.start()
                    self._reader = reader
                worker.thread.start()
            except RuntimeError as error:
                refusal = error
                del self._places[worker.number]
            if self._places:  # this one, or others that will do
                return
        why = broken(f"no thread can be started for a worker: {refusal}", refusal)
        for task in self._board.clear():
            task.fail(why)

    def _serve(self, worker: _Worker) -> None:
        import _interpreters  # type: ignore[import-not-found]

        number = worker.number
        program = _BOOT.format(
            path=sys.path, board=self._board.number, worker=number,
            hooks=self._hooks, most_tasks=self._most_tasks, idle_timeout=self._idle_timeout,
            levels=records.levels() if self._forward_logging else None,
        )  # fmt: skip
        made = None
        reason = ""
        try:
            made = _interpreters.create()
            failed = _interpreters.exec(made, program)
            if failed is not None:
                reason = failed.formatted
        except Exception as error:  # noqa: BLE001 - whatever keeps an interpreter from being made
            reason = f"{type(error).__name__}: {error}"
        lost = self._board.leave(number)
        if made is not None:
            _interpreters.destroy(made)
        self._left(worker, lost, reason)

    def _left(self, worker: _Worker, lost: Posted | None, reason: str) -> None:
        """Its interpreter has ended."""
        with self._lock:
            stopped = self._leaving.pop(worker.number, None) is not None
            self._places.pop(worker.number, None)
            if lost is None:  # else its callbacks come, and may block
                self._ending = shutdown.with_this_thread(self._ending)
            if not stopped and (lost is not None or reason or self._most_tasks):
                self._restarts += 1  # otherwise it had nothing to do for long, or the pool is closed
        if lost is not None:
            self._lost += 1
            if self._tries_again(lost):
                self._repost(lost)
            else:
                self._fail(lost, WorkerDiedError(f"the interpreter ended ({reason}); only this task is lost"))
        elif reason and not stopped:
            self._break(RuntimeError(f"a worker's interpreter ended: {reason}"))
        self._perhaps_add_worker()
        self._perhaps_over()

    def _perhaps_over(self) -> None:
        """Ends the reader with the last worker."""
        with self._lock:
            over = self._closed and not self._places
            queued, *_ = self._board.statistics()
        if over and queued == 0:
            self._board.end_completions()

    def _interrupt(self, number: int) -> None:
        """Has a worker end that nothing waits for any more; entering its interpreter may take as long as a
        call into C, so that a thread does it."""
        with self._lock:
            worker = self._places.pop(number, None)
            if worker is None:
                return
            self._leaving[number] = worker
            worker.stopped_at = time.monotonic()
            if not self._closed:
                self._restarts += 1
            # without a thread to be had for it, the worker ends when it replies
            with contextlib.suppress(RuntimeError):
                shutdown.thread(self._board.interrupt, number, f"{self._name}-{number}-stop").start()
        self._perhaps_add_worker()
        self._perhaps_over()

    def _break(self, error: BaseException) -> None:
        why = broken(str(error), error)
        with self._lock:
            self._broken = why
        self.close()
        for task in self._board.clear():
            task.fail(why)

    # news

    def _read(self, _: object) -> None:
        with Aside(f"{self._name}-callbacks"):
            while (news := self._board.completions()) is not None:
                self._end_all(news)
                del news  # nothing of them is kept until the next come

    def _end_all(self, news: list[tuple[Any, int, Any]]) -> None:
        for one in news:
            self._end(*one)

    def _end(self, task: Posted, kind: int, value: Any) -> None:
        if kind == RESULT:
            self._succeed(task, value)
            return
        if kind == BEGUN:
            self._begun(task)
            return
        if kind == RECORD:
            records.handle(value)
            return
        fine, read = read_outcome(kind, value)
        if fine:
            self._succeed(task, read)
        elif kind == BROKEN:
            self._break(read)
        elif kind == UNREADABLE:
            self._unreadable(task, read)
        else:
            self._fail(task, read)

    def _succeed(self, task: Posted, value: Any) -> None:
        if task.deadline != math.inf:
            self._timed.discard(task)
        if self._between:
            self._claim(task)
        if not task.dropped:
            task.succeed(value)

    def _fail(self, task: Posted, error: BaseException) -> None:
        if task.deadline != math.inf:
            self._timed.discard(task)
        if self._between:
            self._claim(task)
        if not task.dropped:
            task.fail(error)

    def _unreadable(self, task: Posted, error: BaseException) -> None:
        """The worker could not read the call: by reference, perhaps, where it must go by value."""
        if not task.by_value and goes_by_value(error):
            task.by_value = True
            task.attempts -= 1
            with self._lock:
                self._between.add(task)
            self._repost(task)
        else:
            self._fail(task, unreadable(task, error))

    def _tries_again(self, task: Posted) -> bool:
        """Whether there is to be a further attempt: it is in ``_between`` then, and to be posted again."""
        with self._lock:
            again = task.may_retry() and self._broken is None
            if again:
                self._retried += 1
                self._between.add(task)
            return again

    def _repost(self, task: Posted) -> None:
        posted = False
        error: Exception | None = None
        try:
            posted = self._post(task)
        except SerializationError as refusal:
            error = refusal
        if error is None and not posted and not self._terminated:
            error = self._broken or WorkerDiedError("the pool ended before the task could be run again")
        if error is not None:
            self._fail(task, error)
        elif not posted:
            if self._claim(task):
                self._cancelled += 1
                task.give_up()
        elif not self._claim(task) and task.job is not None:  # cancelled meanwhile, or ended already
            worker = self._board.take_back(task.job)
            if worker > 0:
                self._interrupt(worker)

    def _claim(self, task: Posted) -> bool:
        """Takes it from ``_between``; False if it is not there any more."""
        with self._lock:
            claimed = task in self._between
            self._between.discard(task)
            return claimed

    # time-outs

    def _begun(self, task: Posted) -> None:
        limit = task.options.timeout
        if limit is None or task.future.done():
            return
        if self._watch is None:
            with self._lock:
                try:
                    if self._watch is None:
                        self._watch = DeadlineTimer(self._expire, f"{self._name}-watch")
                except RuntimeError as error:
                    refusal = broken(f"no thread can be started for time-outs: {error}", error)
        if self._watch is None:
            self._give_up_on(task, refusal)
            return
        task.deadline = time.monotonic() + limit
        self._timed.add(task)
        self._watch.expect(task.deadline)

    def _expire(self) -> float:
        """Ends the tasks whose time is up; when to look again."""
        now = time.monotonic()
        for task in list(self._timed):
            if task.deadline > now:
                continue
            self._timed.discard(task)
            late = TaskTimeoutError(f"the task ran longer than {task.options.timeout:g} s")
            self._give_up_on(task, late)
        return min((task.deadline for task in list(self._timed)), default=math.inf)

    def _give_up_on(self, task: Posted, error: Exception) -> None:
        """Takes a task from its worker, if it is there still, and has that end."""
        with self._lock:
            worker = -1 if task.job is None else self._board.take_back(task.job)
            again = worker > 0 and self._tries_again(task)
        if worker > 0:
            self._timed_out += isinstance(error, TaskTimeoutError)
            self._interrupt(worker)
            if again:
                self._repost(task)
            else:
                self._fail(task, error)

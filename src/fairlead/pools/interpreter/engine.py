"""The engine of interpreters whose workers take their calls from one board (native/interpreters/board.h).

Each worker is a thread of this process that runs a loop (worker.py) in an interpreter of its own. Calls go
from the thread that submits straight to the worker that is free first, and replies straight to the thread
that waits for that very result; one thread here, the reader, takes those without a waiter.

Invariants, besides those of scheduler.py:

* A job on the board ends once (job_queue.h says how), and the thread that ends it ends the task's future, or
  posts it again.
* A task that is to be posted again is in ``_again`` until it has been, as its call is pickled without the
  lock. What takes it from there to end it marks it ``dropped``; its new job, if it comes to that, is taken
  back or its reply left alone.
* The future of a task is PENDING until it has ended; whether it runs, the board knows.
* Of workers there are as many as jobs, up to the limit: a thread that posts one, or sees a worker end,
  makes another when there are fewer.
* A worker whose task was taken back is in ``_leaving``: it gets no other, is interrupted, and ends when it
  can. Its interpreter is ended by its own thread, when no call is in it (JobQueue.leave).
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
from fairlead.errors import SerializationError, WorkerDiedError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.aside import Aside
from fairlead.pools.engine.contract import Options, Task, broken
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.scheduler import Counts, TaskScheduler
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

    __slots__ = ("by_value", "dropped", "job")

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
        self.by_value = False
        self.dropped = False
        """Ended between two attempts."""


class _Worker:
    """A thread and its interpreter."""

    __slots__ = ("number", "stopped_at", "thread")

    def __init__(self, number: int) -> None:
        self.number = number
        self.thread: threading.Thread
        self.stopped_at = math.inf


class Interpreters(TaskScheduler):
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
        self._most_tasks = most_tasks
        self._idle_timeout = idle_timeout
        self._forward_logging = forward_logging
        self._hooks = hooks
        self._board = _native.JobQueue()
        self._shipping = Shipping()
        self._places: dict[int, _Worker] = {}
        self._leaving: dict[int, _Worker] = {}
        self._ending: list[threading.Thread] = []
        self._numbered = 0
        self._reader: threading.Thread | None = None
        super().__init__(workers, name)

    # what the executor calls

    def enqueue(self, task: Task) -> None:
        assert isinstance(task, Posted)
        if task.options.timeout is not None and self._watch is None:
            self._start_watch()
        try:
            posted = self._post(task)
        except SerializationError as error:
            self._check_open()
            task.fail(error)
        else:
            if not posted:
                self._check_open()

    def _post(self, task: Posted) -> _native.Job | None:
        """None if the board is closed. Raises SerializationError for a call that cannot be sent."""
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
            return None
        task.job, outstanding = posted
        if outstanding > len(self._places) < self.workers:
            self._perhaps_add_worker()
        return posted[0]

    def _pack(self, task: Posted, *, by_value: bool = False) -> tuple[Any, ...]:
        return self._shipping.pack(task, by_value=by_value or task.by_value)

    def runs(self, task: Task) -> bool:
        job = task.job if isinstance(task, Posted) else None
        return job is not None and self._board.is_running(job)

    def wait(self, task: Task, timeout: float | None) -> None:
        """Waits for a reply to the task and ends it; does nothing if another thread is about to."""
        job = task.job if isinstance(task, Posted) else None
        if job is not None and (news := self._board.help(job, timeout)) is not None:
            self._end(*news)

    def close(self) -> None:
        super().close()
        self._perhaps_over()

    def terminate(self) -> None:
        super().terminate()
        for task, worker in self._board.seize():
            self._interrupt(worker)
            if self._is_its_end(task):
                with self._lock:
                    self._counts.cancelled += 1
                task.give_up()
        with self._lock:
            idle = list(self._places)
        for worker in idle:
            self._interrupt(worker)

    def _not_ended(self) -> list[threading.Thread]:
        with self._lock:
            late = time.monotonic() - shutdown.PATIENCE_S
            leaving = [worker.thread for worker in self._leaving.values() if worker.stopped_at > late]
            reader = [] if self._reader is None else [self._reader]
            return [*(worker.thread for worker in self._places.values()), *leaving, *reader, *self._ending]

    def forget_after_fork(self) -> None:
        super().forget_after_fork()
        self._places, self._leaving = {}, {}
        self._reader = None
        self._board = _native.JobQueue()
        self._board.close()

    # the board

    def _close_queue(self) -> None:
        self._board.close()

    def _drain(self) -> list[Task]:
        return [task for task in self._board.clear() if self._is_its_end(task)]

    def _begun_tasks(self) -> list[Task]:
        return []  # see terminate

    def _seize(self, task: Task, *, late: bool) -> Callable[[], bool] | None:
        job = task.job if isinstance(task, Posted) else None
        if job is None or (late and not self._board.is_running(job)):
            return None
        worker = self._board.take_back(job)
        if worker < 0:
            return None
        again = late and self._tries_again(task)

        def interrupt() -> bool:
            if worker > 0:
                self._interrupt(worker)
            return again

        return interrupt

    def _numbers(self) -> tuple[Counts, int, int, int]:
        counts = Counts()
        counts.add(self._counts)
        (
            queued, running, counts.done, counts.queue_ns, counts.run_ns, counts.bytes_out, counts.bytes_in,
        ) = self._board.statistics()  # fmt: skip
        return counts, len(self._places), queued, running

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
        self._end_queued(broken(f"no thread can be started for a worker: {refusal}", refusal))

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
                self._counts.restarts += 1  # otherwise it had nothing to do for long, or the pool is closed
        if lost is not None:
            again = self._tries_again(lost)
            with self._lock:
                self._counts.lost += 1
            died = WorkerDiedError(f"the interpreter ended ({reason}); only this task is lost")
            self._finish(lost, died, again=again)
        elif reason and not stopped:
            self._break(RuntimeError(f"a worker's interpreter ended: {reason}"))
        self._perhaps_add_worker()
        self._perhaps_over()

    def _perhaps_over(self) -> None:
        """Ends the other threads with the last worker."""
        with self._lock:
            over = self._closed and not self._places
            queued, *_ = self._board.statistics()
        if over and queued == 0:
            self._board.end_completions()
            self.ended()

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
                self._counts.restarts += 1
            # without a thread to be had for it, the worker ends when it replies
            with contextlib.suppress(RuntimeError):
                shutdown.thread(self._board.interrupt, number, f"{self._name}-{number}-stop").start()
        self._perhaps_add_worker()
        self._perhaps_over()

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
            self._conclude(task, task.succeed, value)
            return
        if kind == BEGUN:
            self._begun(task)
            return
        if kind == RECORD:
            records.handle(value)
            return
        fine, read = read_outcome(kind, value)
        if fine:
            self._conclude(task, task.succeed, read)
        elif kind == BROKEN:
            self._break(read)
        elif kind == UNREADABLE:
            self._unreadable(task, read)
        else:
            self._conclude(task, task.fail, read)

    def _conclude(self, task: Posted, end: Callable[[Any], None], outcome: Any) -> None:
        """Its job has ended, and so does the task, if it has not before."""
        special = self._again or task.dropped or task.options.timeout is not None
        if not special or self._is_its_end(task):
            end(outcome)

    def _is_its_end(self, task: Posted) -> bool:
        """Whether the thread that has ended a task's job is to end the task, too."""
        self._timed.discard(task)
        self._claim(task)
        return not task.dropped

    def _unreadable(self, task: Posted, error: BaseException) -> None:
        """The worker could not read the call: by reference, perhaps, where it must go by value."""
        again = not task.by_value and goes_by_value(error) and self._tries_again(task, unread=True)
        self._timed.discard(task)
        task.by_value = True
        self._finish(task, unreadable(task, error), again=again)

    def _begun(self, task: Posted) -> None:
        if task.options.timeout is not None and not task.future.done():
            self._guard(task, task.options.timeout)

    # between two attempts

    def _drop(self, task: Task) -> bool:
        with self._lock:
            if task in self._again:
                assert isinstance(task, Posted)
                task.dropped = True  # before it is taken away: see _conclude
            return super()._drop(task)

    def _put_again(self, task: Task) -> None:
        assert isinstance(task, Posted)
        job = None
        error: Exception = WorkerDiedError("the pool ended before the task could be run again")
        try:
            job = self._post(task)
        except SerializationError as refusal:
            error = refusal
        mine = self._claim(task)
        if job is None:
            if mine:
                task.fail(error)
        elif not mine and (worker := self._board.take_back(job)) > 0:  # cancelled meanwhile, or over already
            self._interrupt(worker)

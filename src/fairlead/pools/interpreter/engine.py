"""The engine of interpreters whose workers take their calls from one board (native/interpreters/job_queue.h).

Each worker is a thread of this process that runs a loop (worker.py) in an interpreter of its own. Calls go
from the thread that submits straight to the worker that is free first, and replies straight to the thread
that waits for that very result; one thread here, the reader, takes those without a waiter.

Invariants, besides those of scheduler.py:

* A job on the board ends once (job_queue.h says how), and the thread that ends it ends the task's future, or
  posts it again.
* A task that has begun and not ended is on the board or in ``_again``, never in both: it is put into
  ``_again`` and, once its call is pickled anew, posted again under the lock.
* A closed pool is over, and its reader ends, when it has no workers, nothing is in ``_again``, and the board
  is idle. A task is in one of these until it has ended: only the reader learns that a call could not be read,
  and all else that tries again does so under the lock.
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
from fairlead.errors import ModuleRefusedError, SerializationError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.aside import Aside
from fairlead.pools.engine.contract import Counts, Options, StartLimit, Task, broken
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.interpreter import tracing
from fairlead.pools.interpreter.serialization import Shipping, read_outcome, shipped
from fairlead.pools.interpreter.worker import BEGUN, BROKEN, READY, RECORD, RESULT, UNREADABLE
from fairlead.pools.serialization import records
from fairlead.pools.serialization.calls import read_again, unreadable
from fairlead.pools.serialization.chunk_loss import lost as loss
from fairlead.pools.serialization.pickling import OF_THE_THREAD

_BOOT = """
import sys
sys.path[:] = {path!r}
from fairlead.pools.interpreter import worker
worker.main({board}, {worker}, *{hooks!r}, {most_tasks}, {idle_timeout}, {levels!r}, {announces}, {name!r})
"""


class Posted(Task):
    """A task and the job that it is on the board."""

    __slots__ = ("by_value", "job")

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


class _Worker:
    """A thread and its interpreter."""

    __slots__ = ("changing", "deadline", "failed_starts", "interpreter", "number", "stopped_at", "thread")

    def __init__(self, number: int) -> None:
        self.changing = EngineLock()
        """Held while its interpreter is made or ended."""
        self.interpreter: int | None = None
        self.number = number
        self.thread: threading.Thread
        self.stopped_at = self.deadline = math.inf
        self.failed_starts = 0


class Interpreters(Engine):
    """See above.

    Args:
        workers: how many there are at most.
        hooks: the initializer, its arguments and the finalizer. SerializationError if they cannot be sent.
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
        hooks: tuple[Callable[..., object] | None, tuple[Any, ...], Callable[[], object] | None],
        *,
        name: str,
        most_tasks: int,
        idle_timeout: float | None,
        forward_logging: bool,
        start_limit: StartLimit | None,
    ) -> None:
        self._most_tasks = most_tasks
        self._idle_timeout = idle_timeout
        self._forward_logging = forward_logging
        initializer, initargs, finalizer = self._kept = hooks  # with the primitives that the pickles refer to
        self._hooks = shipped("initializer", initializer, initargs), shipped("finalizer", finalizer, ())
        self._board = _native.JobQueue()
        self._shipping = Shipping()
        self._places: dict[int, _Worker] = {}
        self._leaving: dict[int, _Worker] = {}
        self._ending: list[threading.Thread] = []
        self._numbered = 0
        self._reader: threading.Thread | None = None
        super().__init__(workers, name, start_limit)

    # what the executor calls

    def enqueue(self, task: Task) -> None:
        assert isinstance(task, Posted)
        if self._watch is None and (task.options.timeout or self._start_limit) is not None:
            self._start_watch()
        try:
            task.job = _native.sharing(self._job, task)
        except SerializationError as error:
            self._check_open()
            task.end(None, error)
            return
        task.attempts += 1
        outstanding = self._board.post(task.job, task, False)
        if outstanding is None:
            self._check_open()
        elif outstanding > len(self._places) < self.workers:
            self._perhaps_add_worker()

    def _job(self, task: Posted) -> _native.Job:
        """Raises SerializationError for a call that cannot be sent."""
        announce = task.options.timeout is not None
        if not task.by_value:
            call = self._shipping.pack(task)
            try:
                return self._board.job(call, announce)
            except OF_THE_THREAD:
                raise
            except BaseException:  # noqa: BLE001 - objects raise what they like when they are pickled
                pass
        return self._board.job(self._shipping.pack(task, by_value=True), announce)

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
            self._timed.discard(task)
            self._give_up([task])
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

    def leave_behind(self, timeout: float) -> bool:
        """No interpreter is made or ended any more, nor is Python run in one that is left: CPython would end
        it, and crash."""
        with self._lock:
            workers = [*self._places.values(), *self._leaving.values()]
        return all(
            worker.changing.acquire(timeout=timeout)
            and (worker.interpreter is None or _native.keep_interpreter(worker.interpreter, timeout))
            for worker in workers
        )

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
        return self._board.clear()

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
        """Makes one if there are fewer than jobs and than there may be; a closed pool may be over."""
        with self._lock:
            queued, running, *_ = self._board.statistics()
            wanted = self._broken is None and len(self._places) < min(self.workers, queued + running)
            refusal = self._add_worker() if wanted else None
        if refusal is not None:
            self._end_queued(broken(f"no thread can be started for a worker: {refusal}", refusal))
        if self._closed:
            self._perhaps_over()

    def _add_worker(self) -> RuntimeError | None:
        """With the lock held. Why there is no worker at all."""
        self._numbered += 1
        worker = _Worker(self._numbered)
        worker.thread = shutdown.thread(self._serve, worker, f"{self._name}-{worker.number}")
        try:
            if self._reader is None:
                reader = shutdown.thread(self._read, None, f"{self._name}-reader")
                reader.start()
                self._reader = reader
            worker.thread.start()
        except RuntimeError as error:
            return None if self._places else error  # the others will do
        self._places[worker.number] = worker
        return None

    def _serve(self, worker: _Worker) -> None:
        import _interpreters  # type: ignore[import-not-found]

        with self._lock:  # an interrupt may have kept the thread that started this one from it
            if worker.number not in self._leaving:
                self._places[worker.number] = worker
        number = worker.number
        program = _BOOT.format(
            path=sys.path, board=self._board.number, worker=number,
            hooks=self._hooks, most_tasks=self._most_tasks, idle_timeout=self._idle_timeout,
            levels=records.levels() if self._forward_logging else None,
            announces=self._start_limit is not None, name=worker.thread.name,
        )  # fmt: skip
        reason = ""
        if self._start_limit is not None:
            self._guard(worker, self._start_limit.seconds)
        try:
            tracing.check()
            if self._makes_interpreter(worker):
                failed = _interpreters.exec(worker.interpreter, program)
                reason = "" if failed is None else failed.formatted
        except Exception as error:  # noqa: BLE001 - whatever keeps an interpreter from being made
            reason = f"{type(error).__name__}: {error}"
        self._timed.discard(worker)
        lost = self._board.leave(number)
        with worker.changing:
            if worker.interpreter is not None:
                tracing.end(worker.interpreter)
                worker.interpreter = None
        self._left(worker, lost, reason)

    def _makes_interpreter(self, worker: _Worker) -> bool:
        """False: there is nothing to do for it any more. Raises what keeps it from being made, however
        often."""
        import _interpreters

        while True:
            try:
                with worker.changing:
                    worker.interpreter = _interpreters.create()
            except Exception:
                with self._lock:
                    queued, *_ = self._board.statistics()
                    if not queued or worker.number not in self._places:
                        return False
                    others = [other for other in self._places.values() if other is not worker]
                    again = self._starts_again(worker, others)
                if not again:
                    raise
                self._pause(worker)
            else:
                worker.failed_starts = 0
                return True

    def _start_is_late(self, start: _Worker) -> None:
        assert self._start_limit is not None
        self._break(self._start_limit.exceeded())
        self._interrupt(start.number)

    def _left(self, worker: _Worker, lost: Posted | None, reason: str) -> None:
        """Its interpreter has ended."""
        gone = None if lost is None else loss(lost, f"the interpreter ended ({reason})")
        with self._lock:
            again = lost is not None and gone is not None and self._lose(lost, gone)
            stopped = self._leaving.pop(worker.number, None) is not None
            self._places.pop(worker.number, None)
            if lost is None:  # else its callbacks come, and may block
                self._ending = shutdown.with_this_thread(self._ending)
            if not stopped and (lost is not None or reason or self._most_tasks):
                self._counts.restarts += 1  # otherwise it had nothing to do for long, or the pool is closed
        if lost is not None and gone is not None:
            self._finish(lost, gone.error(lost), again=again)
        elif reason and not stopped:
            self._break(RuntimeError(f"a worker's interpreter ended: {reason}"))
        self._perhaps_add_worker()

    def _perhaps_over(self) -> None:
        """Has the reader look, or, where no worker was ever needed, ends the watch."""
        if self._reader is not None:
            self._board.wake_reader()
        elif self._is_over():
            self.ended()

    def _is_over(self) -> bool:
        with self._lock:
            return self._closed and not self._places and not self._again and self._board.is_idle()

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

    # news

    def _read(self, _: object) -> None:
        here = threading.current_thread()
        with self._lock:
            if self._reader is None:  # as in _serve
                self._reader = here
            if self._reader is not here:
                return
        with Aside(f"{self._name}-callbacks"):
            while not (self._closed and self._is_over()):
                self._end_all(self._board.completions())
        self.ended()

    def _end_all(self, news: list[tuple[Any, int, Any]]) -> None:
        for one in news:
            self._end(*one)

    def _end(self, task: Posted, kind: int, value: Any) -> None:
        if kind == RESULT:
            self._conclude(task, value, None)
            return
        if kind == BEGUN:
            self._begun(task)
            return
        if kind == RECORD:
            records.handle(value)
            return
        if kind == READY:
            self._timed.discard(self._places.get(value))
            return
        fine, read = read_outcome(kind, value)
        if fine:
            self._conclude(task, read, None)
        elif kind == BROKEN:
            self._break(read)
        elif kind == UNREADABLE:
            self._unreadable(task, read)
        else:
            self._conclude(task, None, read)

    def _conclude(self, task: Posted, value: Any, error: BaseException | None) -> None:
        if task.options.timeout is not None:
            self._timed.discard(task)
        task.end(value, error)

    def _unreadable(self, task: Posted, error: BaseException) -> None:
        """The worker could not read the call: by reference, perhaps, where it must go by value."""
        again = read_again(task, error, by_value=task.by_value) and self._tries_again(task, unread=True)
        self._timed.discard(task)
        task.by_value = True
        refusal = error if isinstance(error, ModuleRefusedError) else unreadable(task, error)
        self._finish(task, refusal, again=again)

    def _begun(self, task: Posted) -> None:
        if task.options.timeout is not None and not task.future.done():
            self._guard(task, task.options.timeout)

    # between two attempts

    def _put_again(self, task: Task) -> None:
        assert isinstance(task, Posted)
        try:
            job = _native.sharing(self._job, task)
        except SerializationError as refusal:
            if self._claim(task):
                task.end(None, refusal)
        else:
            with self._lock:
                if not self._terminated and self._claim(task):  # otherwise another thread ends it
                    task.job = job
                    task.attempts += 1
                    self._board.post(job, task, True)
        self._perhaps_add_worker()

"""What a kind of pool implements. The face that callers see (base.Pool) is the same for all kinds.

Every kind has an Engine (scheduler.py). It is given :class:`Task` objects, has their lives (time-outs,
retries, cancellations), and promises that the future of each ends exactly once. There are two ways to write
a kind:

* a :class:`Worker` for the engine in worker_manager.py, which has one thread in this process for each
  worker. Threads, processes and clusters are of this kind: queue, replacement and the end are done there, and
  the worker only runs one call after another;
* a back end of the Engine, where something else already has a queue and workers (an event loop, the
  interpreters' job queue, the thread that submits).

The states of an engine, in every kind:

    OPEN ── close() ──> CLOSED ── the last worker ends ──> OVER
      │                   │
      │                   ├─ cancel_queued(): what has not begun is cancelled
      ├─ terminate() ─────┴─> TERMINATED: every task has ended when terminate() returns or soon after ──> OVER
      ├─ a worker that cannot be had ──> BROKEN: what is queued fails, and so does each further task
      └─ fork ──> FORKED, in the child: CLOSED, with neither tasks nor workers

* A task that was taken ends in every state, once, and its callbacks are called once.
* OPEN and CLOSED run what was taken. Only OPEN takes more; the others raise PoolClosedError, or
  BrokenPoolError.
* ``cancel()`` says True if and only if the future is cancelled then.
* OVER: nothing is queued, nothing runs, no worker is left but those that could not be stopped.

tests/property/test_pools_machine.py explores them.
"""

from __future__ import annotations

import contextvars
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fairlead.errors import BrokenPoolError, WaitTimeoutError, WorkerDiedError

if TYPE_CHECKING:
    from fairlead.pools.engine.future import Future
    from fairlead.pools.engine.scheduler import Engine
    from fairlead.pools.engine.worker_slots import BlockedWorker

Function = Callable[..., Any]
CALLER: contextvars.ContextVar[tuple[Any, tuple[BlockedWorker, ...]]]
CALLER = contextvars.ContextVar("fairlead_caller")
"""The loop, or trio's token, of the task that awaits this call, and the workers that wait for that task: see
from_thread.py. Never sent elsewhere."""


@dataclass(frozen=True, slots=True)
class Options:
    """How tasks are run: what ``with_options`` sets."""

    timeout: float | None = None
    """Seconds that one attempt may run."""
    retries: int = 0
    """Further attempts after a worker was lost or the time was up."""
    context: bool | Literal["here"] | tuple[contextvars.ContextVar[Any], ...] = False
    """Context variables that the task sees as they were at its submission: none, all, these, or, as in
    ``run()``, all if the call is made in this interpreter."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a pool has done so far. Times are sums over tasks, in seconds; an attempt of a task counts as
    one."""

    kind: str
    workers: int
    """At most so many at once."""
    started: int
    """Workers that live now."""
    queued: int
    running: int
    done: int
    """Tasks that returned or raised by themselves."""
    timed_out: int
    cancelled: int
    lost: int
    """Attempts that ended with their worker."""
    retried: int
    restarts: int
    """Workers that took the place of another."""
    queue_time_s: float
    run_time_s: float
    bytes_out: int
    """Sent to workers; 0 where nothing is."""
    bytes_in: int


@dataclass(slots=True)
class Counts:
    """What was done: by one worker, written by its thread, or by all else, written with the engine's lock."""

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

    def attempt(self, task: Task, *, done: bool = False) -> None:
        """One is over; ``done``: its call has returned or raised."""
        self.queue_ns += task.began_ns - task.queued_ns
        self.run_ns += time.monotonic_ns() - task.began_ns
        self.done += done

    def add(self, other: Counts) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def statistics(self, kind: str, workers: int, started: int, queued: int, running: int) -> Statistics:
        return Statistics(
            kind, workers, started, queued, running,
            self.done, self.timed_out, self.cancelled, self.lost, self.retried, self.restarts,
            self.queue_ns / 1e9, self.run_ns / 1e9, self.bytes_out, self.bytes_in,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class StartLimit:
    """How long a worker's start may take, its initializer included."""

    seconds: float
    initializer: str

    @classmethod
    def of(cls, seconds: float | None, initializer: Callable[..., object] | None) -> StartLimit | None:
        if seconds is None:
            return None
        name = getattr(initializer, "__qualname__", None) or type(initializer).__qualname__
        return cls(seconds, "" if initializer is None else f", with its initializer {name}(),")

    def exceeded(self) -> WaitTimeoutError:
        return WaitTimeoutError(
            f"the start of a worker{self.initializer} has not ended within start_timeout={self.seconds:g} s; "
            "raise that if it needs longer"
        )


class Broken(BrokenPoolError, BrokenExecutor):
    """BrokenPoolError, also for code that catches the standard library's."""


def broken(said: str, error: BaseException) -> Broken:
    """With the error as its cause."""
    if isinstance(error, Broken):
        return error
    made = Broken(said)
    made.__cause__ = error
    return made


class Lost(Exception):
    """Raised by Worker.run: the worker is gone. The message says how it ended."""

    def begins_anew(self, task: Task) -> bool:  # noqa: ARG002
        """By the thread that has taken the task from that worker: makes it ready for a further attempt.
        Whether it is to have one whatever its retries are, because that attempt had not begun."""
        return False

    def error(self, task: Task) -> WorkerDiedError:  # noqa: ARG002
        """What becomes of the task otherwise."""
        return WorkerDiedError(f"{self}; only this task is lost")


class Unread(Lost):
    """Raised by Worker.run: the worker was gone before it had read the call, which has not begun."""

    def begins_anew(self, task: Task) -> bool:  # noqa: ARG002
        return True


def _context(
    wanted: bool | Literal["here"] | tuple[contextvars.ContextVar[Any], ...],
) -> contextvars.Context:
    here = contextvars.copy_context()
    if not isinstance(wanted, tuple):
        return here
    chosen = contextvars.Context()
    for variable in (*wanted, CALLER):
        if variable in here:
            chosen.run(variable.set, here[variable])
    return chosen


class Task:
    """One call and the future of its result."""

    __slots__ = (
        "args", "attempts", "began_ns", "context", "deadline", "function", "future", "kwargs", "options",
        "queued_ns", "unread",
    )  # fmt: skip

    def __init__(
        self,
        future: Future[Any],
        function: Function,
        args: Sequence[Any],
        kwargs: dict[str, Any],
        options: Options,
    ) -> None:
        self.future = future
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.options = options
        self.context = _context(options.context) if options.context else None
        self.attempts = 0
        self.unread = 0
        """Workers that were gone before they had read it."""
        self.queued_ns = time.monotonic_ns()
        self.began_ns = 0
        self.deadline: float
        """Of the attempt that runs, if it has a time-out."""

    def begin(self) -> bool:
        """Begins its first attempt, which the caller is to make; False if it was cancelled, or if another
        thread has begun it."""
        if not self.future.begin():
            return False
        self.attempts = 1
        self.began_ns = time.monotonic_ns()
        return True

    def begin_again(self) -> None:
        """By the thread that has taken it from between two attempts."""
        self.attempts += 1
        self.began_ns = time.monotonic_ns()

    def call(self) -> Any:
        """Calls the function here, in the task's context."""
        if self.context is not None:
            return self.context.run(self.function, *self.args, **self.kwargs)
        return self.function(*self.args, **self.kwargs)

    def may_retry(self) -> bool:
        return self.attempts - self.unread <= self.options.retries

    def end(self, value: Any, error: BaseException | None) -> None:
        """With what its call returned, or the error."""
        self.future.forget()
        if error is None:
            self.future.set_result(value)
        else:
            self.future.set_exception(error)

    def give_up(self) -> None:
        """Ends it as cancelled, though it had begun."""
        self.future.forget()
        self.future.end_cancelled()


class Worker(ABC):
    """Runs one call after another, for the one thread of the engine that owns it.

    All methods are called by that thread only, unless they say otherwise.
    """

    __slots__ = ()

    def traffic(self) -> tuple[int, int]:
        """Bytes that it was sent and that it has sent, so far."""
        return 0, 0

    @abstractmethod
    def start(self) -> None:
        """Makes it ready, initializer included. Raises what is wrong, Lost if that is no fault of the pool's
        and another may do better; nothing is left behind then."""

    @abstractmethod
    def run(self, task: Task) -> Any:
        """Calls the task's function and returns its result or raises its exception; Lost if the worker is
        gone."""

    @abstractmethod
    def stop(self) -> bool:
        """From any thread, while ``start`` or ``run`` is going on: makes that end. Whether it surely will; if
        so, soon."""

    def settle(self) -> None:
        """After ``stop``, by the worker's thread: whatever that has sent arrives now or never."""
        return

    @abstractmethod
    def close(self) -> None:
        """Ends it, also after Lost and after ``stop``; when it returns, nothing is left of it."""


class DirectWorker(Worker):
    """One whose ``run`` is made of parts, for the engine in direct_manager.py: a call is sent by the thread
    that submits it, and its thread waits for answers, also while there is no task."""

    __slots__ = ()

    def run(self, task: Task) -> Any:
        self.send(task)
        self.wait()
        return self.read(task)

    @abstractmethod
    def send(self, task: Task) -> None:
        """By any thread, while nothing is under way: sends the call. Raises what keeps it from being sent; if
        the worker is gone, ``wait`` will know."""

    @abstractmethod
    def wait(self, timeout: float | None = None) -> bool:
        """Until an answer has come, or the worker is gone; False: neither within the time."""

    @abstractmethod
    def read(self, task: Task) -> Any:
        """The answer, as ``run`` returns or raises it."""

    @abstractmethod
    def end(self) -> None:
        """By any thread, while nothing is under way: has it end, so that ``wait`` returns."""


class Lending:
    """While it is entered, the caller waits for tasks of the engine, if there is one: see Engine.lend."""

    __slots__ = ("_blocking", "_engine", "_loan")

    def __init__(self, engine: Engine | None, *, blocking: bool = True) -> None:
        self._engine = engine
        self._blocking = blocking

    def __enter__(self) -> None:
        self._loan = None if self._engine is None else self._engine.lend(blocking=self._blocking)

    def __exit__(self, *_: object) -> None:
        if self._loan is not None and self._engine is not None:
            self._engine.take_back(self._loan)

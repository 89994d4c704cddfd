from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Final, Generic, Protocol, Self, TypeVar, final

from _typeshed import ReadableBuffer, StrOrBytesPath, WriteableBuffer, structseq

_T = TypeVar("_T")
_T_co = TypeVar("_T_co", covariant=True)

@final
class Cores(structseq[Any], tuple[int, int, float | None, int]):
    """How many processor cores there are, and how many of them this process can keep busy."""

    __match_args__: Final = ("online", "affinity", "quota", "usable")
    @property
    def online(self) -> int:
        """cores that the operating system has online"""
    @property
    def affinity(self) -> int:
        """cores that the calling thread may be scheduled on"""
    @property
    def quota(self) -> float | None:
        """the tightest CPU quota of the control groups, in cores; None when there is none"""
    @property
    def usable(self) -> int:
        """max(1, min(affinity, ceil(quota))): cores worth of work that can run at once"""

@final
class Usage(structseq[int], tuple[int, int, int, int, int]):
    """What the kernel has accounted to a thread or to processes since they began."""

    __match_args__: Final = ("user_ns", "system_ns", "ctx_voluntary", "ctx_involuntary", "max_rss_kb")
    @property
    def user_ns(self) -> int:
        """CPU time outside the kernel, in nanoseconds"""
    @property
    def system_ns(self) -> int:
        """CPU time inside the kernel, in nanoseconds"""
    @property
    def ctx_voluntary(self) -> int:
        """context switches because it had to wait"""
    @property
    def ctx_involuntary(self) -> int:
        """context switches because the core was taken away"""
    @property
    def max_rss_kb(self) -> int:
        """peak resident set in KiB: of the process for a thread, of the largest one for children"""

def clock_ns() -> int:
    """Nanoseconds of the system's monotonic clock.

    It has an unspecified start, never goes back, and counts alike in all threads, interpreters and processes
    of the machine (CLOCK_MONOTONIC).
    """

def timer_slack_ns() -> int:
    """How many nanoseconds late the kernel may let a timer of this thread be.

    0 where the system has no such thing, and for threads of a real-time policy.
    """

def set_timer_slack_ns(ns: int, /) -> bool:
    """From now on, for this thread and for those that it starts. ValueError: it is not from 1 to
    1,000,000,000. False: this system has no such thing.
    """

def copy(target: WriteableBuffer, at: int, source: ReadableBuffer, /) -> None:
    """Copies all bytes of a buffer into another one, from its byte `at` on, without the GIL where they are
    many.

    Raises ValueError if they do not fit, and BufferError or TypeError for what is no buffer of that kind.
    """

def kill_tree(pid: int, /) -> None:
    """Kills a process and its descendants: the children that there are, and theirs. A process whose parent
    had ended before is no descendant. Without /proc, or the kernel's lists of children in it, it kills the
    process alone.
    """

def end_with(fd: int, /) -> None:
    """Has the kernel end this process, whatever it does, when the other end of a pipe is closed, and kill its
    descendants first. It uses SIGIO. OSError if the descriptor is no pipe, or the system has no such thing.
    """

def cores() -> Cores:
    """Count the processor cores, with affinity and CPU quota taken into account.

    The affinity is the calling thread's own. Reads the control groups' files on every call, because affinity
    and quota can change while a process runs.
    """

def cpu_quota(root: StrOrBytesPath = "/", /) -> float | None:
    """The tightest CPU quota, in cores, of this process's control groups, or None.

    Looks at version 1 and version 2 groups, from the process's own up to the mount point. root is put before
    every path that is read, for looking at a copy of another machine's files.
    """

def thread_usage() -> Usage:
    """What the calling thread has used.

    Raises OSError (ENOTSUP) where the operating system keeps no accounts per thread.
    """

def process_usage() -> Usage:
    """What all threads of this process have used, those that have ended included."""

def children_usage() -> Usage:
    """What child processes have used that have ended and been waited for, and theirs."""

def policy_constants() -> dict[str, int]:
    """The scheduling policy's constants and their defaults, in the order of native/gil/policy/constants.h."""

def simulate(
    settings: dict[str, int],
    ops: bytes,
    groups: bytes,
    counters: bytes,
    semaphores: bytes,
    until_ns: int,
    /,
) -> tuple[int, dict[str, Any], bytes, list[tuple[Any, ...]], bytes]:
    """Run one simulation; fairlead.gil.simulate is its public interface.

    ops, groups, counters and semaphores are the arrays of native/gil/simulator/sim.h as bytes. Returns
    (status, totals, thread statistics, request statistics by group, events), the second and last in the
    layout of that file. Raises ValueError for a program that leads out of its arrays, MemoryError, and what a
    signal handler raises.
    """

# waiting
class _Future(Protocol):
    def done(self) -> bool: ...
    def set_result(self, value: None, /) -> object: ...
    def __await__(self) -> Generator[Any, Any, Any]: ...

class _Timer(Protocol):
    def cancel(self) -> object: ...

class _Clock(Protocol):
    def _adopt(self, limiter: RateLimiter) -> None: ...

@final
class Mailbox:
    """The way into one event loop, for tasks that wait.

    make_future() returns something to await once, with done() and set_result(value). running() says whether a
    task of the loop runs at this moment in this thread; then what it releases is seen to at once.
    call_later(seconds, function) calls that once, in the loop's thread, and returns what has a cancel();
    without it no task of the loop can wait for a rate limiter. shield(future) makes that no cancellation ends
    the future, for a loop that would cancel again and again. The loop polls fileno() for reading and then
    calls the mailbox, in its own thread. It closes by close(), or when it is not referred to any more: then
    every task of it that waits has left its queue, and what was granted to one that has not resumed is handed
    over. Closed or dropped in the loop's thread, it ends the waits of its tasks: they resume, and raise
    LoopClosedError. The loop should hold it for as long as it runs.
    """
    def __new__(
        cls,
        make_future: Callable[[], _Future],
        running: Callable[[], object] | None = None,
        call_later: Callable[[float, Callable[[], None]], _Timer] | None = None,
        shield: Callable[[Any], object] | None = None,
        /,
    ) -> Mailbox: ...
    def __call__(self) -> None: ...
    def fileno(self) -> int:
        """The descriptor that becomes readable when there is something to drain."""
    def close(self) -> None:
        """Ends every wait of this mailbox, in the loop's thread: its tasks resume, and raise
        LoopClosedError. What was granted to tasks that have not resumed is handed over. May be called
        twice.
        """

@final
class Operation(Generic[_T_co]):
    """One wait of one task: await it once."""
    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def __iter__(self) -> Generator[Any, Any, _T_co]: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any, /) -> Any:
        """As of a generator."""
    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        """As of a generator. Ends the wait: it leaves the queue, or gives back what it was granted."""
    def close(self) -> None:
        """As of a generator. Ends the wait as throw() does, without an exception."""
    def _recheck(self) -> None:
        """By a timer of its loop: it is time for its task to look."""

@final
class Selected(structseq[Any], tuple[Any, Any]):
    """The one that was taken."""

    __match_args__: Final = ("case", "value")
    @property
    def case(self) -> Any:
        """which of the cases: its name, or its number, from 0 on, if it was given by position"""
    @property
    def value(self) -> Any:
        """what awaiting it would have returned"""

@final
class Selection:
    """One wait of one task for one of several things: await it once."""
    def __await__(self) -> Generator[Any, Any, Selected]: ...
    def __iter__(self) -> Generator[Any, Any, Selected]: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any, /) -> Any:
        """As of a generator."""
    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        """As of a generator. Ends the wait: nothing is taken, or what was is final."""
    def close(self) -> None:
        """As of a generator. Ends the wait as throw() does, without an exception."""

def select(*cases: Operation[Any], timeout: float | None = None, **named: Operation[Any]) -> Selected | None:
    """Waits until one of several things can be had, and takes that one: a record of case and value. The case
    is its name, as in select(job=q.get_async(), stop=e.wait_async()), or its number if it has none.

    For threads; tasks await select_async(). A case is what acquire_async(), wait_async(), get_async(),
    put_async(item), receive_async() and their like return, not yet awaited. What is taken is as if it had
    been awaited, its exception too, as QueueShutDown; of the others nothing is taken, at any moment. Where
    several can be had, any of them is. None: the time, in seconds, was over first.
    """

def select_async(*cases: Operation[Any], **named: Operation[Any]) -> Selection:
    """As select(), in an awaitable. For tasks, with the time-outs of their library. A task that is
    cancelled has taken nothing.
    """

def use_mailboxes(finder: Callable[[], Mailbox], /) -> None:
    """Sets what is called in a task that must wait: it returns the Mailbox of the loop that runs here."""

def blocking_in_tasks(allowed: bool, /) -> bool:
    """Whether a call of a thread's form, as q.get() or lock.acquire(), may block in a task.

    It stops every task of the loop until another thread ends the wait, and for ever if a task was to end it.
    So where it would block it raises DeadlockError; with True it blocks, in every thread of this process.
    Returns what was said before. In a notebook, whose cells run in a task, it is always allowed.
    """

def handle(primitive: Any, /) -> int:
    """The number by which attach() finds this primitive in any interpreter of this process."""

def is_shared(primitive: Any, /) -> bool:
    """Whether this primitive is shared by interpreters, or is to be: in this thread something is pickled for
    one.
    """

def sharing(dumps: Callable[[Any], _T], thing: Any, /) -> _T:
    """Calls dumps(thing), which shares the primitives that it comes to."""

def attach(handle: int, lock: Any = None, /) -> Any:
    """An object of this interpreter for the primitive with this handle; of a Condition with its lock. Raises
    HandleGoneError when no interpreter has it any more.
    """

def process() -> tuple[int, int, int]:
    """Numbers that no other process has, nor one that this one was forked from."""

def in_main_interpreter() -> bool:
    """Whether this is the interpreter that the process began with."""

def send_exception(ident: int, kind: type[BaseException], /) -> bool:
    """Has the thread raise it at its next step in Python. False: there is no such thread."""

def recall_exception() -> bool:
    """Takes back what was sent to the calling thread and has not arrived. Whether there was anything; PyPy
    always says so.
    """

def dropped_hook(kind: type[BaseException], otherwise: Callable[[Any], object], /) -> Callable[[Any], object]:
    """A sys.unraisablehook: a thread that has dropped an exception of this kind, in a deallocator or a
    callback, raises it once more. All others are left to ``otherwise``.
    """

def keep_interpreter(interpreter: int, timeout: float, /) -> bool:
    """At the program's end: no thread runs Python in this interpreter any more, and CPython does not end it,
    which would crash when a thread comes back to it from a call into C. Without a GIL, the former does not
    hold. Waits so many seconds, -1 for as long as it takes, for the interpreter's GIL; False: it was not to
    be had within the time.
    """

def interpreter() -> int:
    """The number of this interpreter."""

def waits() -> list[tuple[Any, ...]]:
    """Every wait of this moment, as fairlead.sync.waits() wants it: (object or None, its type's name, its
    cell, the cell's owner or 0, the waiter, its thread or 0, interpreter, since, until or None, one of how
    many, future or None, stack or None).
    """

def thread_of(owner: int, /) -> int:
    """threading.get_ident() of the thread with this number, or whose task has it; 0: it has ended."""

def name_tasks(numbers: Callable[[], int], on: bool, /) -> None:
    """From now on (or, with False, once as often, no more) a task that takes a Lock leaves there what
    numbers() returns in it: a number below 2**24, 0 for none. Every call gives the same function.
    """

def task_serial() -> int:
    """A number for a task that no other task of this process gets, or 0 when there are no more."""

def task_ended(task: object, /) -> bool:
    """Whether this task or greenlet, as its library knows it, has ended; of anything else False."""

def current_task() -> object | None:
    """The task that runs in this thread at this moment, as its library knows it; None: no task does.

    Where gevent runs in this thread, the greenlet; None for the thread's first one.
    """

# primitives
@final
class LockStatistics(structseq[Any], tuple[bool, int, bool]):
    """A lock at one moment."""

    __match_args__: Final = ("locked", "waiting", "fair")
    @property
    def locked(self) -> bool:
        """whether it is held"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""
    @property
    def fair(self) -> bool:
        """whether all waiters are served in order"""

@final
class SemaphoreStatistics(structseq[Any], tuple[int, int, bool]):
    """A semaphore at one moment."""

    __match_args__: Final = ("value", "waiting", "fair")
    @property
    def value(self) -> int:
        """permits that are free"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""
    @property
    def fair(self) -> bool:
        """whether all waiters are served in order"""

@final
class CapacityLimiterStatistics(structseq[Any], tuple[int, float, int, bool]):
    """A limiter at one moment."""

    __match_args__: Final = ("borrowed", "total", "waiting", "fair")
    @property
    def borrowed(self) -> int:
        """tokens that are lent"""
    @property
    def total(self) -> float:
        """tokens that there are; math.inf for no limit"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""
    @property
    def fair(self) -> bool:
        """whether all waiters are served in order"""

@final
class EventStatistics(structseq[Any], tuple[bool, int]):
    """An event at one moment."""

    __match_args__: Final = ("is_set", "waiting")
    @property
    def is_set(self) -> bool:
        """whether the flag is set"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""

@final
class CombinerStatistics(structseq[Any], tuple[bool, int, int, int]):
    """A combiner at one moment."""

    __match_args__: Final = ("locked", "waiting", "combined", "batch")
    @property
    def locked(self) -> bool:
        """whether a function runs"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait for their turn"""
    @property
    def combined(self) -> int:
        """functions that a holder called for another thread or task"""
    @property
    def batch(self) -> int:
        """how many of them a holder calls at most"""

@final
class SimpleQueueStatistics(structseq[Any], tuple[int, int]):
    """A queue at one moment."""

    __match_args__: Final = ("size", "waiting")
    @property
    def size(self) -> int:
        """objects that no waiter has been promised"""
    @property
    def waiting(self) -> int:
        """threads and tasks that want one"""

@final
class QueueStatistics(structseq[Any], tuple[int, int, int, int, int, int, bool, bool]):
    """A queue at one moment."""

    __match_args__: Final = (
        "size",
        "maxsize",
        "getting",
        "putting",
        "joining",
        "unfinished",
        "is_shutdown",
        "fair",
    )
    @property
    def size(self) -> int:
        """objects that no waiter has been promised"""
    @property
    def maxsize(self) -> int:
        """how many there is room for; 0: any number"""
    @property
    def getting(self) -> int:
        """threads and tasks that want an object"""
    @property
    def putting(self) -> int:
        """threads and tasks that wait for room"""
    @property
    def joining(self) -> int:
        """threads and tasks that wait for the end of all work"""
    @property
    def unfinished(self) -> int:
        """objects for which there was no task_done() yet"""
    @property
    def is_shutdown(self) -> bool:
        """whether it has been shut down"""
    @property
    def fair(self) -> bool:
        """whether all waiters are served in order"""

@final
class Lock(AbstractAsyncContextManager[Any, None]):
    """A lock for threads and tasks alike: `with lock:` in a thread, `async with lock:` in a task.

    Any thread or task may release it. A newcomer may take a free lock before the waiters (barging) until the
    first has waited for half a millisecond; after that it is handed over in the order of waiting. With
    fair=True no newcomer ever passes. In a forked child it is free unless the thread that forked held it.

    When the thread that holds it ends, or that of the task that does, present and later waiters get a warning
    (OwnerDeathWarning); with on_owner_death='break' every call gets BrokenLockError from then on.
    """
    def __new__(cls, *, fair: bool = False, on_owner_death: str = "warn") -> Lock: ...
    @property
    def on_owner_death(self) -> str:
        """What is done when its holder ends: 'warn' or 'break'."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes the lock, waiting for it if need be; says whether it was taken. For threads; tasks await
        acquire_async().

        timeout is in seconds; None, and as in threading -1, is for ever. Signal handlers run while it waits;
        when one raises, the lock is not taken.
        """
    def release(self) -> None:
        """Gives the lock back. Any thread or task may, never waits, and a signal handler or a destructor
        may call it. Raises NotHeldError (a RuntimeError) when it is not locked.
        """
    def locked(self) -> bool:
        """Whether there was nothing to take, a moment ago."""
    def _holders(self) -> list[tuple[int, Any, bool]]:
        """The holders, a moment ago, as waits() wants it: a list of (owner, task or None, alone)."""
    def acquire_async(self) -> Operation[bool]:
        """An awaitable that takes the lock and returns True. For tasks, with the time-outs of their
        library. A task that is cancelled has taken nothing. What is free is taken without a switch to
        another task.
        """
    def statistics(self) -> LockStatistics:
        """A record of the moment: locked, waiting (threads and tasks), fair."""
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""

@final
class RLockStatistics(structseq[Any], tuple[bool, int, int, bool]):
    """An RLock at one moment."""

    __match_args__: Final = ("locked", "depth", "waiting", "fair")
    @property
    def locked(self) -> bool:
        """whether it is held"""
    @property
    def depth(self) -> int:
        """how often its holder holds it"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""
    @property
    def fair(self) -> bool:
        """whether all waiters are served in order"""

@final
class RLock(AbstractAsyncContextManager[Any, None]):
    """A lock that its holder may take again, and must release as often; a thread or a task is the holder.

    Within a task the task takes and releases it, by `with` as by `async with`; elsewhere the thread does.
    Only the holder may release it. Order and fairness as of a Lock. In a forked child it is free unless the
    thread that forked held it.
    """
    def __new__(cls, *, fair: bool = False) -> RLock: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes the lock, again if the caller holds it, waiting for it if need be; says whether it was taken.

        The caller is the task that runs in this thread, or the thread. timeout is in seconds; None, and as in
        threading -1, is for ever. Signal handlers run while it waits; when one raises, the lock is not taken.
        Raises DeadlockError when it would wait for ever for another task of this thread's loop.
        """
    def release(self) -> None:
        """Gives the lock back, once. Never waits. Raises NotHeldError (a RuntimeError) when the caller
        does not hold it.
        """
    def locked(self) -> bool:
        """Whether it was held, a moment ago."""
    def _holders(self) -> list[tuple[int, Any, bool]]:
        """The holders, a moment ago, as waits() wants it: a list of (owner, task or None, alone)."""
    def acquire_async(self) -> Operation[bool]:
        """An awaitable that takes the lock, again if the task holds it, and returns True. Await it in the
        task that is to hold the lock: what wraps it in a task of its own, as asyncio.gather, makes that
        the holder.
        """
    def statistics(self) -> RLockStatistics:
        """A record of the moment: locked, depth (how often its holder holds it), waiting (threads and
        tasks), fair.
        """
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""
    def _is_owned(self) -> bool:
        """Whether the caller holds it. For threading.Condition, as the three others with an underscore."""
    def _recursion_count(self) -> int:
        """How often the caller holds it."""
    def _release_save(self) -> tuple[int, object]:
        """Gives it back entirely, and returns how it was held."""
    def _acquire_restore(self, before: tuple[int, object], /) -> None:
        """Takes it as it was held before _release_save(), whatever signal handlers raise meanwhile."""

@final
class RateLimiterStatistics(structseq[Any], tuple[int, int, int]):
    """A rate limiter at one moment."""

    __match_args__: Final = ("available", "burst", "waiting")
    @property
    def available(self) -> int:
        """permits that could be taken at once, were there no waiters"""
    @property
    def burst(self) -> int:
        """how many may be taken at once"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""

@final
class RateLimiter(AbstractAsyncContextManager[bool, None]):
    """So many permits in so many seconds, for threads and tasks alike; they come by themselves, evenly.

    burst is how many may be taken at once after a pause, and at first. In t seconds, whichever, never more
    than burst + t * rate / per permits are given; the time from one to the next is rounded up to a whole
    nanosecond. Waiters are served in the order in which they began to wait, with no barging; a waiter for
    many is not starved by waiters for one. One that is cancelled, or times out, leaves the queue: those
    behind it are served sooner. Time is the system's monotonic clock, or for tests a ManualClock. In a forked
    child what was taken is taken, and there are no waiters.
    """
    def __new__(
        cls, rate: float, per: float = 1.0, *, burst: int = 1, clock: _Clock | None = None
    ) -> RateLimiter: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None, n: int = 1) -> bool:
        """Takes n permits at once, waiting for them if need be; says whether they were taken. For threads;
        tasks await acquire_async().

        timeout is in seconds, None for ever, a negative one over. Where it is known that the permits do not
        come within that time, False is returned at once, and no waiter behind was delayed. Signal handlers
        run while it waits; when one raises, nothing is taken. acquire(False) takes what is there if there is
        no waiter; it never waits, and a task, a signal handler or a destructor may call it.
        """
    def acquire_async(self, n: int = 1) -> Operation[bool]:
        """An awaitable that takes n permits and returns True. For tasks, with the time-outs of their
        library. A task that is cancelled gives its place back. What is there is taken without a switch to
        another task.
        """
    def delay(self, n: int = 1) -> float:
        """How many seconds a newcomer would wait for n permits, behind all waiters: 0.0 if they are there,
        and math.inf if it is too long to be represented. Takes nothing, and promises nothing.
        """
    def statistics(self) -> RateLimiterStatistics:
        """A record of the moment: available (permits that could be taken at once without waiters), burst,
        waiting (threads and tasks).
        """
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """Nothing: permits are not given back."""
    def __aenter__(self) -> Operation[bool]:
        """As acquire_async()."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """Nothing, in an awaitable that is done."""
    def _set(self, now: int, /) -> None:
        """By its clock: it is now that many nanoseconds, and stays so. Every waiter that is due is served."""
    def _next(self) -> int | None:
        """For its clock: at how many nanoseconds the first waiter is due; None: there is none."""

@final
class RWLockStatistics(structseq[Any], tuple[int, bool, bool, int]):
    """A readers-writer lock at one moment."""

    __match_args__: Final = ("readers", "upgradable", "writing", "waiting")
    @property
    def readers(self) -> int:
        """threads and tasks that read, without the upgradable one"""
    @property
    def upgradable(self) -> bool:
        """whether the upgradable view is held"""
    @property
    def writing(self) -> bool:
        """whether one writes"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""

@final
class RWLockView(AbstractAsyncContextManager[Any, None]):
    """One view of an RWLock: for reading, for reading with the right to write next, or for writing."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Acquires, again if the caller holds it, waiting if need be; returns whether it did. As
        RLock.acquire().

        The caller is the task that runs in this thread, or the thread. Raises DeadlockError for what could
        never be: a reader that asks to write, or a wait for ever for another task of this thread's loop.
        """
    def release(self) -> None:
        """Undoes one acquire() of this view by the caller. Never waits. Raises NotHeldError (a
        RuntimeError) if there was none.
        """
    def locked(self) -> bool:
        """Whether a newcomer could not have acquired this view, a moment ago."""
    def _holders(self) -> list[tuple[int, Any, bool]]:
        """The holders, a moment ago, as waits() wants it: a list of (owner, task or None, alone)."""
    def acquire_async(self) -> Operation[bool]:
        """As acquire(), in an awaitable that returns True. Await it in the task that is to be inside."""
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""

@final
class RWLock:
    """Many read, or one writes: `with lock.reading:`, `with lock.writing:`, and in tasks `async with`.

    Phases of reading and writing alternate while both are wanted: a reader waits for one writer at most, and
    no stream of readers starves a writer. A holder may acquire again, by any view that asks for no more than
    it has. The holder of `upgradable`, one at a time beside the readers, may acquire `writing`, with no other
    writer in between. In a forked child only the thread that forked holds it.
    """
    def __new__(cls) -> RWLock: ...
    @property
    def reading(self) -> RWLockView:
        """The view of readers."""
    @property
    def upgradable(self) -> RWLockView:
        """The view of a reader that may write next."""
    @property
    def writing(self) -> RWLockView:
        """The view of writers."""
    def downgrade(self) -> None:
        """Makes the caller, a writer or the upgradable holder, a reader, with no other writer in between.
        What it acquired by `writing` or `upgradable` is to be released by `reading`. Raises NotHeldError
        if it does neither.
        """
    def statistics(self) -> RWLockStatistics:
        """A record of the moment: readers (without the upgradable one), upgradable, writing, waiting
        (threads and tasks).
        """

@final
class CountdownStatistics(structseq[Any], tuple[int, int]):
    """A countdown at one moment."""

    __match_args__: Final = ("value", "waiting")
    @property
    def value(self) -> int:
        """what is still to come"""
    @property
    def waiting(self) -> int:
        """threads and tasks that wait"""

@final
class CountdownEvent:
    """Is set while nothing is still to come.

    All that wait when the count reaches zero are woken, even if it is counted up at once. In a forked child
    it counts what it counted at the fork, and there are no waiters.
    """
    def __new__(cls, value: int = 0) -> CountdownEvent: ...
    @property
    def value(self) -> int:
        """What is still to come."""
    def count_up(self, n: int = 1) -> None:
        """Says that n more are to come. Never waits, and a signal handler or a destructor may call it."""
    def count_down(self, n: int = 1) -> None:
        """Says that n of what is waited for have come. Never waits, and a signal handler or a destructor
        may call it. Raises TooManyReleasesError (a ValueError) when fewer than n are to come; then none is
        counted.
        """
    def is_set(self) -> bool:
        """Whether nothing is still to come."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; False: the time was over first. For threads; tasks await wait_async()."""
    def wait_async(self) -> Operation[bool]:
        """An awaitable that waits until it is set, and returns True. For tasks."""
    def statistics(self) -> CountdownStatistics:
        """A record of the moment: value (what is still to come), waiting (threads and tasks)."""

@final
class BarrierStatistics(structseq[Any], tuple[int, int, bool]):
    """A barrier at one moment."""

    __match_args__: Final = ("parties", "waiting", "broken")
    @property
    def parties(self) -> int:
        """how many must come"""
    @property
    def waiting(self) -> int:
        """threads and tasks that have come and wait"""
    @property
    def broken(self) -> bool:
        """whether it is broken"""

@final
class Barrier(AbstractAsyncContextManager[int, None]):
    """Lets threads and tasks through when so many parties have arrived, again and again.

    The last to arrive calls action before the others go on; when that raises, the barrier breaks. timeout, in
    seconds, is what wait() uses by default. A party that leaves before all have arrived, by a time-out, a
    cancellation or the end of a loop, breaks the barrier for all: they get BrokenBarrierError until reset().
    In a forked child no party has arrived.
    """
    def __new__(
        cls, parties: int, action: Callable[[], object] | None = None, timeout: float | None = None
    ) -> Barrier: ...
    @property
    def parties(self) -> int:
        """How many must come."""
    @property
    def n_waiting(self) -> int:
        """How many have come and wait."""
    @property
    def broken(self) -> bool:
        """Whether it is broken."""
    def wait(self, timeout: float | None = None) -> int:
        """Waits until all parties have come; returns the place among them, from 0 on, the last's being
        parties - 1. For threads; tasks await wait_async(). timeout is in seconds; None is the barrier's own.

        Raises BrokenBarrierError (a threading.BrokenBarrierError) when the barrier is broken or reset, as by
        this time-out or an exception of a signal handler, by which the barrier breaks for all.
        """
    def wait_async(self) -> Operation[int]:
        """As wait(), in an awaitable, without a time-out of its own. A task that is cancelled while it
        waits breaks the barrier.
        """
    def reset(self) -> None:
        """Makes the barrier as new. All that wait get BrokenBarrierError. Never waits itself."""
    def abort(self) -> None:
        """Breaks the barrier: all that wait, and later callers until reset(), get BrokenBarrierError.
        Never waits itself.
        """
    def statistics(self) -> BarrierStatistics:
        """A record of the moment: parties, waiting (threads and tasks), broken."""
    def __aenter__(self) -> Operation[int]:
        """As wait_async()."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """Nothing, in an awaitable that is done."""

@final
class Waiter(Generic[_T]):
    """One wait of one thread, task or greenlet, used once.

    grant and cancel never wait, and may be called from any thread, a signal handler or a destructor. The
    first of them that is called wins, and says True; the others change nothing and say False.
    """
    def __new__(cls) -> Waiter[_T]: ...
    def __class_getitem__(cls, item: Any, /) -> Any: ...
    @property
    def value(self) -> _T | None:
        """What was granted; None before, and after cancel()."""
    def grant(self, value: _T | None = None) -> bool:
        """Ends the wait with a value. False: it had been granted or cancelled before, and nothing changes."""
    def cancel(self) -> bool:
        """Gives up, for the side that waits. False: it was granted, and what it got is to be handed over."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is granted; False: the time was over first. For threads and greenlets.

        After False, or an exception of a signal handler, call cancel() next.
        """
    def wait_async(self) -> Operation[bool]:
        """An awaitable that waits until it is granted. For tasks; one that is cancelled calls cancel()."""

@final
class ConditionStatistics(structseq[Any], tuple[int, LockStatistics | RLockStatistics]):
    """A condition at one moment."""

    __match_args__: Final = ("waiting", "lock")
    @property
    def waiting(self) -> int:
        """threads and tasks that wait to be notified"""
    @property
    def lock(self) -> LockStatistics | RLockStatistics:
        """the statistics of its lock"""

@final
class Condition(AbstractAsyncContextManager[Any, None]):
    """As threading.Condition, and with wait_async() and `async with` as asyncio.Condition.

    Waiters are notified, and get the lock again, in the order in which they began to wait: a notified waiter
    waits in the lock's queue, and one that finds that another came first keeps its seniority when it waits
    again. When wait() or wait_async() ends, in whatever way, the lock is held again, as often as before. A
    wait that ends with an exception takes no notification along: if it had been notified, the next waiter is.
    No spurious wake-ups; but another may have had the lock meanwhile, so re-check the predicate, or use
    wait_for().

    lock is a Lock or an RLock; without one it is an RLock of its own, and fair is as of an RLock.
    """
    def __new__(cls, lock: Lock | RLock | None = None, *, fair: bool = False) -> Condition: ...
    @property
    def _lock(self) -> Lock | RLock: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """As of the lock."""
    def acquire_async(self) -> Operation[bool]:
        """As of the lock."""
    def release(self) -> None:
        """As of the lock."""
    def locked(self) -> bool:
        """As of the lock."""
    def __enter__(self) -> bool:
        """As of the lock."""
    def __exit__(self, *exc_info: object) -> None:
        """As of the lock."""
    def __aenter__(self) -> Operation[Any]:
        """As of the lock."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As of the lock."""
    def wait(self, timeout: float | None = None) -> bool:
        """Lets go of the lock, waits until it is notified, and takes the lock again.

        For threads. False: it was not notified within the time, which does not count the wait for the lock.
        NotHeldError (a RuntimeError) when the lock is not held, DeadlockError in a task.
        """
    def wait_for(self, predicate: Callable[[], _T], timeout: float | None = None) -> _T:
        """Waits until the predicate is true, which is called with the lock held; returns its last value."""
    def wait_async(self) -> Notice[bool]:
        """As wait(), for tasks, with the time-outs of their library: the lock is held when it ends, in
        whatever way. Only a coroutine that is closed leaves without the lock, and releases nothing as it
        leaves the blocks around.
        """
    def wait_for_async(self, predicate: Callable[[], _T], /) -> Notice[_T]:
        """As wait_for(), for tasks."""
    def notify(self, n: int = 1) -> None:
        """Wakes the first n that wait. The lock must be held, or it raises NotHeldError."""
    def notify_all(self) -> None:
        """Wakes all that wait. The lock must be held, or it raises NotHeldError."""
    def statistics(self) -> ConditionStatistics:
        """A record of the moment: waiting (threads and tasks not yet notified), and its lock's."""

@final
class Notice(Generic[_T_co]):
    """One wait of one task for a Condition: await it once."""
    def __await__(self) -> Generator[Any, Any, _T_co]: ...
    def __iter__(self) -> Generator[Any, Any, _T_co]: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any, /) -> Any:
        """As of a generator."""
    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None, /) -> Any:
        """As of a generator. What is thrown is raised once the lock is there."""
    def close(self) -> None:
        """As of a generator. Ends the wait without the lock."""

@final
class Semaphore(AbstractAsyncContextManager[Any, None]):
    """Permits for threads and tasks alike, any number at a time.

    Order and fairness as of a Lock. A waiter for many is not starved by waiters for one. In a forked child
    the permits that were free are free, those that other threads had are lost.
    """
    def __new__(cls, value: int = 1, *, fair: bool = False) -> Semaphore: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None, n: int = 1) -> bool:
        """Takes n permits at once, waiting for them if need be; says whether they were taken. For threads;
        tasks await acquire_async().

        timeout is in seconds, None for ever; a negative one is over. Signal handlers run while it waits;
        when one raises, nothing is taken.
        """
    def release(self, n: int = 1) -> None:
        """Gives n permits. Never waits, and a signal handler or a destructor may call it. Raises
        TooManyReleasesError (a ValueError) when there would be more than a BoundedSemaphore began with;
        then none is given.
        """
    def locked(self) -> bool:
        """Whether there was nothing to take, a moment ago."""
    def acquire_async(self, n: int = 1) -> Operation[bool]:
        """An awaitable that takes n permits and returns True. For tasks, with the time-outs of their
        library. A task that is cancelled has taken nothing. What is free is taken without a switch to
        another task.
        """
    def statistics(self) -> SemaphoreStatistics:
        """A record of the moment: value (permits that are free), waiting (threads and tasks), fair."""
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""

@final
class BoundedSemaphore(AbstractAsyncContextManager[Any, None]):
    """A Semaphore that never has more permits than it began with."""
    def __new__(cls, value: int = 1, *, fair: bool = False) -> BoundedSemaphore: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None, n: int = 1) -> bool:
        """Takes n permits at once, waiting for them if need be; says whether they were taken. For threads;
        tasks await acquire_async().

        timeout is in seconds, None for ever; a negative one is over. Signal handlers run while it waits;
        when one raises, nothing is taken.
        """
    def release(self, n: int = 1) -> None:
        """Gives n permits. Never waits, and a signal handler or a destructor may call it. Raises
        TooManyReleasesError (a ValueError) when there would be more than a BoundedSemaphore began with;
        then none is given.
        """
    def locked(self) -> bool:
        """Whether there was nothing to take, a moment ago."""
    def acquire_async(self, n: int = 1) -> Operation[bool]:
        """An awaitable that takes n permits and returns True. For tasks, with the time-outs of their
        library. A task that is cancelled has taken nothing. What is free is taken without a switch to
        another task.
        """
    def statistics(self) -> SemaphoreStatistics:
        """A record of the moment: value (permits that are free), waiting (threads and tasks), fair."""
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""

@final
class CapacityLimiter(AbstractAsyncContextManager[Any, None]):
    """So many at a time: as anyio's and trio's, for threads and tasks alike.

    A token belongs to its borrower: the task that runs, or the thread, or any hashable object by the methods
    with ``on_behalf_of``. Each has at most one: a second, and a release by one that has none, are refused.
    Order, fairness, cancellation and signals are those of a Semaphore. ``total_tokens`` may be changed at any
    time: what is taken away is missing at once, and where all are lent as they come back.

    Raises:
        TypeError: total_tokens that are no whole number, and not math.inf.
        ValueError: fewer than none, or more than 2**31 - 1.
    """
    def __new__(cls, total_tokens: float, *, fair: bool = False) -> CapacityLimiter: ...
    @property
    def total_tokens(self) -> float:
        """How many there are: a whole number, or ``math.inf``."""
    @total_tokens.setter
    def total_tokens(self, value: float) -> None: ...
    @property
    def borrowed_tokens(self) -> int:
        """How many are lent, those too that a waiter was granted and has not come for."""
    @property
    def available_tokens(self) -> float:
        """How many are not; below nothing while more are lent than there are now."""
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Borrows a token for the caller; says whether it did. As Lock.acquire. For threads; tasks await
        acquire_async().

        Raises AlreadyHeldError (a RuntimeError) if the caller has one, also where it got that one while it
        waited; and DeadlockError in a task that would wait.
        """
    def acquire_on_behalf_of(
        self, borrower: object, /, blocking: bool = True, timeout: float | None = None
    ) -> bool:
        """As acquire(), for an object, whose token any thread or task may return."""
    def acquire_async(self) -> Operation[bool]:
        """As acquire(), in an awaitable, for the caller of this method. A task that is cancelled has borrowed
        nothing.
        """
    def acquire_on_behalf_of_async(self, borrower: object, /) -> Operation[bool]:
        """As acquire_on_behalf_of(), in an awaitable."""
    def release(self) -> None:
        """Gives the caller's token back. Raises NotHeldError (a RuntimeError) if it has none."""
    def release_on_behalf_of(self, borrower: object, /) -> None:
        """Gives the token of this borrower back. Raises NotHeldError (a RuntimeError) if it has none."""
    def statistics(self) -> CapacityLimiterStatistics:
        """A record of the moment: borrowed, total, waiting, fair."""
    def __enter__(self) -> bool:
        """As acquire()."""
    def __exit__(self, *exc_info: object) -> None:
        """As release()."""
    def __aenter__(self) -> Operation[Any]:
        """As acquire_async(), but what is free is taken by the call, which `async with` awaits at once."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As release(), in an awaitable that is done."""

@final
class Event:
    """A flag that threads and tasks wait for.

    As threading.Event, and with wait_async() as asyncio.Event. In a forked child it is as it was at the fork,
    without waiters.
    """
    def __new__(cls) -> Event: ...
    def is_set(self) -> bool:
        """Whether the flag is set."""
    def set(self) -> None:
        """Sets the flag and wakes all that wait at this moment, even if it is cleared at once. Never
        waits, and a signal handler or a destructor may call it. Of more than eight threads it wakes two,
        and each of them two more before it goes on.
        """
    def clear(self) -> None:
        """Clears the flag."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; False: the time was over first. For threads; tasks await wait_async()."""
    def wait_async(self) -> Operation[bool]:
        """An awaitable that waits until it is set, and returns True. For tasks."""
    def statistics(self) -> EventStatistics:
        """A record of the moment: is_set, waiting (threads and tasks)."""

@final
class BroadcastRing(Generic[_T]):
    """The last objects that were sent, and any number of readers. With latest=True a reader gets the
    newest.
    """
    def __new__(cls, capacity: int, *, latest: bool = False) -> BroadcastRing[_T]: ...
    def put(self, item: _T, /) -> None:
        """Sends an object to every reader. Never waits. Raises ChannelClosedError."""
    def is_closed(self) -> bool:
        """Whether it was closed, a moment ago."""
    def waiting(self) -> int:
        """How many wait for what is sent next."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """BroadcastRing[int] is a BroadcastRing, for annotations."""

@final
class Rendezvous(Generic[_T]):
    """What a channel without room is made of: a sender waits for a receiver."""
    def __new__(cls) -> Rendezvous[_T]: ...
    def statistics(self) -> tuple[int, int, int, bool]:
        """Of the moment: objects that cancelled tasks have returned, waiting senders, waiting receivers,
        and whether it is shut down.
        """
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """Rendezvous[int] is a Rendezvous, for annotations."""

class ChannelEnd(AbstractAsyncContextManager[Any, None]):
    """An end of a channel: open until it is closed, left by `with` or `async with`, or collected."""
    @property
    def _line(self) -> Any: ...
    @property
    def _open(self) -> bool: ...
    def close(self) -> None:
        """Closes this end: the waiters in it get EndClosedError, as all later calls. Never waits; closing
        twice is closing once, and a signal handler or a destructor may call it.
        """
    def aclose(self) -> Operation[None]:
        """As close(), in an awaitable that is done."""
    def __enter__(self) -> Self:
        """This end."""
    def __exit__(self, *exc_info: object) -> None:
        """As close()."""
    def __aenter__(self) -> Operation[Self]:
        """This end, in an awaitable that is done."""
    def __aexit__(self, *exc_info: object) -> Operation[None]:
        """As aclose()."""

class SendingEnd(ChannelEnd):
    """A sending end of a channel."""
    def __new__(cls, line: tuple[Any, CountdownEvent, CountdownEvent], /) -> Self: ...
    def send(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Sends, waiting for room. For threads. QueueFull (a queue.Full) if there is none, ChannelClosedError
        if every receiver is closed, EndClosedError if this end is; then nothing was sent. Where the capacity
        is 0 it waits until the object is received.
        """
    def send_nowait(self, item: Any, /) -> None:
        """As send(item, False)."""
    def send_async(self, item: Any, /) -> Operation[None]:
        """As send(item), in an awaitable."""
    def wait_closed(self, timeout: float | None = None) -> bool:
        """Waits until every receiver is closed; False: the time was over first. For threads."""
    def wait_closed_async(self) -> Operation[bool]:
        """As wait_closed(), for tasks."""

class ReceivingEnd(ChannelEnd):
    """A receiving end of a channel; of a broadcast, of what is sent from now on, or as another end of
    it.
    """
    def __new__(
        cls, line: tuple[Any, CountdownEvent, CountdownEvent], like: ReceivingEnd = ..., /
    ) -> Self: ...
    def receive(self, block: bool = True, timeout: float | None = None) -> Any:
        """The next object, waiting for one. For threads. QueueEmpty (a queue.Empty) if there is none,
        ChannelClosedError if none can come any more, EndClosedError if this end is closed.
        """
    def receive_nowait(self) -> Any:
        """As receive(False)."""
    def receive_async(self) -> Operation[Any]:
        """As receive(), in an awaitable. A task that is cancelled has received nothing."""
    def _latest(self) -> Any:
        """Of a broadcast: the newest object, seen or not. ChannelClosedError if nothing was ever sent."""
    def _pending(self) -> int:
        """Of a broadcast: how many were sent that it has neither received nor reported as missed."""

@final
class Combiner:
    """Runs functions one at a time: the thread whose function runs also runs those that other threads and
    tasks have asked for meanwhile.

    So n that wait need no n switches of threads. Functions are called in the order in which they were asked
    for, one at a time, each once. A holder calls at most `batch` of others' and then hands its turn over. The
    main thread, where signal handlers run, calls its own only. In a forked child it is free unless the thread
    that forked was running a function of it.
    """
    def __new__(cls, *, batch: int = 1024) -> Combiner: ...
    def run(self, function: Callable[[], _T], /) -> _T:
        """Calls the function while no other function of this combiner runs, and returns what it returns or
        raises what it raises. Waits for its turn. For threads; tasks await run_async().

        The function may be called in another thread: in that of the holder when its turn comes. It is
        called once, or never if a signal handler raises while its turn has not come. Raises DeadlockError
        inside a function that this combiner is running.
        """
    def run_async(self, function: Callable[[], _T], /) -> Operation[_T]:
        """An awaitable that does what run() does. For tasks; the function is no coroutine function, and no
        other task of the loop in whose thread it runs runs meanwhile. Where no function runs it is called at
        once, without a switch to another task.

        A task that is cancelled before its turn has come has run nothing; one that is cancelled later never
        learns what the function returned or raised.
        """
    def locked(self) -> bool:
        """Whether a function was running, a moment ago."""
    def statistics(self) -> CombinerStatistics:
        """A record of the moment: locked, waiting (threads and tasks), combined (functions that a
        holder has called for another thread or task), batch.
        """

@final
class SimpleQueue(Generic[_T]):
    """An unbounded first-in first-out queue of objects between threads and tasks, as queue.SimpleQueue.

    In a forked child it has the objects that it had, and no waiters.
    """
    def __new__(cls) -> SimpleQueue[_T]: ...
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object at the end. Never waits, so block and timeout mean nothing; a signal handler or a
        destructor may call it.
        """
    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Takes the first object, waiting for one if need be. For threads; tasks await get_async(). Raises
        QueueEmpty (a queue.Empty) when there is none and the call does not block, or within the time.
        """
    def put_nowait(self, item: _T) -> None:
        """As put(item)."""
    def get_nowait(self) -> _T:
        """As get(False)."""
    def put_async(self, item: _T) -> Operation[None]:
        """As put(item), in an awaitable that is done: the object is in the queue when the call returns."""
    def get_async(self) -> Operation[_T]:
        """An awaitable that takes the first object and returns it. For tasks. A task that is cancelled has
        taken nothing, and the order of the objects stays.
        """
    def qsize(self) -> int:
        """How many objects there were to get, a moment ago."""
    def empty(self) -> bool:
        """Whether there was nothing to get, a moment ago."""
    def statistics(self) -> SimpleQueueStatistics:
        """A record of the moment: size, waiting (threads and tasks that want an object)."""
    def __sizeof__(self) -> int:
        """The memory of the queue in bytes, without the objects in it."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """SimpleQueue[int] is a SimpleQueue, for annotations."""

@final
class Queue(Generic[_T]):
    """A first-in first-out queue of objects between threads and tasks, as queue.Queue and asyncio.Queue.

    With a maxsize above 0 there is room for so many objects, and a put waits for room. In a forked child it
    has the objects that it had, and no waiters.
    """

    maxsize: int
    def __new__(cls, maxsize: int = 0, *, fair: bool = False) -> Queue[_T]: ...
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in, waiting for room if need be. For threads; tasks await put_async(). Raises
        QueueFull (a queue.Full) when there is no room and the call does not block, or within the time, and
        QueueShutDown.
        """
    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Takes the next object out, waiting for one if need be. For threads; tasks await get_async().
        Raises QueueEmpty (a queue.Empty) when there is none and the call does not block, or within the
        time, and QueueShutDown when there is none and the queue has been shut down.
        """
    def peek(self, block: bool = True, timeout: float | None = None) -> _T:
        """What get() would return, which stays in the queue. Waits and raises as get() does."""
    def put_nowait(self, item: _T) -> None:
        """As put(item, False). A signal handler or a destructor may call it."""
    def get_nowait(self) -> _T:
        """As get(False)."""
    def peek_nowait(self) -> _T:
        """As peek(False)."""
    def put_async(self, item: _T) -> Operation[None]:
        """An awaitable that puts an object in, once there is room for it. For tasks. A task that is
        cancelled has put nothing.
        """
    def get_async(self) -> Operation[_T]:
        """An awaitable that takes the next object out and returns it. For tasks. A task that is cancelled
        has taken nothing, and the order of the objects stays.
        """
    def peek_async(self) -> Operation[_T]:
        """An awaitable that returns what get_async() would, and leaves it in the queue. For tasks."""
    def task_done(self) -> None:
        """Says that the work on one object that was got is done. Raises ValueError when it is said more
        often than objects were put.
        """
    def join(self, timeout: float | None = None) -> bool:
        """Waits until task_done() was called for every object that was put; False: the time was over
        first. For threads; tasks await join_async().
        """
    def join_async(self) -> Operation[None]:
        """An awaitable that waits until task_done() was called for every object that was put. For tasks."""
    def shutdown(self, immediate: bool = False) -> None:
        """From now on nothing can be put, and once what is in the queue was got, nothing can be got:
        QueueShutDown is raised, and in all that wait. immediate=True throws away what is in the queue, and
        counts it as done.
        """
    def resize(self, maxsize: int, /) -> None:
        """Changes how many objects there is room for; 0 and less: any number. What is in the queue stays,
        and waiters for room get what there is now.
        """
    def qsize(self) -> int:
        """How many objects there were to get, a moment ago."""
    def empty(self) -> bool:
        """Whether there was nothing to get, a moment ago."""
    def full(self) -> bool:
        """Whether there was no room, a moment ago."""
    def statistics(self) -> QueueStatistics:
        """A record of the moment: size, maxsize, getting, putting and joining (threads and tasks that
        wait), unfinished (objects without a task_done()), is_shutdown, fair.
        """
    @property
    def unfinished_tasks(self) -> int:
        """Objects for which there was no task_done() yet."""
    @property
    def is_shutdown(self) -> bool:
        """Whether it has been shut down."""
    def __sizeof__(self) -> int:
        """The memory of the queue in bytes, without the objects in it."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """Queue[int] is a Queue, for annotations."""

@final
class LifoQueue(Generic[_T]):
    """A Queue from which the object that was put last is got first."""

    maxsize: int
    def __new__(cls, maxsize: int = 0, *, fair: bool = False) -> LifoQueue[_T]: ...
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in, waiting for room if need be. For threads; tasks await put_async(). Raises
        QueueFull (a queue.Full) when there is no room and the call does not block, or within the time, and
        QueueShutDown.
        """
    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Takes the next object out, waiting for one if need be. For threads; tasks await get_async().
        Raises QueueEmpty (a queue.Empty) when there is none and the call does not block, or within the
        time, and QueueShutDown when there is none and the queue has been shut down.
        """
    def peek(self, block: bool = True, timeout: float | None = None) -> _T:
        """What get() would return, which stays in the queue. Waits and raises as get() does."""
    def put_nowait(self, item: _T) -> None:
        """As put(item, False). A signal handler or a destructor may call it."""
    def get_nowait(self) -> _T:
        """As get(False)."""
    def peek_nowait(self) -> _T:
        """As peek(False)."""
    def put_async(self, item: _T) -> Operation[None]:
        """An awaitable that puts an object in, once there is room for it. For tasks. A task that is
        cancelled has put nothing.
        """
    def get_async(self) -> Operation[_T]:
        """An awaitable that takes the next object out and returns it. For tasks. A task that is cancelled
        has taken nothing, and the order of the objects stays.
        """
    def peek_async(self) -> Operation[_T]:
        """An awaitable that returns what get_async() would, and leaves it in the queue. For tasks."""
    def task_done(self) -> None:
        """Says that the work on one object that was got is done. Raises ValueError when it is said more
        often than objects were put.
        """
    def join(self, timeout: float | None = None) -> bool:
        """Waits until task_done() was called for every object that was put; False: the time was over
        first. For threads; tasks await join_async().
        """
    def join_async(self) -> Operation[None]:
        """An awaitable that waits until task_done() was called for every object that was put. For tasks."""
    def shutdown(self, immediate: bool = False) -> None:
        """From now on nothing can be put, and once what is in the queue was got, nothing can be got:
        QueueShutDown is raised, and in all that wait. immediate=True throws away what is in the queue, and
        counts it as done.
        """
    def resize(self, maxsize: int, /) -> None:
        """Changes how many objects there is room for; 0 and less: any number. What is in the queue stays,
        and waiters for room get what there is now.
        """
    def qsize(self) -> int:
        """How many objects there were to get, a moment ago."""
    def empty(self) -> bool:
        """Whether there was nothing to get, a moment ago."""
    def full(self) -> bool:
        """Whether there was no room, a moment ago."""
    def statistics(self) -> QueueStatistics:
        """A record of the moment: size, maxsize, getting, putting and joining (threads and tasks that
        wait), unfinished (objects without a task_done()), is_shutdown, fair.
        """
    @property
    def unfinished_tasks(self) -> int:
        """Objects for which there was no task_done() yet."""
    @property
    def is_shutdown(self) -> bool:
        """Whether it has been shut down."""
    def __sizeof__(self) -> int:
        """The memory of the queue in bytes, without the objects in it."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """Queue[int] is a Queue, for annotations."""

@final
class PriorityQueue(Generic[_T]):
    """A Queue from which the smallest object is got first. Among equal ones the order is that of heapq.

    Comparisons may be written in Python, raise (then nothing was put, or got), and use the queue.
    """

    maxsize: int
    def __new__(cls, maxsize: int = 0, *, fair: bool = False) -> PriorityQueue[_T]: ...
    def put(self, item: _T, block: bool = True, timeout: float | None = None) -> None:
        """Puts an object in, waiting for room if need be. For threads; tasks await put_async(). Raises
        QueueFull (a queue.Full) when there is no room and the call does not block, or within the time, and
        QueueShutDown.
        """
    def get(self, block: bool = True, timeout: float | None = None) -> _T:
        """Takes the next object out, waiting for one if need be. For threads; tasks await get_async().
        Raises QueueEmpty (a queue.Empty) when there is none and the call does not block, or within the
        time, and QueueShutDown when there is none and the queue has been shut down.
        """
    def peek(self, block: bool = True, timeout: float | None = None) -> _T:
        """What get() would return, which stays in the queue. Waits and raises as get() does."""
    def put_nowait(self, item: _T) -> None:
        """As put(item, False). A signal handler or a destructor may call it."""
    def get_nowait(self) -> _T:
        """As get(False)."""
    def peek_nowait(self) -> _T:
        """As peek(False)."""
    def put_async(self, item: _T) -> Operation[None]:
        """An awaitable that puts an object in, once there is room for it. For tasks. A task that is
        cancelled has put nothing.
        """
    def get_async(self) -> Operation[_T]:
        """An awaitable that takes the next object out and returns it. For tasks. A task that is cancelled
        has taken nothing, and the order of the objects stays.
        """
    def peek_async(self) -> Operation[_T]:
        """An awaitable that returns what get_async() would, and leaves it in the queue. For tasks."""
    def task_done(self) -> None:
        """Says that the work on one object that was got is done. Raises ValueError when it is said more
        often than objects were put.
        """
    def join(self, timeout: float | None = None) -> bool:
        """Waits until task_done() was called for every object that was put; False: the time was over
        first. For threads; tasks await join_async().
        """
    def join_async(self) -> Operation[None]:
        """An awaitable that waits until task_done() was called for every object that was put. For tasks."""
    def shutdown(self, immediate: bool = False) -> None:
        """From now on nothing can be put, and once what is in the queue was got, nothing can be got:
        QueueShutDown is raised, and in all that wait. immediate=True throws away what is in the queue, and
        counts it as done.
        """
    def resize(self, maxsize: int, /) -> None:
        """Changes how many objects there is room for; 0 and less: any number. What is in the queue stays,
        and waiters for room get what there is now.
        """
    def qsize(self) -> int:
        """How many objects there were to get, a moment ago."""
    def empty(self) -> bool:
        """Whether there was nothing to get, a moment ago."""
    def full(self) -> bool:
        """Whether there was no room, a moment ago."""
    def statistics(self) -> QueueStatistics:
        """A record of the moment: size, maxsize, getting, putting and joining (threads and tasks that
        wait), unfinished (objects without a task_done()), is_shutdown, fair.
        """
    @property
    def unfinished_tasks(self) -> int:
        """Objects for which there was no task_done() yet."""
    @property
    def is_shutdown(self) -> bool:
        """Whether it has been shut down."""
    def __sizeof__(self) -> int:
        """The memory of the queue in bytes, without the objects in it."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> Any:
        """Queue[int] is a Queue, for annotations."""

# calls for workers in other interpreters
@final
class Job: ...

@final
class JobQueue:
    """Calls for workers in other interpreters, and their replies."""
    def __new__(cls) -> JobQueue: ...
    @property
    def number(self) -> int:
        """By which a WorkerSlot finds it, in any interpreter of this process."""
    def job(self, call: object, announce: bool, /) -> Job:
        """Packs a call that is to be posted. `announce`: the reader learns when it begins."""
    def post(self, job: Job, owner: Any, again: bool, /) -> int | None:
        """Posts a job, once, and returns how many are outstanding with it. None: the job was taken back, or
        the queue is closed and the call has not been posted before, as `again` says.
        """
    def completions(self, /) -> list[tuple[Any, int, Any]]:
        """Waits for messages of the workers, and returns them: (owner, kind, value) each."""
    def help(self, job: Job, timeout: float | None = None, /) -> tuple[Any, int, Any] | None:
        """Waits for the job's reply, and returns (owner, kind, value). None: another waiter has it, or it
        did not come within the time.
        """
    def take_back(self, job: Job, /) -> int:
        """Ends a job without a reply. 0: it had not begun; a worker's number: it ran there; -1: too late."""
    def is_running(self, job: Job, /) -> bool:
        """Whether a worker has it, a moment ago."""
    def clear(self, /) -> list[Any]:
        """Takes back all jobs that have not begun, and returns their owners."""
    def seize(self, /) -> list[tuple[Any, int]]:
        """Takes back all jobs that run: (owner, worker) each."""
    def close(self, /) -> None:
        """No more calls but those that are posted again; workers end when none is left."""
    def wake_reader(self, /) -> None:
        """Has the next completions() return, also without any."""
    def is_idle(self, /) -> bool:
        """Whether no job is queued, and no message of a worker waits for completions()."""
    def leave(self, worker: int, /) -> Any:
        """After a worker's last step, and before its interpreter is ended. The owner of the job that it
        had not replied to, or None.
        """
    def interrupt(self, worker: int, /) -> bool:
        """Raises Stopped in a worker, at its next step in Python. Waits until its interpreter can be
        entered, which a call into C may delay. False: the worker has left.
        """
    def statistics(self, /) -> tuple[int, int, int, int, int, int, int]:
        """(queued, running, done, nanoseconds queued, nanoseconds run, bytes out, bytes in)"""

@final
class Counted(Iterator[_T]):
    """Iterates over the items, and writes the number of the last that it has given, from 1, into the first
    eight bytes of the memory. For one thread.
    """
    def __new__(cls, items: Iterable[_T], memory: WriteableBuffer) -> Counted[_T]: ...
    @property
    def number(self) -> int:
        """How many items it has given."""
    @property
    def stop(self) -> int:
        """Behind how many it pauses; iterating goes on once this is more. First: behind the last."""
    @stop.setter
    def stop(self, number: int) -> None: ...
    def __iter__(self) -> Counted[_T]: ...
    def __next__(self) -> _T: ...

class Taker(Iterator[Any]):
    """Gives what is in its subclass's deque, of which each is gone then. Calls the subclass's next() where
    there is none, and its _raise() with one that is of the class of failures. Any thread.
    """
    @property
    def _outcomes(self) -> deque[Any]:
        """What is given next."""
    @_outcomes.setter
    def _outcomes(self, outcomes: deque[Any]) -> None: ...
    @property
    def _failure(self) -> type:
        """The class of failures."""
    @_failure.setter
    def _failure(self, failure: type) -> None: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> Any: ...

class WorkerSlot:
    """A worker's slot of the JobQueue with this number; for the thread that makes it. JobQueue.leave() ends
    it.
    """
    def __new__(cls, job_queue: int, worker: int) -> WorkerSlot: ...
    def take(self, timeout: float | None = None, /) -> Any:
        """Waits for a call and returns it. Raises what is wrong with a call that cannot be read, which is to
        be replied to all the same. None: there will be no more, or none has come within the time.
        """
    def reply(self, kind: int, value: object, /) -> bool:
        """Replies to the call that was taken. False: no caller wants the reply, and this worker is to end."""
    def notify(self, kind: int, value: object, /) -> None:
        """Sends a message that is no reply."""

def message(value: object, /) -> bytes:
    """A value as bytes that from_message() makes an equal one of, in any interpreter of this process."""

def from_message(message: bytes, /) -> Any:
    """The value of which message() has made these bytes. Raises SerializationError if it has not."""

# shared memory
class Segment:
    """A segment of memory that processes share, mapped into this one. Made by fairlead.sync.shared."""
    @property
    def _amount(self) -> int: ...
    @property
    def _flags(self) -> int: ...
    def _ask(self, which: int, /) -> int:
        """Announces that a task is about to wait for this eventcount, and returns what _arm() is to be
        given. The caller tries once more in between: what it waits for may have happened.
        """
    def _arm(self, which: int, seen: int, bell: Semaphore, /) -> None:
        """Has one permit given to the semaphore, which must always be the same one, when another attempt
        may succeed. One wait at a time for each eventcount. The first call starts a thread, which runs no
        Python.
        """
    def _disarm(self, which: int, /) -> None:
        """The task no longer waits for this eventcount."""

class SharedLock(Segment):
    """The base of fairlead.sync.shared.Lock."""
    def __new__(cls, fd: int, token: bytes | None, make: bool, amount: int, flags: int) -> Self: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes the lock for this process, waiting for it if need be; says whether it was taken. For threads;
        tasks await acquire_async().

        Raises OwnerDiedError, and takes nothing, while the process that held it is dead and no process has
        recovered it; with take_over=True it takes it then. timeout is in seconds; None, and as in threading
        -1, is for ever. Signal handlers run while it waits; when one raises, the lock is not taken.
        """
    def recover(self, timeout: float | None = None) -> bool:
        """Takes the lock, also from an owner that died. True: its owner had died, and the caller must
        repair what the lock protects; False: another process has done so, and the lock is held as after
        acquire(). Raises TimeoutError when the time is over first. Releasing the lock declares the repair
        done.
        """
    def release(self) -> None:
        """Gives the lock back. Any thread or task of the process that holds it may, never waits, and a
        signal handler or a destructor may call it. Raises NotHeldError (a RuntimeError) when this process
        does not hold it.
        """
    def __enter__(self) -> None:
        """acquire()."""
    def __exit__(self, *exception: object) -> None:
        """release()."""
    def _look(self) -> tuple[int, bool, int]:
        """(number of the process that holds it or 0, whether that is alive, how often one died with it)"""

class SharedSemaphore(Segment):
    """The base of fairlead.sync.shared.Semaphore."""
    def __new__(cls, fd: int, token: bytes | None, make: bool, amount: int, flags: int) -> Self: ...
    def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
        """Takes a permit, waiting for it if need be; says whether it was taken. For threads; tasks await
        acquire_async(). Owned permits of processes that died are taken, too.

        timeout is in seconds, None for ever; a negative one is over. Signal handlers run while it waits;
        when one raises, nothing is taken.
        """
    def release(self, n: int = 1) -> None:
        """Gives n permits. Never waits, and a signal handler or a destructor may call it. Owned ones are
        given by the process that has them: NotHeldError (a RuntimeError) if it has fewer, and none is
        given.
        """
    def __enter__(self) -> None:
        """acquire()."""
    def __exit__(self, *exception: object) -> None:
        """release()."""
    def _look(self) -> tuple[int, int]:
        """(permits that are free, permits recovered from dead processes)"""

class SharedEvent(Segment):
    """The base of fairlead.sync.shared.Event."""
    def __new__(cls, fd: int, token: bytes | None, make: bool, amount: int, flags: int) -> Self: ...
    def is_set(self) -> bool:
        """Whether the flag is set."""
    def set(self) -> None:
        """Sets the flag and wakes all that wait at this moment, even if it is cleared at once. Never
        waits, and a signal handler or a destructor may call it.
        """
    def clear(self) -> None:
        """Clears the flag."""
    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is set; False: the time was over first. For threads; tasks await wait_async()."""
    def _word(self) -> int:
        """Odd while it is set; what _passed is to be given, when a wait begins."""
    def _passed(self, since: int, /) -> bool:
        """Whether it is set, or was since then."""

class SharedQueue(Segment):
    """The base of fairlead.sync.shared.Queue."""
    def __new__(cls, fd: int, token: bytes | None, make: bool, amount: int, flags: int) -> Self: ...
    def put(self, data: ReadableBuffer, block: bool = True, timeout: float | None = None) -> None:
        """Puts the bytes of data, which is bytes or has a buffer, waiting for room if need be. For
        threads; tasks await put_async(). Raises QueueFull when there is no room and the call does not
        block, or within the time, QueueShutDown, and ValueError for more than could ever fit.
        """
    def get(self, block: bool = True, timeout: float | None = None) -> bytes:
        """Takes the oldest message, as bytes, waiting for one if need be. For threads; tasks await
        get_async(). Raises QueueEmpty when there is none and the call does not block, or within the time,
        and QueueShutDown.
        """
    def _try_put(self, data: ReadableBuffer, /) -> int | None:
        """Puts it, and returns None; or the eventcount to wait for, as `which` of _ask()."""
    def _try_get(self) -> int | bytes:
        """Takes a message and returns it; or the eventcount to wait for, as `which` of _ask()."""
    def shutdown(self, immediate: bool = False) -> None:
        """For good: put() raises QueueShutDown, and get() once the queue is empty, or at once. All waiters
        are woken. Never waits.
        """
    def _look(self) -> tuple[int, int, int, int, int]:
        """(bytes of the ring that are taken, of how many, how it is shut, deaths in put, deaths in get)"""

class SharedBarrier(Segment):
    """The base of fairlead.sync.shared.Barrier."""
    def __new__(cls, fd: int, token: bytes | None, make: bool, amount: int, flags: int) -> Self: ...
    def wait(self, timeout: float | None = None) -> int:
        """Waits until all parties have arrived, and returns the caller's number, from 0 to parties - 1.
        For threads; tasks await wait_async(). Raises BrokenBarrierError (a threading.BrokenBarrierError)
        when a party gave up or died, this one by its time-out included.
        """
    def abort(self) -> None:
        """Breaks the barrier: present and later waiters get BrokenBarrierError until reset(). Never waits."""
    def reset(self) -> None:
        """Makes the barrier empty and whole again; its waiters get BrokenBarrierError. Never waits."""
    def _come(self) -> tuple[int, int] | None:
        """(phase, place) of the caller, which has come now; None: a phase is just ending.
        BrokenBarrierError."""
    def _met(self, phase: int, place: int, /) -> bool:
        """Whether all have come to that phase. BrokenBarrierError."""
    def _leave(self, phase: int, place: int, /) -> None:
        """A waiter gives up, and breaks the barrier, unless the phase is over."""
    def _look(self) -> tuple[int, bool]:
        """(how many have come, whether it is broken)"""

"""The whole error vocabulary of fairlead.

Few and flat. Every error that a caller can do something about is one of these;
where the standard library has a word for the same fault, the class inherits it,
so that code written against the standard library keeps working. The message is
one line that says what is wrong and what to do; docs/reference/errors.md says for
each when it is raised and how to go on.
"""

import sys

TYPE_CHECKING = False  # not typing's, which is slow to import: everything imports this

__all__ = [
    "AdviceError",
    "AlreadyHeldError",
    "BrokenBarrierError",
    "BrokenLockError",
    "BrokenPoolError",
    "ChannelClosedError",
    "DeadlockError",
    "DeadlockWarning",
    "EndClosedError",
    "FairleadError",
    "HandleGoneError",
    "InterpreterFailedError",
    "LaggedError",
    "LoopClosedError",
    "MissingExtraError",
    "ModuleRefusedError",
    "NotHeldError",
    "OutputError",
    "OwnerDeathWarning",
    "OwnerDiedError",
    "PoolClosedError",
    "QueueEmpty",
    "QueueFull",
    "QueueShutDown",
    "RecordError",
    "ResourceBusyError",
    "RunInterruptedError",
    "SerializationError",
    "SimulationError",
    "TaskTimeoutError",
    "TooManyReleasesError",
    "UnsupportedInterpreterError",
    "UnsupportedPlatformError",
    "UntestedInterpreterWarning",
    "UsageError",
    "WaitTimeoutError",
    "WorkerDiedError",
    "WrongProcessError",
    "WrongSegmentError",
]

NOTE = "Why, and what to do: fairlead explain "
"""How the note of each error begins; the name of its class follows."""


class _Note:
    """The note of an error, made when its traceback is shown: raising one does not pay for it."""

    def __get__(self, error: BaseException | None, kind: type[BaseException]) -> list[str]:
        if error is None:
            raise AttributeError("__notes__")  # a class has none
        name = next(one.__name__ for one in kind.__mro__ if one.__module__ == __name__)
        notes: list[str] = error.__dict__.setdefault("__notes__", [f"{NOTE}{name}"])
        return notes


class FairleadError(Exception):
    """Base of everything that fairlead raises on purpose."""

    __notes__ = _Note()

    def __init_subclass__(cls) -> None:
        if cls.__doc__ and cls.__module__ == __name__:
            cls.__doc__ += f"\n\n{NOTE}{cls.__name__}, or docs/reference/errors.md#{cls.__name__.lower()}"


class UsageError(FairleadError, ValueError):
    """The call's own words are off: an unknown name, a number out of range, options that clash."""


class MissingExtraError(FairleadError, ImportError):
    """A library that comes with one of fairlead's extras is not installed; the message names the extra."""


class UnsupportedInterpreterError(FairleadError, RuntimeError):
    """The interpreter cannot do what was asked (version, build, implementation); the message says why."""


class UnsupportedPlatformError(UnsupportedInterpreterError):
    """The operating system lacks what this needs; the message says what, and what to use there."""


class InterpreterFailedError(FairleadError, RuntimeError):
    """What was given as an interpreter could not be identified as one: it crashed, hung, printed garbage."""


class RecordError(FairleadError, ValueError):
    """A results or recording file cannot be read: damaged, or written by a newer version of fairlead."""


class OutputError(FairleadError, OSError):
    """Results cannot be written: place not writable, or disk full. What was written before is kept."""


class RunInterruptedError(FairleadError):
    """A run was stopped from outside (Ctrl-C or SIGTERM) after everything it had started was ended.

    Attributes:
        signum: the number of the signal that stopped it.
    """

    def __init__(self, message: str, signum: int) -> None:
        super().__init__(message)
        self.signum = signum


class SimulationError(FairleadError, RuntimeError):
    """A simulated run broke a promise of the scheduler, as two holders; the message says how to repeat it."""


class NotHeldError(FairleadError, RuntimeError):
    """Something was released that is not held."""


class TooManyReleasesError(FairleadError, ValueError):
    """A semaphore was given more permits than it may have; none of them was taken up."""


class DeadlockError(FairleadError, RuntimeError):
    """A thread was about to wait for what a task of its own event loop holds, which could never end."""


class LoopClosedError(FairleadError, RuntimeError):
    """The event loop of a task that waits has been closed; what it waited for was handed over. Or a call of a
    pool was to return to a loop that has been closed."""


class WrongProcessError(FairleadError, TypeError):
    """A primitive was pickled for another process, or has come from one; only interpreters share it."""


class HandleGoneError(FairleadError, LookupError):
    """What has this handle does not exist any more: no interpreter, or no process, has kept it."""


class OwnerDiedError(FairleadError, RuntimeError):
    """The process that held something in shared memory died with it; the message says how to go on.

    Attributes:
        pid: the number that it had.
    """

    def __init__(self, message: str, pid: int) -> None:
        super().__init__(message)
        self.pid = pid

    def __reduce__(self) -> "tuple[type[OwnerDiedError], tuple[str, int]]":
        return OwnerDiedError, (str(self), self.pid)


class WrongSegmentError(FairleadError, ValueError):
    """Shared memory of that name is something else: of another version of fairlead, another kind of
    primitive, another pid namespace, or not fairlead's; the message says which."""


class ChannelClosedError(FairleadError):
    """Nothing more can come, or no receiver is left: the other end of a channel is closed, or this
    one is (EndClosedError). A queue that was shut down is closed, too."""


class EndClosedError(ChannelClosedError):
    """This very end of a channel has been closed: before the call, or by another thread or task while it
    waited."""


class LaggedError(FairleadError):
    """A receiver of a broadcast was too slow, and has missed some; it goes on with the oldest that there is.

    Attributes:
        missed: how many.
    """

    def __init__(self, missed: int) -> None:
        super().__init__(
            f"{missed} were missed, because they were not received in time: receive sooner, or "
            "give the broadcast a larger capacity"
        )
        self.missed = missed

    def __reduce__(self) -> "tuple[type[LaggedError], tuple[int]]":
        return LaggedError, (self.missed,)


class WaitTimeoutError(FairleadError, TimeoutError):
    """What was waited for did not come within the time; the message says what is as before."""


class PoolClosedError(FairleadError, RuntimeError, ValueError):
    """A task was given to a pool that takes no more. A RuntimeError, as of executors, and a ValueError, as of
    multiprocessing's pools."""


class BrokenPoolError(FairleadError, RuntimeError):
    """A pool has no worker that could run its tasks: none can be started, or an initializer failed.

    What pools raise is also a concurrent.futures.BrokenExecutor.
    """


class WorkerDiedError(FairleadError, RuntimeError):
    """The worker that ran the task ended before the task did: killed, crashed, or made to exit. The pool
    lives, and only this task is lost, or of a chunk the calls that had been done and not arrived;
    ``with_options(retries=...)`` has such tasks run again."""


class TaskTimeoutError(FairleadError, TimeoutError):
    """A task ran longer than its time-out; its worker was asked to stop."""


class ModuleRefusedError(FairleadError, ImportError):
    """A module that a task needs cannot be imported in an interpreter of a pool; the message names it, and
    the kinds of pools that work."""


class AdviceError(FairleadError, RuntimeError):
    """A function could not be measured: it raised, ended its process, did not return, or takes longer than
    the budget allows; the message says which, and with which item."""


class BrokenLockError(FairleadError, RuntimeError):
    """The thread that held a lock has ended without releasing it, and the lock is one that breaks then."""


class UntestedInterpreterWarning(FairleadError, RuntimeWarning):
    """The GIL hooks are in an interpreter that is later than the releases they were tested on."""


class OwnerDeathWarning(FairleadError, RuntimeWarning):
    """A warning: a thread or task waits for a lock whose holder has ended without releasing it."""


class DeadlockWarning(FairleadError, RuntimeWarning):
    """A warning: threads or tasks wait for each other, and none of them will go on by itself."""


class AlreadyHeldError(FairleadError, RuntimeError):
    """A borrower that has a token of a CapacityLimiter was to take another."""


class ResourceBusyError(FairleadError, RuntimeError):
    """Two were about to use at once what only one may use at a time."""


if TYPE_CHECKING:
    import threading
    from pickle import PicklingError
    from queue import Empty, Full
    from typing import Any

    class BrokenBarrierError(FairleadError, threading.BrokenBarrierError): ...

    class QueueEmpty(FairleadError, Empty): ...

    class QueueFull(FairleadError, Full): ...

    class QueueShutDown(ChannelClosedError): ...

    class SerializationError(FairleadError, PicklingError): ...


def __getattr__(name: str) -> "Any":
    # their bases take other modules along: for code that uses them, and not for every program that is started
    makers = {
        "BrokenBarrierError": _with_threading,
        "QueueEmpty": _with_c_queue,
        "QueueFull": _with_threading,
        "QueueShutDown": _with_threading,
        "SerializationError": _with_pickle,
    }
    if name not in makers:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for made in makers[name]():
        made.__qualname__ = made.__name__
        globals().setdefault(made.__name__, made)  # one of each, also for two threads at once
    return globals()[name]


def _with_pickle() -> "tuple[type[Exception], ...]":
    from _pickle import PicklingError

    class SerializationError(FairleadError, PicklingError):
        """A function, an argument or a result cannot be sent to or from a worker; the message says which
        part."""

    return (SerializationError,)


def _with_c_queue() -> "tuple[type[Exception], ...]":
    if sys.implementation.name == "cpython":
        from _queue import Empty
    else:  # PyPy has the module of Python only
        from queue import Empty

    class QueueEmpty(FairleadError, Empty):
        """There was nothing to get, at once or within the time. Also a queue.Empty."""

    return (QueueEmpty,)


def _with_threading() -> "tuple[type[Exception], ...]":
    import queue
    import threading

    class QueueFull(FairleadError, queue.Full):
        """There was no room to put something, at once or within the time. Also a queue.Full."""

    class QueueShutDown(ChannelClosedError, getattr(queue, "ShutDown", Exception)):  # type: ignore[misc]
        """The queue has been shut down, and has nothing to get. From 3.13 on also a queue.ShutDown."""

    class BrokenBarrierError(FairleadError, threading.BrokenBarrierError):
        """A barrier is broken, or was reset while one waited. Also a threading.BrokenBarrierError."""

    return QueueFull, QueueShutDown, BrokenBarrierError


def as_raised(names: str, queues: "Any") -> "tuple[type[Exception], ...]":
    """For native code: the classes of these names, and each that asyncio's module of queues has is both."""
    return tuple(_both(globals().get(name) or __getattr__(name), queues, name) for name in names.split())


def _both(mine: type[Exception], queues: "Any", name: str) -> type[Exception]:
    theirs = getattr(queues, name, None)
    if theirs is None:
        return mine

    def reduce(error: Exception) -> "tuple[type[Exception], tuple[object, ...]]":
        return mine, error.args

    words = {"__module__": mine.__module__, "__doc__": mine.__doc__, "__reduce__": reduce}
    return type(name, (mine, theirs), words)

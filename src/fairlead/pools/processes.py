"""ProcessPool: calls in processes of their own."""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import multiprocessing.util
import signal
import socket
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import process
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from types import TracebackType
from typing import Any, Literal

from fairlead import _native
from fairlead.errors import SerializationError, UnsupportedPlatformError, UsageError
from fairlead.pools.engine import forks, shutdown
from fairlead.pools.engine.contract import Broken, DirectWorker, Lost, Task, Unread
from fairlead.pools.engine.direct_manager import DirectManager
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.executor.base import Pool, checked, checked_workers, worker_options
from fairlead.pools.process import child, multiprocessing_state, surroundings
from fairlead.pools.process.channel import Channel, Corrupt
from fairlead.pools.process.progress import SharedWord
from fairlead.pools.serialization import calls, pickling, records
from fairlead.pools.serialization.chunk_loss import lost
from fairlead.pools.serialization.chunks import chunk_of
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Message, Parts, pickled

StartMethod = Literal["forkserver", "spawn", "fork"]

EXHAUSTED = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS}
GRACE_S = 5.0
"""What an idle worker is given to end by itself."""
_starting = EngineLock()
"""Held by threads that start processes, as forks at once would inherit each other's ends of sockets; and by
threads that ask for an exit status, as a start does that for all children."""
_workers: weakref.WeakSet[_Process] = weakref.WeakSet()


class ProcessPool(Pool):
    """Calls in processes: for work that computes, and for whatever may crash.

    Functions go by reference, or by value where they have no name that a worker could find: lambdas,
    closures, those of an interactive session. Large arguments and results go through shared memory that has
    no name and ends with the processes; arrays that pickle protocol 5 knows are not copied out of it.

    A time-out or a cancellation kills the worker, and another takes its place. A worker that dies takes its
    task with it (WorkerDiedError, or another attempt with ``retries``) and nothing else. Workers end with
    this process, however it ends and whatever they do.

    Args:
        max_workers: processes; None: as many as cores that this process may use, affinity and quota counted.
        mp_context: one of multiprocessing's, or the name of a start method. None: "forkserver". "fork" copies
            this process as it is: not while other threads hold locks, and refused while this process has
            subinterpreters.
        initializer: called in each worker before its first task. If it raises, the pool is broken, and every
            task raises a BrokenPoolError whose cause is that exception. ``initargs`` may hold
            multiprocessing's locks and queues.
        max_tasks_per_child: tasks after which a process is replaced; None for never.
        thread_name_prefix: of the threads, and of the processes.
        finalizer: called in each worker that ends by itself, after its last task. What it raises is logged.
            A worker that is killed or dies has no time for it.
        idle_timeout: seconds without a task after which a worker ends; None for never.
        forward_logging: whether this program's loggers, and so its handlers, handle what workers log: before
            the result of the task that has logged it.
        start_timeout: seconds that a worker's start may take, its imports and the initializer included; then
            it is killed and the pool is broken, as if the initializer had raised. None for no limit.
        env: variables of the workers' environment, besides those in ``os.environ`` when a worker starts.
        inner_threads: how many threads BLAS, OpenMP and the like may use in each worker. None: its part of
            the usable cores, where the program has set none of their variables (``OMP_NUM_THREADS`` ...).
    """

    def __init__(
        self,
        max_workers: int | None = None,
        mp_context: BaseContext | StartMethod | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        thread_name_prefix: str = "",
        finalizer: Callable[[], object] | None = None,
        idle_timeout: float | None = None,
        forward_logging: bool = False,
        start_timeout: float | None = None,
        env: Mapping[str, str] | None = None,
        inner_threads: int | None = None,
    ) -> None:
        if sys.platform != "linux":
            raise UnsupportedPlatformError(
                "ProcessPool needs memory files that go over sockets, which Linux has; "
                "use concurrent.futures.ProcessPoolExecutor, or ThreadPool"
            )
        context = _context(mp_context)
        start_method = context.get_start_method()
        options = worker_options(
            "ProcessPool", thread_name_prefix, initializer, finalizer, max_tasks_per_child, idle_timeout,
            start_timeout,
        )  # fmt: skip
        if start_method == "fork":
            _refuse_to_fork_with_subinterpreters()
        begin = _shipped("initializer", initializer), initargs
        last = _shipped("finalizer", finalizer)
        workers = checked_workers(max_workers)
        threads = None if inner_threads is None else checked("inner_threads", inner_threads)
        given = _checked_environment(env)
        if start_method == "forkserver":
            multiprocessing_state.preload(child.__name__)
        self._begin(
            _Processes(
                "processes", workers,
                lambda: _Process(
                    context, begin, last, forward_logging, options["name"],
                    lambda: surroundings.of_this_process(given, threads, workers),
                ),
                call_cost_s=100e-6, **options,
            )
        )  # fmt: skip


def _context(given: BaseContext | str | None) -> Any:
    if given is None:
        return multiprocessing.get_context("forkserver")
    if isinstance(given, str):
        if given not in (known := multiprocessing.get_all_start_methods()):
            raise UsageError(f"mp_context must be one of {', '.join(known)}, or a context, not {given!r}")
        return multiprocessing.get_context(given)
    return given


def _checked_environment(given: Mapping[str, str] | None) -> dict[str, str]:
    found = {} if given is None else dict(given)
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise UsageError(f"env must have names and values that are str, not {name!r}: {value!r}")
    return found


@contextlib.contextmanager
def _lost_without(*, server: bool) -> Iterator[None]:
    """Raises Lost where descriptors, memory or processes are exhausted, or the server of "forkserver" is gone
    that was there before."""
    try:
        yield
    except (OSError, EOFError, MemoryError) as error:
        gone = server and isinstance(error, EOFError | BrokenPipeError)
        if gone or isinstance(error, MemoryError) or getattr(error, "errno", None) in EXHAUSTED:
            raise Lost(f"a worker process cannot be started: {error!r}") from error
        raise


class _Processes(DirectManager):
    def portable(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return calls.portable(function, by_value=_by_value(function))


def _by_value(function: Callable[..., Any]) -> bool:
    return _Process.by_value and getattr(function, "__module__", None) == "__main__"


def _shipped(what: str, function: Callable[..., object] | None) -> bytes | None:
    return None if function is None else calls.shipped(what, function, lambda: pickling.dumps(function))


def _refuse_to_fork_with_subinterpreters() -> None:
    for name in ("_interpreters", "_xxsubinterpreters"):
        if (module := sys.modules.get(name)) is not None and len(module.list_all()) > 1:
            raise UsageError(
                'mp_context="fork" crashes the child while this process has subinterpreters; '
                'use "forkserver" or "spawn"'
            )


@dataclass(eq=False)
class _Process(DirectWorker):
    """A process and the channel to it."""

    context: Any
    initializer: tuple[bytes | None, tuple[Any, ...]]
    finalizer: bytes | None
    forward_logging: bool
    name: str
    surroundings: Callable[[], surroundings.Surroundings]
    _process: Any = None
    _channel: Channel | None = None
    _word: SharedWord | None = None
    _message: Message | None = None
    _parts: list[Any] = field(default_factory=list)
    """Outcomes of a chunk that have come before its last."""
    _came: int = 0
    """Bytes of the answer."""
    _corrupt: str | None = None
    _unread: bool = False
    """It was gone before it had read the last call."""
    _sent_by_value: bool = False
    _stopped: bool = False

    by_value = not any(getattr(sys.modules["__main__"], name, None) for name in ("__file__", "__spec__"))
    """Whether functions of __main__ go by value: it is no file, or workers have been found not to know
    them."""
    started = False
    """Whether one could be started yet."""

    def traffic(self) -> tuple[int, int]:
        return (0, 0) if self._channel is None else (self._channel.bytes_out, self._channel.bytes_in)

    def start(self) -> None:
        child.end_if_imported_by_a_worker()
        with _starting, _lost_without(server=_Process.started):
            multiprocessing_state.call_before_children_are_joined(shutdown._end)
            method = self.context.get_start_method()
            if method == "forkserver":
                multiprocessing_state.keep_addresses_short()
            if method == "fork":
                _refuse_to_fork_with_subinterpreters()
            ours, theirs = socket.socketpair()
            self._channel = Channel(ours)
            _workers.add(self)
            self._word = SharedWord()
            levels = records.levels() if self.forward_logging else None
            around = self.surroundings()
            with theirs, multiprocessing_state.allowed_children():
                args = theirs, self._word, *self.initializer, self.finalizer, levels, around
                self._process = self.context.Process(target=child.main, args=args, name=self.name)
                try:
                    self._process.start()
                except (OSError, EOFError):
                    # the server of "forkserver" is gone, which may import the program, too
                    if multiprocessing_state.server_status() == child.NO_GUARD:
                        raise _unguarded() from None
                    raise
                finally:
                    self._word.sent()
            _Process.started = True
        if self._stopped:
            self._kill()
        self.wait()
        if (message := self._message) is None:
            said = f"a worker process {self._how_it_ended()} before it was ready"
            code = self._process.exitcode or 0
            if code == child.NO_GUARD:
                raise _unguarded() from None
            raise (Lost if code < 0 else RuntimeError)(said) from None
        if message.kind == calls.FAILED:
            raise message.load().error

    def send(self, task: Task) -> None:
        self._sent_by_value = _by_value(task.function)
        self._send(calls.pack(task, by_value=self._sent_by_value))

    def _send(self, parts: Parts) -> None:
        assert self._channel is not None
        assert self._word is not None
        self._word.numbers[0] = 0
        self._parts, self._came = [], 0
        try:
            self._channel.send(calls.CALL, parts)
        except OSError:  # wait() finds the channel at its end
            self._unread = True

    def wait(self, timeout: float | None = None) -> bool:
        assert self._channel is not None
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            if until is not None and not self._channel.poll(max(until - time.monotonic(), 0)):
                return False
            before = self._channel.bytes_in
            message = self._message = self._received(self._channel)
            self._came += self._channel.bytes_in - before
            if message is None or message.kind not in {calls.RECORD, calls.PART}:
                return True
            if message.kind == calls.RECORD:
                records.handle(message.load())
            else:
                self._parts += calls.outcomes_of(message.load()[0])

    def _received(self, channel: Channel) -> Message | None:
        try:
            return channel.receive()
        except ConnectionResetError:  # something was left unread; otherwise it is an EOFError
            self._unread = True
        except (EOFError, OSError):
            pass
        except Corrupt as reason:
            self._corrupt = str(reason)
            self._kill()
        return None

    def read(self, task: Task) -> Any:
        kind, value = self._read(task)
        while kind == calls.UNREADABLE and calls.read_again(task, value.error, by_value=self._sent_by_value):
            unknown = isinstance(value.error, AttributeError | ImportError)
            self._sent_by_value = True
            self._send(calls.pack(task, by_value=True))
            self.wait()
            kind, value = self._read(task)
            _Process.by_value |= unknown and kind != calls.UNREADABLE
        value = calls.outcome(task, kind, value)
        if (chunk := chunk_of(task)) is not None:
            chunk.bytes_in = self._came
            return self._parts + value[0], value[1]
        return value

    def _read(self, task: Task, *, apart: bool = False) -> tuple[int, Any]:
        """``apart``: each outcome of a chunk has been pickled by itself."""
        message, self._message = self._message, None
        if message is None:
            raise self._lost(task)
        kind = message.kind
        try:
            value = message.load()
        except BaseException as error:
            if kind == calls.RESULT and not apart and chunk_of(task) is not None:
                self._ask_for(calls.APART)
                self.wait()
                return self._read(task, apart=True)
            raise SerializationError(f"the result cannot be read here: {error!r}") from error
        if kind != calls.RESULT and not isinstance(value, Failure):
            raise SerializationError(f"the answer cannot be read here: it is of kind {kind}")
        return kind, value

    def _lost(self, task: Task) -> Lost:
        assert self._word is not None
        if self._corrupt is not None:
            said = f"the worker process sent data that is not a message ({self._corrupt}), and was killed"
        else:
            said = f"the worker process {self._how_it_ended()}"
            if self._unread:
                return Unread(said)
        return lost(task, said, self._word.numbers[0], self._parts)

    def end(self) -> None:
        if self._channel is not None:
            self._ask_for(calls.END)

    def _ask_for(self, kind: int) -> None:
        assert self._channel is not None
        with contextlib.suppress(OSError):  # wait() finds the channel at its end
            self._channel.send(kind, pickled(None))

    def stop(self) -> bool:
        self._stopped = True
        self._kill()
        return True

    def _kill(self) -> None:
        """With the processes that it has started; not if it has been waited for, as its number may be
        another's then."""
        with contextlib.suppress(ValueError, AttributeError):  # it has been closed, or not been started
            popen = self._process._popen  # asked for once: another thread may close it meanwhile
            if popen.returncode is None:
                _native.kill_tree(popen.pid)

    def close(self) -> None:
        channel, process = self._channel, self._process
        if process is not None and process.pid is not None:
            ended = False
            if channel is not None and not self._stopped:
                self.end()
                if self.finalizer is not None or self.forward_logging:
                    self.wait()  # as long as it takes; terminate() kills it
                ended = self._ended()
            if not ended:
                self._kill()
            with _starting:
                if process.exitcode is None:  # it may have closed its files, and live
                    process.kill()
                process.join()
                process.close()
        if channel is not None:
            channel.close()
        if self._word is not None:
            self._word.close()

    def _ended(self) -> bool:
        """Whether it ends by itself within the time of grace."""
        return bool(wait([self._process.sentinel], GRACE_S))

    def _how_it_ended(self) -> str:
        """Once the channel is at its end, the process is, or will be at once."""
        ended = self._ended()
        pid = self._process.pid
        if not ended:
            return f"{pid} closed its channel"
        with _starting:
            self._process.join(GRACE_S)  # what it held is closed a moment before it can be waited for
            code = self._process.exitcode
        if code < 0:
            return f"{pid} was killed by {signal.Signals(-code).name}"
        return f"{pid} exited with status {code}"


class _Unguarded(Broken):
    """The program starts workers where they import it."""


def _unguarded() -> _Unguarded:
    """Nothing in a traceback helps with it: if it is not caught, the program ends with one line."""
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, _Unguarded):
            print(f"fairlead: {error}", file=sys.stderr)
        else:
            before(kind, error, traceback)

    sys.excepthook = hook
    return _Unguarded(
        "worker processes import this file, and that would start workers again: put what starts them under "
        '`if __name__ == "__main__":`'
    )


@forks.in_child
def _forget_the_parents() -> None:
    """In a forked child: its parent's ends of channels would keep the workers from seeing the parent's end;
    multiprocessing would take their exit status, and fail at the child's end as it cannot join them; and the
    lock is held by the very thread that forks a worker."""
    global _starting
    _starting = EngineLock()
    for worker in list(_workers):
        if worker._channel is not None:
            worker._channel.close()
        process._children.discard(worker._process)  # type: ignore[attr-defined]
    _workers.clear()
    _Process.started = False
    multiprocessing_state.forget_server()

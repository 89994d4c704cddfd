"""The face of every pool: an executor, tasks of event loops, and streams."""

from __future__ import annotations

import concurrent.futures
import contextvars
import dataclasses
import itertools
import math
import weakref
from collections import defaultdict
from collections.abc import AsyncIterable, Callable, Iterable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from fairlead import machine
from fairlead.errors import PoolClosedError, UsageError, WaitTimeoutError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Options, StartLimit, Statistics
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.executor.chunking import Paces
from fairlead.pools.executor.intake import Intake
from fairlead.pools.executor.progress import Progress
from fairlead.pools.executor.stream import Stream
from fairlead.pools.from_thread import Caller

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")

_KEEP: Any = object()
"""An option that is not given."""
_numbers: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)


def checked_workers(workers: int | None) -> int:
    """The number asked for, or one for each core that this process may use (affinity and quota counted)."""
    if workers is None:
        return machine.cores().usable
    return checked("max_workers", workers)


def checked(name: str, number: int, least: int = 1) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} must be a whole number, not {number!r}")
    if number < least:
        raise UsageError(f"{name} must be at least {least}, not {number}")
    return number


def checked_callable(**functions: Callable[..., object] | None) -> None:
    for name, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable")


def checked_seconds(name: str, seconds: float | None) -> float | None:
    if seconds is not None and not 0 < seconds < math.inf:
        raise UsageError(f"{name} must be a positive number of seconds, not {seconds}")
    return seconds


def pool_name(prefix: str, kind: str) -> str:
    """The prefix that was given, or the kind and its pools' number."""
    return prefix or f"{kind}-{next(_numbers[kind])}"


def worker_options(
    kind: str,
    prefix: str,
    initializer: Callable[..., object] | None,
    finalizer: Callable[[], object] | None,
    most_tasks: int | None,
    idle_timeout: float | None,
    start_timeout: float | None,
) -> dict[str, Any]:
    """What pools of several workers are given, checked, as their engines take it."""
    checked_callable(initializer=initializer, finalizer=finalizer)
    return {
        "name": pool_name(prefix, kind),
        "most_tasks": 0 if most_tasks is None else checked("max_tasks_per_child", most_tasks),
        "idle_timeout": checked_seconds("idle_timeout", idle_timeout),
        "start_limit": StartLimit.of(checked_seconds("start_timeout", start_timeout), initializer),
    }


class Pool(concurrent.futures.Executor):
    """What all pools do; each kind has its class.

    Guarantees, for every kind: the future of each task that was taken ends exactly once, with the function's
    result, its exception, a cancellation, or one of TaskTimeoutError, WorkerDiedError, BrokenPoolError and
    SerializationError. Tasks
    begin in the order of their submission. All methods may be called from any thread.

    Leaving a ``with`` block waits for the tasks; by Ctrl-C or ``sys.exit()`` it cancels them and stops the
    workers.
    """

    _engine: Engine
    _options: Options

    def _begin(self, engine: Engine) -> None:
        """For __init__ of the kinds."""
        self._engine = engine
        self._options = Options()
        self._intake = Intake()
        self._paces = Paces()
        # a pool that is unreachable finishes its tasks and lets its workers go
        self._at_end = weakref.finalize(self, engine.close)
        self._at_end.atexit = False

    # executor

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Has ``fn(*args, **kwargs)`` called by a worker; PoolClosedError after shutdown, BrokenPoolError
        without workers."""
        return self._submit(fn, args, kwargs)

    def _submit(
        self,
        fn: Callable[..., T],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        future: Future[T] | None = None,
        engine: Engine | None = None,
    ) -> Future[T]:
        if engine is None:
            engine = self._engine
        if future is None:
            future = Future()
        task = engine.task_type(future, fn, args, kwargs, self._options)
        future.attach(engine, task)
        engine.enqueue(task)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int | None = None,
        buffersize: int | None = None,
        progress: Progress = False,
    ) -> Stream[T]:
        """As an executor's ``map``.

        The iterables are read at once, or, with ``buffersize``, as results are taken, so many tasks ahead.

        Args:
            timeout: seconds from now after which taking a result raises TimeoutError.
            chunksize: calls in one task. None: chosen from the time that calls take; one, where calls have a
                time-out or retries.
            progress: True for a bar of rich's, an object with ``update(n)`` and ``close()``, as tqdm's, or
                what makes one, as tqdm itself (called with ``total=``); advanced as results are taken.

        Returns:
            An iterator over the results in the order of the items; ``results()`` waits for all and returns a
            list. A call's exception is raised in its place, and the iterator goes on behind it.
        """
        if not iterables:
            raise UsageError("map needs at least one iterable")
        several = len(iterables) > 1
        if buffersize is not None:
            checked("buffersize", buffersize)
            source: Iterable[Any] = zip(*iterables, strict=False) if several else iterables[0]
            eager = False
        else:
            source = list(zip(*iterables, strict=False) if several else iterables[0])
            eager = True
        return Stream(
            self, fn, source, star=several, window=buffersize, chunksize=chunksize, eager=eager,
            progress=progress, timeout=timeout,
        )  # fmt: skip

    def shutdown(
        self, wait: bool = True, *, cancel_futures: bool = False, timeout: float | None = None
    ) -> None:
        """Takes no more tasks; those taken are finished, or with ``cancel_futures`` those that have begun.

        In a task or done-callback of this very pool it does not wait, and raises DeadlockError where the
        pool could not end before that: ``wait=False`` does without.

        Args:
            timeout: seconds after which TimeoutError is raised if the workers have not ended.
        """
        if self._intake.within_submission():
            self._close(cancel_futures=cancel_futures)
        else:
            self._engine.uninterrupted(lambda: self._close(cancel_futures=cancel_futures))
        if wait and not self._engine.join(timeout):
            raise WaitTimeoutError(
                f"the pool's workers have not ended within {timeout:g} s; terminate() stops them"
            )

    def _close(self, *, cancel_futures: bool) -> None:
        if not cancel_futures and not self._engine.closed:
            self._intake.finish()
        self._intake.close()
        self._engine.close()
        if cancel_futures:
            self._engine.cancel_queued()

    def terminate(self) -> None:
        """Takes no more tasks, cancels what is queued and stops what runs; does not wait."""
        self._intake.close()
        self._engine.uninterrupted(self._engine.terminate)

    def __enter__(self) -> Self:
        if self._engine.closed:
            raise PoolClosedError("the pool has been shut down: it takes no more tasks")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if kind is not None and not issubclass(kind, Exception):
            self.terminate()
        for mapping in self._intake.streams():
            mapping.abandon()
        self.shutdown(wait=True)
        return None

    # tasks of event loops

    async def __aenter__(self) -> Self:
        return self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """As ``with``, without keeping the loop waiting; a cancelled task stops the workers."""
        if kind is not None and not issubclass(kind, Exception):
            self._engine.terminate()
        for mapping in self._intake.streams():
            mapping.abandon()
        await self.aclose()

    async def aclose(self) -> None:
        """Takes no more tasks, and waits for those taken without keeping the loop waiting."""
        if self._engine.here():
            self.shutdown()  # raises DeadlockError, which the thread below could not
        self._intake.close()
        closed: Future[None] = Future()
        closed.begin()  # so that it cannot be cancelled

        def close(_: object) -> None:
            try:
                self.shutdown()
            except BaseException as error:  # noqa: BLE001 - the waiter's
                closed.set_exception(error)
            else:
                closed.set_result(None)

        shutdown.thread(close, None, "fairlead-aclose").start()
        try:
            await closed
        except BaseException:
            self._engine.terminate()
            raise

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """``await pool.run(fn, ...)``: the call's result, in any loop that fairlead.sync knows. If the task
        that waits is cancelled, so is the call.

        Where calls are sent elsewhere, a thread pickles and sends them, and not the loop's. Where they are
        made in this interpreter, they see the caller's context variables, and
        ``fairlead.pools.from_thread`` brings calls back to the loop.
        """
        view = self if self._options.context else self._with(context="here")
        with Caller():
            if self._engine.sends:
                self._engine._check_open()
                future: Future[T] = Future()
                here = contextvars.copy_context()
                self._intake.accept(lambda: here.run(view._submit_for, future, fn, args, kwargs))
            else:
                future = view._submit(fn, args, kwargs)
        return await future

    def _submit_for(
        self, future: Future[T], fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if future.done():
            return  # cancelled meanwhile
        try:
            self._submit(fn, args, kwargs, future)
        except PoolClosedError:  # it was accepted before, and the pool was terminated meanwhile
            future.forget()
            if future.begin():
                future.end_cancelled()
        except BaseException as error:  # noqa: BLE001 - the waiter's
            future.set_exception(error)

    # streams

    def stream(
        self,
        fn: Callable[[S], T],
        iterable: Iterable[S] | AsyncIterable[S],
        *,
        ordered: bool = True,
        window: int | None = None,
        chunksize: int | None = None,
        progress: Progress = False,
    ) -> Stream[T]:
        """The results of ``fn(item)``, with back-pressure: for endless inputs, and for ``for`` and ``async
        for``.

        The consumer of the results reads the iterable, and never more than ``window`` items ahead of what was
        taken. None: four chunks for each worker, and no more than 16 MiB of items or of results, as far as
        their sizes are known; but two items for each worker. What the iterable raises is raised behind the
        results of the items before. A call's exception is raised in its place, and the stream goes on behind
        it. Closing the stream, or letting go of it, cancels what is under way.

        Args:
            ordered: results in the order of the items; otherwise as they come.
            chunksize: calls in one task; None: chosen from the time that calls take.
            progress: as ``map``'s.
        """
        return Stream(
            self, fn, iterable, star=False, ordered=ordered, window=window, chunksize=chunksize,
            progress=progress,
        )  # fmt: skip

    # views and numbers

    def with_options(
        self,
        *,
        timeout: float | None = _KEEP,
        retries: int = _KEEP,
        context: bool | Iterable[ContextVar[Any]] = _KEEP,
    ) -> Self:
        """The same pool, its calls with these options besides those that it has: ``pool.with_options(
        timeout=1.0, retries=2).submit(fn)``.

        Args:
            timeout: seconds that a task may run, waiting not counted. Then it is stopped, as by ``cancel()``,
                and its future raises TaskTimeoutError.
            retries: further attempts after a worker was lost or the time was up. Exceptions of the function
                are results: they are not retried.
            context: context variables that the task sees as they are when it is submitted: all, or only
                these.
        """
        changes: dict[str, Any] = {}
        if timeout is not _KEEP:
            changes["timeout"] = checked_seconds("timeout", timeout)
        if retries is not _KEEP:
            changes["retries"] = checked("retries", retries, 0)
        if context is not _KEEP:
            changes["context"] = context if isinstance(context, bool) else tuple(context)
        return self._with(**changes)

    def _with(self, **changes: Any) -> Self:
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        view._options = dataclasses.replace(self._options, **changes)
        view._whole = self  # type: ignore[attr-defined] # as long as there is a view, the pool is in use
        return view

    def statistics(self) -> Statistics:
        """What the pool has done so far, views included."""
        return self._engine.statistics()

    @property
    def workers(self) -> int:
        """The most workers that there will be at once."""
        return self._engine.workers

    @property
    def _max_workers(self) -> int:
        """As the standard library's executors have it, and dask asks for it."""
        return self._engine.workers

    def __repr__(self) -> str:
        numbers = self._engine.statistics()
        state = "closed" if self._engine.closed else "open"
        return (
            f"<{type(self).__name__} {state}, workers {numbers.started} of {numbers.workers}, "
            f"tasks: {numbers.queued} queued, {numbers.running} running, {numbers.done} done>"
        )

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or sent to a worker; make one there")

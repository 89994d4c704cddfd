"""The face of every pool: an executor, multiprocessing's Pool, tasks of event loops, and streams."""

from __future__ import annotations

import concurrent.futures
import math
import weakref
from collections.abc import AsyncIterable, Callable, Iterable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from fairlead import machine
from fairlead.errors import PoolClosed, UsageError
from fairlead.pools.classic import ClassicCalls
from fairlead.pools.contract import Engine, Options, Statistics
from fairlead.pools.future import Future
from fairlead.pools.mapping import Results
from fairlead.pools.progress import Progress
from fairlead.pools.stream import Stream
from fairlead.sync import Event

P = ParamSpec("P")
T = TypeVar("T")


def checked_workers(workers: int | None) -> int:
    """The number asked for, or one for each core that this process may use (affinity and quota counted)."""
    if workers is None:
        return machine.cores().usable
    return checked("workers", workers)


def checked(name: str, number: int, least: int = 1) -> int:
    if not isinstance(number, int) or isinstance(number, bool):
        raise TypeError(f"{name} must be a whole number, not {number!r}")
    if number < least:
        raise UsageError(f"{name} must be at least {least}, not {number}")
    return number


def checked_initializer(function: Callable[..., object] | None) -> None:
    if function is not None and not callable(function):
        raise TypeError("initializer must be callable")


class Pool(ClassicCalls, concurrent.futures.Executor):
    """What all pools do; each kind has its class.

    Guarantees, for every kind: the future of each task that was taken ends exactly once, with the function's
    result, its exception, a cancellation, or one of TaskTimeout, WorkerLost, BrokenPool and CannotSend. Tasks
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
        self._mappings: weakref.WeakSet[Stream[Any]] = weakref.WeakSet()
        # a pool that nobody can reach any more finishes its tasks and lets its workers go
        weakref.finalize(self, engine.close).atexit = False

    # executor

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Has ``fn(*args, **kwargs)`` called by a worker; PoolClosed after shutdown, BrokenPool without
        workers."""
        return self._submit(fn, args, kwargs)

    def _submit(self, fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Future[T]:
        engine = self._engine
        future: Future[T] = Future()
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
    ) -> Results[T]:
        """As an executor's ``map``, and as multiprocessing's ``map(fn, iterable, chunksize)``.

        The iterables are read at once, or, with ``buffersize``, as results are taken, so many tasks ahead.

        Args:
            timeout: seconds from now after which taking a result raises TimeoutError.
            chunksize: calls in one task. None: chosen from the time that calls take; one, where calls have a
                time-out or retries.
            progress: True for a bar of rich's, or an object with ``update(n)`` and ``close()``, as tqdm's,
                advanced as results are taken.

        Returns:
            An iterator over the results in the order of the items, which is also a list of them: ``len()``,
            an index or a comparison waits for all. A call's exception is raised in its place, and the
            iterator goes on behind it.
        """
        if iterables and isinstance(iterables[-1], int):
            chunksize, iterables = iterables[-1], iterables[:-1]
        if not iterables:
            raise UsageError("map needs at least one iterable")
        if buffersize is not None:
            checked("buffersize", buffersize)
            source: Iterable[Any] = zip(*iterables, strict=False)
            eager = False
        else:
            source = list(zip(*iterables, strict=False))
            eager = True
        stream: Stream[T] = Stream(
            self, fn, source, star=True, window=buffersize, chunksize=chunksize, eager=eager,
            progress=progress, timeout=timeout,
        )  # fmt: skip
        return Results(stream)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Takes no more tasks; those taken are finished, or with ``cancel_futures`` those that have begun."""
        if not cancel_futures and not self._engine.closed:
            for mapping in list(self._mappings):
                mapping.submit_rest()
        self._engine.close()
        if cancel_futures:
            self._engine.cancel_queued()
        if wait:
            self._engine.join()

    def __enter__(self) -> Self:
        if self._engine.closed:
            raise PoolClosed("the pool has been shut down: it takes no more tasks")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool | None:
        if kind is not None and not issubclass(kind, Exception):
            self._engine.terminate()
        self.shutdown(wait=True)
        return None

    # tasks of event loops

    async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """``await pool.run(fn, ...)``: the call's result, in any loop that fairlead.sync knows. If the task
        that waits is cancelled, so is the call."""
        future = self.submit(fn, *args, **kwargs)
        ended = Event()
        future.add_done_callback(lambda _: ended.set())
        try:
            await ended.wait_async()
        except BaseException:
            future.cancel()
            raise
        return future.result()

    # streams

    def stream(
        self,
        fn: Callable[[Any], T],
        iterable: Iterable[Any] | AsyncIterable[Any],
        *,
        ordered: bool = True,
        window: int | None = None,
        chunksize: int | None = None,
        progress: Progress = False,
    ) -> Stream[T]:
        """The results of ``fn(item)``, with back-pressure: for endless inputs, and for ``for`` and ``async
        for``.

        The iterable is read by whoever takes results, and never more than ``window`` items ahead of what was
        taken (None: four chunks for each worker). What it raises is raised behind the results of the items
        before. A call's exception is raised in its place, and the stream goes on behind it. Closing the
        stream, or letting go of it, cancels what is under way.

        Args:
            ordered: results in the order of the items; otherwise as they come.
            chunksize: calls in one task; None: chosen from the time that calls take.
            progress: True for a bar of rich's, or an object with ``update(n)`` and ``close()``, as tqdm's.
        """
        return Stream(
            self, fn, iterable, star=False, ordered=ordered, window=window, chunksize=chunksize,
            progress=progress,
        )  # fmt: skip

    # views and numbers

    def with_options(
        self,
        *,
        timeout: float | None = None,
        retries: int = 0,
        context: bool | Iterable[ContextVar[Any]] = False,
    ) -> Self:
        """The same pool, its calls with these options: ``pool.with_options(timeout=1.0,
        retries=2).submit(fn)``.

        Args:
            timeout: seconds that a task may run, waiting not counted. Then it is stopped, as by ``cancel()``,
                and its future raises TaskTimeout.
            retries: further attempts after a worker was lost or the time was up. Exceptions of the function
                are results: they are not retried.
            context: context variables that the task sees as they are when it is submitted: all, or only
                these.
        """
        if timeout is not None and not 0 < timeout < math.inf:
            raise UsageError(f"timeout must be a positive number of seconds, not {timeout}")
        chosen = context if isinstance(context, bool) else tuple(context)
        view = object.__new__(type(self))
        vars(view).update(vars(self))
        view._options = Options(timeout, checked("retries", retries, 0), chosen)
        view._whole = self  # type: ignore[attr-defined] # as long as there is a view, the pool is in use
        return view

    def statistics(self) -> Statistics:
        """What the pool has done so far, views included."""
        return self._engine.statistics()

    @property
    def workers(self) -> int:
        """The most workers that there will be at once."""
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

"""The calls of multiprocessing.Pool, over a pool."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Generic, Self, TypeVar

from fairlead.errors import UsageError
from fairlead.pools.engine.contract import Lending
from fairlead.pools.engine.future import Future
from fairlead.pools.engine.scheduler import Engine
from fairlead.pools.executor import base
from fairlead.pools.executor.stream import NotYet, Stream
from fairlead.sync import Event

T = TypeVar("T")


@cache
def result_timeout() -> type[TimeoutError]:
    """A TimeoutError that code which catches multiprocessing's catches too; made when it is first wanted."""
    import multiprocessing

    class ResultTimeout(multiprocessing.TimeoutError, TimeoutError):
        """The result was not there within the time."""

    return ResultTimeout


class AsyncResult(Generic[T]):
    """As multiprocessing.pool.AsyncResult, over a future: ready when its callbacks have been called."""

    def __init__(
        self,
        engine: Engine,
        future: concurrent.futures.Future[T],
        callback: Callable[[T], object] | None,
        error_callback: Callable[[BaseException], object] | None,
    ) -> None:
        self._engine = engine
        self._future = future
        self._callbacks = (callback, error_callback)
        self._ready = Event()
        future.add_done_callback(self._end)

    def _end(self, future: concurrent.futures.Future[T]) -> None:
        (callback, error_callback), self._callbacks = self._callbacks, (None, None)
        try:
            error = concurrent.futures.CancelledError() if future.cancelled() else future.exception()
            if error is not None:
                if error_callback is not None:
                    error_callback(error)
            elif callback is not None:
                callback(future.result())
        finally:
            self._ready.set()

    def get(self, timeout: float | None = None) -> T:
        """The result; raises what the call raised, or multiprocessing.TimeoutError."""
        self.wait(timeout)
        if not self._future.done():
            raise result_timeout()(f"no result within {timeout} s")
        return self._future.result()

    def wait(self, timeout: float | None = None) -> None:
        if self._ready.is_set():
            return
        if isinstance(self._future, Future):
            self._future.help()
        with Lending(self._engine):
            self._ready.wait(timeout)

    def ready(self) -> bool:
        return self._ready.is_set()

    def successful(self) -> bool:
        """Whether the call returned; ValueError while it runs."""
        if not self._ready.is_set():
            raise ValueError(f"{self!r} is not ready")
        return not self._future.cancelled() and self._future.exception() is None


class IMapIterator(Generic[T]):
    """As multiprocessing's: ``next(timeout)`` raises multiprocessing.TimeoutError."""

    def __init__(self, stream: Stream[T]) -> None:
        self._stream = stream

    def __iter__(self) -> IMapIterator[T]:
        return self

    def __next__(self) -> T:
        return self._stream.next()

    def next(self, timeout: float | None = None) -> T:
        try:
            return self._stream.next(timeout)
        except NotYet as late:
            raise result_timeout()(str(late)) from None


class Pool:
    """multiprocessing.Pool's calls, over worker processes or over any other pool.

    Differences: a worker that dies loses its own task only; ``imap`` and ``imap_unordered`` read their input
    as results are taken, so that it may be endless; callbacks are called by a worker's thread, and one that
    raises stops nothing.

    Args:
        processes, initializer, initargs, maxtasksperchild, context: as multiprocessing's.
        over: a pool to make the calls on, in place of processes.
    """

    def __init__(
        self,
        processes: int | None = None,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        maxtasksperchild: int | None = None,
        context: Any = None,
        *,
        over: base.Pool | None = None,
    ) -> None:
        if over is None:
            from fairlead.pools.processes import ProcessPool

            over = ProcessPool(
                processes, mp_context=context, initializer=initializer, initargs=tuple(initargs),
                max_tasks_per_child=maxtasksperchild,
            )  # fmt: skip
        self._pool = over
        self._engine = over._engine

    def __enter__(self) -> Self:
        self._pool.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self.terminate()

    def map(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int | None = None) -> list[T]:
        """Calls it for each item, and waits for all; raises what the first call raised."""
        return self.map_async(func, iterable, chunksize).get()

    def apply(
        self, func: Callable[..., T], args: Iterable[Any] = (), kwds: dict[str, Any] | None = None
    ) -> T:
        """Calls it in a worker and waits."""
        return self._pool._submit(func, tuple(args), dict(kwds or {})).result()

    def apply_async(
        self,
        func: Callable[..., T],
        args: Iterable[Any] = (),
        kwds: dict[str, Any] | None = None,
        callback: Callable[[T], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[T]:
        future = self._pool._submit(func, tuple(args), dict(kwds or {}))
        return AsyncResult(self._engine, future, callback, error_callback)

    def map_async(
        self,
        func: Callable[[Any], T],
        iterable: Iterable[Any],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        return self._map_async(func, iterable, chunksize, callback, error_callback, star=False)

    def starmap(
        self, func: Callable[..., T], iterable: Iterable[Iterable[Any]], chunksize: int | None = None
    ) -> list[T]:
        """As ``map``, each item being the call's arguments; waits for all."""
        return self.starmap_async(func, iterable, chunksize).get()

    def starmap_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Iterable[Any]],
        chunksize: int | None = None,
        callback: Callable[[list[T]], object] | None = None,
        error_callback: Callable[[BaseException], object] | None = None,
    ) -> AsyncResult[list[T]]:
        return self._map_async(func, iterable, chunksize, callback, error_callback, star=True)

    def _map_async(
        self,
        func: Callable[..., T],
        iterable: Iterable[Any],
        chunksize: int | None,
        callback: Callable[[list[T]], object] | None,
        error_callback: Callable[[BaseException], object] | None,
        *,
        star: bool,
    ) -> AsyncResult[list[T]]:
        whole: Future[list[T]] = Future()
        result = AsyncResult(self._engine, whole, callback, error_callback)

        def finish(stream: Stream[T]) -> None:
            try:
                results = list(stream)
            except BaseException as error:  # noqa: BLE001 - the result's
                whole.set_exception(error)
            else:
                whole.set_result(results)

        Stream(self._pool, func, list(iterable), star=star, chunksize=chunksize, eager=True, at_end=finish)
        return result

    def imap(self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int = 1) -> IMapIterator[T]:
        return IMapIterator(Stream(self._pool, func, iterable, star=False, chunksize=chunksize))

    def imap_unordered(
        self, func: Callable[[Any], T], iterable: Iterable[Any], chunksize: int = 1
    ) -> IMapIterator[T]:
        stream: Stream[T] = Stream(self._pool, func, iterable, star=False, chunksize=chunksize, ordered=False)
        return IMapIterator(stream)

    def close(self) -> None:
        """No more tasks; those taken are finished."""
        self._pool.shutdown(wait=False)

    def terminate(self) -> None:
        """Cancels what is queued and stops what runs; does not wait."""
        self._pool.terminate()

    def join(self, timeout: float | None = None) -> None:
        """Waits until the workers have ended, after ``close`` or ``terminate``; TimeoutError if they have not
        within the time."""
        if not self._engine.closed:
            raise UsageError("join() waits for the end of a pool: call close() or terminate() first")
        self._pool.shutdown(timeout=timeout)

"""Pebble's pools over ours: its names of the calls, and nothing else."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import pebble

from fairlead import pools
from fairlead.errors import WorkerDiedError


class MapFuture:
    def __init__(self, results: Any) -> None:
        self._results = results
        self.cancel = results.close

    def result(self) -> Any:
        return self._results


class BasePool:
    def __init__(
        self,
        max_workers: int | None = None,
        max_tasks: int = 0,
        initializer: Callable[..., object] | None = None,
        initargs: Iterable[Any] = (),
        **given: Any,
    ) -> None:
        self.inner = self.kind(
            max_workers, initializer=initializer, initargs=tuple(initargs),
            max_tasks_per_child=max_tasks or None, **given,
        )  # fmt: skip

    kind: Callable[..., pools.Pool]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
        self.join()

    @property
    def active(self) -> bool:
        return self.inner._engine.statistics().started > 0 or not self.inner._engine.closed

    def schedule(
        self, function: Callable[..., Any], args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> Any:  # fmt: skip
        return self.inner.with_options(timeout=timeout).submit(function, *args, **(kwargs or {}))

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        return self.schedule(function, args, kwargs)

    def map(
        self, function: Callable[..., Any], *iterables: Iterable[Any], timeout: float | None = None,
        chunksize: int = 1,
    ) -> MapFuture:  # fmt: skip
        over = self.inner.with_options(timeout=timeout)
        return MapFuture(over.map(function, *iterables, chunksize=chunksize))

    def close(self) -> None:
        self.inner.shutdown(wait=False)

    def stop(self) -> None:
        self.inner.terminate()

    def join(self, timeout: float | None = None) -> None:
        if not self.inner._engine.closed:
            raise RuntimeError("it is still running")
        self.inner.shutdown(timeout=timeout)


class ThreadPool(BasePool):
    kind = pools.ThreadPool


class ProcessPool(BasePool):
    def __init__(self, *args: Any, context: Any = multiprocessing, **given: Any) -> None:
        method = context.get_start_method()
        super().__init__(*args, **given, mp_context=method)

    kind = pools.ProcessPool

    def submit(
        self, function: Callable[..., Any], timeout: float | None = None, /, *args: Any, **kwargs: Any
    ) -> Any:
        return self.schedule(function, args, kwargs, timeout)


pebble.ThreadPool, pebble.ProcessPool, pebble.ProcessExpired = ThreadPool, ProcessPool, WorkerDiedError

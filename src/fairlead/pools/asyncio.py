"""A ThreadPool as asyncio's default executor."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from fairlead.pools.engine.future import Future
from fairlead.pools.threads import ThreadPool

P = ParamSpec("P")
T = TypeVar("T")


class AsyncioExecutor(concurrent.futures.ThreadPoolExecutor):
    """``loop.set_default_executor(AsyncioExecutor(8))``: asyncio takes no other executor than one of this
    class of the standard library, of which nothing but the type is used.

    Args: as of ThreadPool, which is ``pool``.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        **options: Any,
    ) -> None:
        self.pool = ThreadPool(max_workers, thread_name_prefix, initializer, initargs, **options)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        return self.pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self.pool.shutdown(wait, cancel_futures=cancel_futures)

"""AsyncPool: coroutines, many at once, on an event loop of the pool's own."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from fairlead.pools.engine.contract import StartLimit
from fairlead.pools.event_loop.engine import Loop
from fairlead.pools.executor.base import Pool, checked, checked_callable, checked_seconds, pool_name

if TYPE_CHECKING:
    from fairlead.pools.engine.future import Future

P = ParamSpec("P")
T = TypeVar("T")

WORKERS = 100
"""At once, if no number is given: coroutines cost little, and what they call does not like thousands."""


class AsyncPool(Pool):
    """Calls on an event loop in a thread of its own: for coroutine functions, and much waiting at once.

    ``submit``, ``map`` and the others take coroutine functions and are given what their coroutines return. A
    plain function is called on the loop's thread too: it may use the loop, and should not keep it.

    Time-outs and cancellation end the future at once and cancel the coroutine, which has its place until it
    has ended. One that computes just then is sent an exception, as a thread of ThreadPool; **inside a call
    into C it cannot be stopped before that returns, and all others wait for it meanwhile.** A coroutine of
    the pool waits for another by ``await pool.run(...)``, which lends its place; ``result()`` raises
    DeadlockError there.

    Args:
        max_workers: coroutines at once; None for 100.
        initializer: called on the loop before the first task, and awaited if it is a coroutine function. If
            it raises, the pool is broken, and every task raises a BrokenPoolError whose cause is that
            exception.
        thread_name_prefix: of its thread.
        finalizer: called on the loop when the pool ends, and awaited if it is a coroutine function. What it
            raises is logged.
        start_timeout: seconds that the initializer may take; then the pool is broken, as if it had raised.
            None for no limit.
    """

    _engine: Loop

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        finalizer: Callable[[], object] | None = None,
        start_timeout: float | None = None,
    ) -> None:
        checked_callable(initializer=initializer, finalizer=finalizer)
        number = WORKERS if max_workers is None else checked("max_workers", max_workers)
        initialize = None if initializer is None else (initializer, initargs)
        name = pool_name(thread_name_prefix, "AsyncPool")
        limit = StartLimit.of(checked_seconds("start_timeout", start_timeout), initializer)
        self._begin(Loop(number, initialize, finalizer, name, limit))

    if TYPE_CHECKING:

        @overload  # a coroutine function's task has what its coroutine returns
        def submit(
            self, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
        ) -> Future[T]: ...
        @overload
        def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]: ...
        def submit(self, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Future[Any]: ...

        @overload
        async def run(
            self, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
        ) -> T: ...
        @overload
        async def run(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
        async def run(self, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> Any: ...

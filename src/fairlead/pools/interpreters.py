"""InterpreterPool: calls in interpreters of this process, each with a GIL of its own."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from fairlead.errors import UnsupportedInterpreterError
from fairlead.pools.executor.base import Pool, checked_workers, worker_options


class InterpreterPool(Pool):
    """Calls in interpreters of this process, each with a GIL of its own: for work that computes, without the
    cost of processes.

    A worker shares no objects with this interpreter, and imports its modules anew. Functions go by reference
    where a worker can import them, and by value where not: lambdas, closures, all of ``__main__``. A function
    is unpickled once in each worker. ``None``, numbers, strings, bytes and tuples of them go as they are, all
    else as a pickle.

    A time-out or a cancellation ends the future at once and raises an exception in the worker at its next
    step in Python; a new interpreter takes its place. **A worker that is inside a call into C (sleeping, a
    long computation of a library) cannot be stopped before that call returns**, nor one whose task catches
    BaseException.

    A module that refuses to be imported in such an interpreter gives a ModuleRefusedError that names it.

    Args:
        max_workers: interpreters; None: as many as cores that this process may use, affinity and quota
            counted.
        initializer: called in each worker before its first task. If it raises, the pool is broken, and every
            task raises a BrokenPoolError whose cause is that exception.
        max_tasks_per_child: tasks after which an interpreter is replaced; None for never.
        thread_name_prefix: of the threads.
        finalizer: called in each worker that ends by itself, after its last task. What it raises is logged.
            A worker that is stopped has no time for it.
        idle_timeout: seconds without a task after which a worker ends; None for never.
        forward_logging: whether this program's loggers, and so its handlers, handle what workers log.
        start_timeout: seconds that a worker's start may take, its imports and the initializer included; then
            the pool is broken, as if the initializer had raised, and leaves the worker behind. None for no
            limit.

    Raises:
        UnsupportedInterpreterError: this is not CPython 3.13 or newer, or tracemalloc traces, before 3.15.
    """

    def __init__(
        self,
        max_workers: int | None = None,
        thread_name_prefix: str = "",
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        *,
        max_tasks_per_child: int | None = None,
        finalizer: Callable[[], object] | None = None,
        idle_timeout: float | None = None,
        forward_logging: bool = False,
        start_timeout: float | None = None,
    ) -> None:
        _check_interpreter()
        options = worker_options(
            "InterpreterPool", thread_name_prefix, initializer, finalizer, max_tasks_per_child, idle_timeout,
            start_timeout,
        )  # fmt: skip
        from fairlead.pools.interpreter import tracing
        from fairlead.pools.interpreter.engine import Interpreters

        tracing.check()
        hooks = initializer, initargs, finalizer
        self._begin(
            Interpreters(checked_workers(max_workers), hooks, forward_logging=forward_logging, **options)
        )


def _check_interpreter() -> None:
    name = sys.implementation.name
    if name != "cpython" or sys.version_info < (3, 13):
        version = ".".join(map(str, sys.version_info[:3]))
        raise UnsupportedInterpreterError(
            f"InterpreterPool needs CPython 3.13 or newer, and this is {name} {version}; "
            "ThreadPool and ProcessPool work here"
        )

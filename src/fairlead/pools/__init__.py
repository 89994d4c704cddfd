"""One executor over threads, processes and more: the same calls, whatever does the work.

    from fairlead.pools import ThreadPool

    with ThreadPool(8) as pool:
        future = pool.submit(fetch, url)             # concurrent.futures
        for page in pool.map(fetch, urls): ...       # in order
        for page in pool.stream(fetch, endless): ... # bounded, however much comes
        page = await pool.run(fetch, url)            # in a task of asyncio or trio

docs/reference/pools.md tells what each kind promises, and engine/contract.py what a kind has to do. A kind's
module is imported when the kind is asked for.
"""

from __future__ import annotations

TYPE_CHECKING = False  # not typing's, which is slow to import: each interpreter of a pool imports this
if TYPE_CHECKING:
    from typing import Any, Literal, overload

    from fairlead.pools.asynchronous import AsyncPool
    from fairlead.pools.auto import AutoPool
    from fairlead.pools.choose.choice import Choice
    from fairlead.pools.dask import DaskPool
    from fairlead.pools.engine.contract import Options, Statistics
    from fairlead.pools.engine.future import Future
    from fairlead.pools.engine.worker_slots import check_cancelled
    from fairlead.pools.engine.worker_state import worker_state
    from fairlead.pools.executor.base import Pool
    from fairlead.pools.executor.stream import Stream
    from fairlead.pools.interpreters import InterpreterPool
    from fairlead.pools.process.shared_value import SharedValue
    from fairlead.pools.processes import ProcessPool
    from fairlead.pools.sequential import SequentialPool
    from fairlead.pools.serialization.failure import WorkerTraceback
    from fairlead.pools.shared import shared_pool
    from fairlead.pools.threads import ThreadPool

_WHERE = {
    "AsyncPool": "asynchronous",
    "AutoPool": "auto",
    "Choice": "choose.choice",
    "DaskPool": "dask",
    "Future": "engine.future",
    "InterpreterPool": "interpreters",
    "Options": "engine.contract",
    "Pool": "executor.base",
    "ProcessPool": "processes",
    "SequentialPool": "sequential",
    "SharedValue": "process.shared_value",
    "Statistics": "engine.contract",
    "Stream": "executor.stream",
    "ThreadPool": "threads",
    "WorkerTraceback": "serialization.failure",
    "check_cancelled": "engine.worker_slots",
    "shared_pool": "shared",
    "worker_state": "engine.worker_state",
}

__all__ = [
    "AsyncPool",
    "AutoPool",
    "Choice",
    "DaskPool",
    "Future",
    "InterpreterPool",
    "Options",
    "Pool",
    "ProcessPool",
    "SequentialPool",
    "SharedValue",
    "Statistics",
    "Stream",
    "ThreadPool",
    "WorkerTraceback",
    "check_cancelled",
    "kinds",
    "pool",
    "shared_pool",
    "worker_state",
]

_KINDS = {
    "auto": "AutoPool",
    "sequential": "SequentialPool",
    "threads": "ThreadPool",
    "processes": "ProcessPool",
    "interpreters": "InterpreterPool",
    "async": "AsyncPool",
    "dask": "DaskPool",
}


def kinds() -> tuple[str, ...]:
    """What ``pool`` can be asked for."""
    return tuple(_KINDS)


if TYPE_CHECKING:

    @overload
    def pool(kind: Literal["auto"] = "auto", max_workers: int | None = None, **options: Any) -> AutoPool: ...
    @overload
    def pool(kind: str, max_workers: int | None = None, **options: Any) -> Pool: ...


def pool(kind: str = "auto", max_workers: int | None = None, **options: Any) -> Pool:
    """A pool of the kind: "sequential", "threads", "processes", "interpreters", "async",
    "dask", or "auto" to have one chosen.

    Args:
        options: what the kind's class takes.
    """
    if kind not in _KINDS:
        from fairlead.errors import UsageError

        raise UsageError(f"there is no pool of kind {kind!r}; there are {', '.join(_KINDS)}")
    made: Pool = __getattr__(_KINDS[kind])(
        **({} if max_workers is None else {"max_workers": max_workers}), **options
    )
    return made


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value

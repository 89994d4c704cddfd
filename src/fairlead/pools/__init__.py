"""One executor over threads, processes and more: the same calls, whatever does the work.

    from fairlead.pools import ThreadPool

    with ThreadPool(8) as pool:
        future = pool.submit(fetch, url)             # concurrent.futures
        pages = pool.map(fetch, urls)                # and multiprocessing.Pool
        for page in pool.stream(fetch, endless): ... # bounded, however much comes
        page = await pool.run(fetch, url)            # in a task of asyncio or trio

docs/reference/pools.md tells what each kind promises, and contract.py what a kind has to do. A kind's module
is imported when the kind is asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.pools.base import Pool
    from fairlead.pools.contract import Options, Statistics
    from fairlead.pools.future import Future
    from fairlead.pools.processes import ProcessPool
    from fairlead.pools.sequential import SequentialPool
    from fairlead.pools.threads import ThreadPool

_WHERE = {
    "Future": "future",
    "Options": "contract",
    "Pool": "base",
    "ProcessPool": "processes",
    "SequentialPool": "sequential",
    "Statistics": "contract",
    "ThreadPool": "threads",
}

__all__ = ["Future", "Options", "Pool", "ProcessPool", "SequentialPool", "Statistics", "ThreadPool"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value

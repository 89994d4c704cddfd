"""One pool for all parts of a program that ask for the same: starting workers costs more than many calls."""

from __future__ import annotations

from collections.abc import Hashable

from fairlead.pools import pool as make
from fairlead.pools.engine import forks
from fairlead.pools.engine.lock import EngineLock
from fairlead.pools.executor.base import Pool

_pools: dict[tuple[object, ...], Pool] = {}
_lock = EngineLock()


@forks.in_child
def _renew() -> None:
    global _lock
    _lock = EngineLock()


def shared_pool(kind: str = "processes", max_workers: int | None = None, **options: Hashable) -> Pool:
    """The program's own pool of this kind and size, with these options, made by the first call that asks for
    it.

    Another takes its place when it has been shut down, is broken, or belongs to the process that this one was
    forked from. Leave it open, and so do not enter it by ``with``: others use it, and it ends with the
    program.

    Args: as ``pool`` takes them.
    """
    asked = (kind, max_workers, *sorted(options.items()))
    with _lock:
        found = _pools.get(asked)
        if found is None or found._engine.closed:
            found = _pools[asked] = make(kind, max_workers, **options)
        return found

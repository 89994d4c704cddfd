"""The errors of queues, as they are raised: also those of asyncio, which a program may be catching."""

from __future__ import annotations

import sys

from fairlead import errors


def __getattr__(name: str) -> type[Exception]:
    """fairlead.errors' class of this name, or one that is asyncio's class of that name too."""
    mine: type[Exception] = getattr(errors, name)
    theirs = getattr(sys.modules.get("asyncio"), name, None)
    return mine if theirs is None else _both(mine, theirs)


_made: dict[type[Exception], type[Exception]] = {}


def _both(mine: type[Exception], theirs: type[Exception]) -> type[Exception]:
    if mine in _made:
        return _made[mine]

    def reduce(error: Exception) -> tuple[type[Exception], tuple[object, ...]]:
        return mine, error.args

    words = {"__module__": mine.__module__, "__doc__": mine.__doc__, "__reduce__": reduce}
    return _made.setdefault(mine, type(mine.__name__, (mine, theirs), words))

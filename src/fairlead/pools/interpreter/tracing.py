"""Interpreters and tracemalloc. Before 3.15, CPython crashes once an interpreter has ended while tracemalloc
traced (cpython#146089): it keeps references to that interpreter's objects."""

from __future__ import annotations

import atexit
import functools
import sys

from fairlead.errors import UnsupportedInterpreterError

_kept: list[int] = []
"""Interpreters that are to end once nothing is traced. Appending and popping need no lock."""


def why_not() -> str | None:
    """Why interpreters must not be made now; None if they may."""
    if _traces():
        return "tracemalloc traces, and before Python 3.15 an interpreter that ends then crashes its process"
    return None


def check() -> None:
    """Raises UnsupportedInterpreterError."""
    if (reason := why_not()) is not None:
        raise UnsupportedInterpreterError(
            f"{reason}; call tracemalloc.stop() before, use ProcessPool, or take Python 3.15"
        )


def end(number: int) -> None:
    """Ends the interpreter: now, or with the first one to end after the tracing, or with the program."""
    import _interpreters  # type: ignore[import-not-found]

    _kept.append(number)
    if _traces():
        _at_exit()
        return
    while _kept:
        try:
            one = _kept.pop()
        except IndexError:  # another thread's
            return
        _interpreters.destroy(one)


@functools.cache
def _at_exit() -> None:
    atexit.register(_end_all)


def _end_all() -> None:
    """The interpreter's own end would end them while it traces."""
    if _kept and _traces():
        import tracemalloc

        tracemalloc.stop()
    if _kept:
        end(_kept.pop())


def _traces() -> bool:
    if sys.version_info >= (3, 15):
        return False
    try:
        import _tracemalloc  # of -X tracemalloc there is no other sign
    except ImportError:  # in an interpreter there is none at all
        return False
    return _tracemalloc.is_tracing()

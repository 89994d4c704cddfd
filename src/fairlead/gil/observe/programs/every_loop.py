"""What a recorded program begins with, and one under ``run --loops``: each of its event loops is watched,
as by ``watch_loop``.

Loops of asyncio and uvloop say that they run by ``asyncio._set_running_loop``, which is replaced when the
program imports asyncio; one that does not pays nothing. The watch begins in a timer of the loop, so that many
short runs of a loop do not start a thread each.
"""

from __future__ import annotations

import os
import sys
from _thread import _local

from fairlead.errors import FairleadError
from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.importing import when_imported
from fairlead.gil.observe.programs.starting import Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable
    from typing import Any

INTERVAL, THRESHOLD = 0.05, 0.005
"""The interval is that of ``watch_loop``. A switch interval late is late enough to be judged."""


def watch_action() -> Action:
    """Watch the loops of a program that is started."""
    return Action(__name__, {})


def begin(_settings: dict[str, Any]) -> str | None:
    """Watch every loop that runs from now on, or return why that cannot be."""
    if why := why_not():
        return why
    when_imported("asyncio", _watch_all)
    return None


class _Here(_local):
    """Of one thread: the loop that runs, and what ends its watch."""

    loop: AbstractEventLoop | None = None
    end: Callable[[], object] | None = None


_here = _Here()


def _watch_all(asyncio: Any) -> None:
    original = asyncio._set_running_loop

    def _set_running_loop(loop: AbstractEventLoop | None) -> None:
        original(loop)
        if loop is not _here.loop:
            _changed(loop)

    asyncio._set_running_loop = asyncio.events._set_running_loop = _set_running_loop
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    """In a forked child, where the thread of no watch exists."""
    global _here
    _here = _Here()


def _changed(loop: AbstractEventLoop | None) -> None:
    _here.loop = loop
    end, _here.end = _here.end, None
    if end is not None:
        end()
    if loop is not None:
        try:
            _here.end = loop.call_later(INTERVAL, _begin).cancel
        except (RuntimeError, NotImplementedError):  # a loop that is none of asyncio's or uvloop's
            return


def _begin() -> None:
    """In the loop."""
    try:
        from fairlead.gil.observe.loop_lag import LoopLag

        lag = LoopLag(INTERVAL, THRESHOLD)
        lag.__enter__()
    except (FairleadError, ImportError) as error:  # a module of the program may stand in for one of Python's
        print(f"fairlead: an event loop is not watched: {error}", file=sys.stderr, flush=True)
        _here.end = None
    else:
        _here.end = lambda: lag.__exit__(None, None, None)

"""How a task is stopped. Imported by workers of every kind: its imports are few."""

from __future__ import annotations

import sys

from fairlead._native import dropped_hook, send_exception


class Stopped(BaseException):
    """Sent into a worker's thread to end its task; never leaves the pool."""


def send_stop(ident: int) -> None:
    """Has a thread raise Stopped at its next step in Python."""
    keep_stops()
    send_exception(ident, Stopped)


def keep_stops() -> None:
    """Python reports and drops what is raised in a deallocator or in a weak reference's callback, and the
    task would go on. So a Stopped that is dropped there is sent again."""
    hook = sys.unraisablehook
    if not isinstance(getattr(hook, "__self__", None), tuple):  # it is another than this
        sys.unraisablehook = dropped_hook(Stopped, hook)

"""The priorities of threads."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.observe.access import require
from fairlead.record.policies import PRIORITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.record.policies import Priority as Priority

NICE = {"io": -5, "background": 10}


@contextmanager
def prioritised(level: Priority) -> Iterator[None]:
    """``fairlead.gil.priority``."""
    if level not in PRIORITIES:
        raise UsageError(f"no priority {level!r}; it is one of {', '.join(PRIORITIES)}")
    try:
        require()
    except UnsupportedInterpreterError:
        with _nice(level):
            yield
        return
    from fairlead import _probe

    before = _probe.priority(PRIORITIES.index(level))
    try:
        yield
    finally:
        _probe.priority(before)


@contextmanager
def _nice(level: Priority) -> Iterator[None]:
    """Where there is no GIL to schedule, the kernel's scheduler is told, as far as it lets us."""
    if level not in NICE or sys.platform != "linux":
        yield
        return
    thread = threading.get_native_id()
    before = os.getpriority(os.PRIO_PROCESS, thread)
    wanted = (min if level == "io" else max)(before, NICE[level])
    with suppress(PermissionError):  # only the privileged may raise a thread
        os.setpriority(os.PRIO_PROCESS, thread, wanted)
    try:
        yield
    finally:
        with suppress(PermissionError):  # likewise: else the thread stays in the background
            os.setpriority(os.PRIO_PROCESS, thread, before)

"""A gate where threads or processes gather, so that starting n of them takes n steps."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, final

from fairlead._native import EventStatistics, Gate
from fairlead.errors import UsageError

if TYPE_CHECKING:
    from fairlead.wait import Operation

_P = ParamSpec("_P")
_R = TypeVar("_R")


@final
class StartGate:
    """Starts n threads or processes in a time proportional to n.

    While threads are started one after the other, those that already run take turns with the one that starts
    them, and with n of them that becomes a square. Behind a gate they sleep without the GIL instead::

        gate = StartGate()
        with gate:  # opens at the end of the block
            for _ in range(n):
                threading.Thread(target=gate.behind(work)).start()

    An open gate stays open: later callers pass. Of more than eight threads opening wakes two, and each
    of them two more before it asks for the GIL.

    With ``processes=True`` the gate is a descriptor that processes share which this one forks, or starts by
    :mod:`multiprocessing` with the gate among the arguments; tasks cannot wait for such a gate.
    """

    __slots__ = ("__weakref__", "_ends", "_gate")

    def __init__(self, *, processes: bool = False) -> None:
        self._gate = Gate()
        self._ends: tuple[int, int] | None = os.pipe() if processes else None

    def open(self) -> None:
        """Lets all waiters pass, and later callers too. Never waits."""
        if self._ends is not None and not self.is_open():
            os.write(self._ends[1], b"o")  # it is never read, so it stays there for all that look
        self._gate.open()

    def is_open(self) -> bool:
        """Whether the gate was open, a moment ago."""
        return self._gate.is_open() or (self._ends is not None and self._readable(0))

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until the gate is open; False: the time was over first. For threads and processes."""
        if self._ends is None:
            return self._gate.wait(timeout)
        if timeout is not None and not timeout >= 0:
            raise ValueError("timeout value must be a non-negative number, or None")
        return self._readable(timeout)

    def wait_async(self) -> Operation[bool]:
        """An awaitable that waits until the gate is open, and returns True. For tasks."""
        if self._ends is not None:
            raise UsageError("tasks cannot wait for a gate of processes: let a thread wait for it")
        return self._gate.wait_async()

    def behind(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        """A function that waits for the gate and then calls this one with its own arguments."""
        return _Behind(self, function)

    def statistics(self) -> EventStatistics:
        """A record of the moment: is_set, waiting (threads and tasks of this process, not of others)."""
        return self._gate.statistics()

    def _readable(self, timeout: float | None) -> bool:
        assert self._ends is not None
        poll = select.poll()
        poll.register(self._ends[0], select.POLLIN)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            # poll() takes whole milliseconds as a C int: a longer wait is several
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if poll.poll(None if left is None else min(left, 1e6) * 1000):
                return True
            if deadline is not None and time.monotonic() >= deadline:
                return False

    def __enter__(self) -> StartGate:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.open()

    def __repr__(self) -> str:
        kind = " for processes" if self._ends is not None else ""
        return f"<fairlead.sync.StartGate{kind} {'open' if self.is_open() else 'closed'}>"

    def __reduce__(self) -> tuple[Any, ...]:
        if self._ends is None:
            return _attached, (self._gate,)
        from multiprocessing.reduction import DupFd

        return _elsewhere, tuple(map(DupFd, self._ends))

    def __del__(self) -> None:
        for end in getattr(self, "_ends", None) or ():
            os.close(end)


class _Behind:
    """A function behind a gate; a class, so that it can be pickled for another process."""

    def __init__(self, gate: StartGate, function: Callable[..., Any]) -> None:
        self._gate = gate
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._gate.wait()
        return self._function(*args, **kwargs)


def _elsewhere(*ends: Any) -> StartGate:
    """The same gate in the process that these ends have come to."""
    gate = StartGate()
    gate._ends = (ends[0].detach(), ends[1].detach())
    return gate


def _attached(native: Gate) -> StartGate:
    """The same gate in another interpreter."""
    gate = StartGate()
    gate._gate = native
    return gate

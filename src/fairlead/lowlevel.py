"""What primitives of one's own are made of: waiters that any thread, task or greenlet can wait with.

A :class:`Waiter` is one wait. The side that releases calls :meth:`~Waiter.grant`, a waiter that gives up
calls :meth:`~Waiter.cancel`, and of the two one wins: nothing is granted to a waiter that has left, and a
leaving one knows whether something was granted. docs/reference/lowlevel.md builds a lock from it.

A :class:`Mailbox` is the way into one event loop, and :func:`add_loop` makes a loop known that fairlead does
not know. An :class:`Operation` is the awaitable that every primitive returns.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar, final

from fairlead.sync import Event
from fairlead.wait import Mailbox, Operation, add_loop, current_mailbox, current_task

__all__ = ["Mailbox", "Operation", "Waiter", "add_loop", "current_mailbox", "current_task"]

_T = TypeVar("_T")


@final
class Waiter(Generic[_T]):
    """One wait of one thread, task or greenlet, used once.

    ``grant`` and ``cancel`` never wait, and may be called from any thread, a signal handler or a destructor.
    The first of them that is called wins, and says True; the others change nothing and say False.
    """

    __slots__ = ("__weakref__", "_event", "_outcome")

    def __init__(self) -> None:
        self._event: Final = Event()
        self._outcome: Final[dict[int, list[_T | None]]] = {}

    @property
    def value(self) -> _T | None:
        """What was granted; None before, and after ``cancel``."""
        found = self._outcome.get(0)
        return None if found is None else found[0]

    def grant(self, value: _T | None = None) -> bool:
        """Ends the wait with a value. False: it had been granted or cancelled before, and nothing changes."""
        if not self._settle([value]):
            return False
        self._event.set()
        return True

    def cancel(self) -> bool:
        """Gives up, for the side that waits. False: it was granted, and what it got is to be handed over."""
        return self._settle([None])

    def wait(self, timeout: float | None = None) -> bool:
        """Waits until it is granted; False: the time was over first. For threads and greenlets.

        After False, or an exception of a signal handler, call ``cancel`` next.
        """
        return self._event.wait(timeout)

    def wait_async(self) -> Operation[bool]:
        """An awaitable that waits until it is granted. For tasks; one that is cancelled calls ``cancel``."""
        return self._event.wait_async()

    def _settle(self, outcome: list[_T | None]) -> bool:
        return self._outcome.setdefault(0, outcome) is outcome  # atomic, with a GIL and without

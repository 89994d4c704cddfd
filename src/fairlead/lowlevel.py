"""What primitives of one's own are made of: waiters that any thread, task or greenlet can wait with.

A :class:`Waiter` is one wait. The side that releases calls :meth:`~Waiter.grant`, a waiter that gives up
calls :meth:`~Waiter.cancel`, and of the two one wins: nothing is granted to a waiter that has left, and a
leaving one knows whether something was granted. docs/reference/lowlevel.md builds a lock from it.

A :class:`Mailbox` is the way into one event loop, and :func:`add_loop` makes a loop known that fairlead does
not know. An :class:`Operation` is the awaitable that every primitive returns.
"""

from __future__ import annotations

from fairlead._native import Waiter
from fairlead.wait import Mailbox, Operation, add_loop, current_mailbox, current_task

__all__ = ["Mailbox", "Operation", "Waiter", "add_loop", "current_mailbox", "current_task"]

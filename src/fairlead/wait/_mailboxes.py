"""The mailboxes of this interpreter, which close with it."""

from __future__ import annotations

import atexit
from weakref import WeakSet

from fairlead._native import Mailbox, in_main_interpreter

_mailboxes: WeakSet[Mailbox] = WeakSet()


def enlisted(mailbox: Mailbox) -> Mailbox:
    """The mailbox, which is now known to this interpreter; for every adapter that makes one."""
    _mailboxes.add(mailbox)
    return mailbox


def _close() -> None:
    """No task of this interpreter runs again: none may stay in a queue that other interpreters share."""
    for mailbox in list(_mailboxes):
        mailbox.close()


if not in_main_interpreter():  # whose end is that of the process, and which may still have daemon threads
    atexit.register(_close)

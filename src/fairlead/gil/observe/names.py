"""Names of threads.

The extension knows threads by their number in the operating system. What ``threading`` calls them is asked
whenever counters are read; and since a thread may have ended by then, also when it is started: during an
observation, ``Thread.start`` is wrapped. That is public, and the one moment at which both the name and the
number are known for certain. Threads that were there before are noted when observation begins; the extension
knows them from their next turn on, so they are told to it again. A thread that was not started through
``threading`` has the name that it gave itself in the operating system, if it did.
"""

from __future__ import annotations

import os

from fairlead.gil.observe.access import exclusive
from fairlead.gil.observe.importing import when_imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from threading import Thread
    from types import ModuleType
    from typing import Any

_users = 0
_threading: Any = None
"""The module, once the program has imported it."""
_wrapped: Any = None
"""What is ``Thread.start`` meanwhile, and its ``__wrapped__`` what it was."""
_early: dict[int, str] = {}
"""Names of the threads that were alive when following began, by number; only of those."""


def follow() -> None:
    """Note the names of threads that are started from now on, until as many ``unfollow``."""
    global _users, _early
    with exclusive():
        _users += 1
        if _users == 1:
            _early = _alive()
            _wrap()
    update()


def unfollow() -> None:
    """Take one ``follow`` back. The names known so far stay known."""
    global _users
    update()
    with exclusive():
        _users -= 1
        # another library may have wrapped it after us: then ours stays where it is, and does nothing more
        if _users == 0 and _threading is not None and _threading.Thread.start is _wrapped:
            _threading.Thread.start = _wrapped.__wrapped__


def _meet(threading: ModuleType) -> None:
    global _threading
    with exclusive():
        _threading = threading
        if _users:
            _wrap()


def _wrap() -> None:
    global _wrapped
    if _threading is not None and _threading.Thread.start is not _wrapped:
        _wrapped = _threading.Thread.start = _noting(_threading.Thread.start)


def _noting(original: Callable[[Thread], None]) -> Callable[[Thread], None]:
    def start(self: Thread) -> None:
        original(self)
        if _users and self.native_id:
            _early.pop(self.native_id, None)
            _note({self.native_id: self.name})

    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(start, name, getattr(original, name))
    start.__wrapped__ = original  # type: ignore[attr-defined]
    return start


def update() -> None:
    """Note the names of all threads that are alive, and of those that were when following began."""
    alive = _alive()
    _early.update((number, name) for number, name in alive.items() if number in _early)
    _note({**_early, **alive})


def _alive() -> dict[int, str]:
    if _threading is None:
        return {os.getpid(): "MainThread"}
    threads = _threading.enumerate()
    names = {thread.native_id: thread.name for thread in threads if thread.native_id}
    # in a forked child of 3.11 the one thread there is still has the number that it had in the parent
    here = _threading.get_ident()
    mine = {_threading.get_native_id(): one.name for one in threads if one.ident == here}
    return names | mine


def _note(names: dict[int, str]) -> None:
    from fairlead import _probe

    _probe.name(names)


when_imported("threading", _meet)

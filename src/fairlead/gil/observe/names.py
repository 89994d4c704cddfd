"""Names of threads.

The extension knows threads by their number in the operating system. What ``threading`` calls them is asked
whenever counters are read; and since a thread may have ended by then, also when it is started: during an
observation, ``Thread.start`` is wrapped. That is public, and the one moment at which both the name and the
number are known for certain. Threads that were there before are noted when observation begins; the extension
knows them from their next turn on, so they are told to it again. A thread that was not started through
``threading`` has the name that it gave itself in the operating system, if it did.
"""

from __future__ import annotations

import functools
import threading

from fairlead.gil.observe.access import exclusive

_users = 0
_original = threading.Thread.start
_early: dict[int, str] = {}
"""Names of the threads that were alive when following began, by number; only of those."""


@functools.wraps(_original)
def _start(self: threading.Thread) -> None:
    _original(self)
    if _users and self.native_id:
        _early.pop(self.native_id, None)
        _note({self.native_id: self.name})


def follow() -> None:
    """Note the names of threads that are started from now on, until as many ``unfollow``."""
    global _users, _original, _early
    with exclusive():
        _users += 1
        if _users == 1:
            _early = _alive()
        if _users == 1 and threading.Thread.start is not _start:
            _original = threading.Thread.start
            threading.Thread.start = _start  # type: ignore[method-assign]
    update()


def unfollow() -> None:
    """Take one ``follow`` back. The names known so far stay known."""
    global _users
    update()
    with exclusive():
        _users -= 1
        # another library may have wrapped it after us: then ours stays where it is, and does nothing more
        if _users == 0 and threading.Thread.start is _start:
            threading.Thread.start = _original  # type: ignore[method-assign]


def update() -> None:
    """Note the names of all threads that are alive, and of those that were when following began."""
    alive = _alive()
    _early.update((number, name) for number, name in alive.items() if number in _early)
    _note({**_early, **alive})


def _alive() -> dict[int, str]:
    names = {thread.native_id: thread.name for thread in threading.enumerate() if thread.native_id}
    # in a forked child of 3.11 the one thread there is still has the number that it had in the parent
    here = threading.get_ident()
    mine = {threading.get_native_id(): one.name for one in threading.enumerate() if one.ident == here}
    return names | mine


def _note(names: dict[int, str]) -> None:
    from fairlead import _probe

    _probe.name(names)

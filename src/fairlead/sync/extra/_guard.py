"""ResourceGuard: an error for the second that enters, and no wait."""

from __future__ import annotations

from typing import NamedTuple

from fairlead.errors import ResourceBusyError
from fairlead.sync import Lock
from fairlead.sync.extra._common import refuse_pickling


class ResourceGuardStatistics(NamedTuple):
    """A guard at one moment: whether it is held."""

    busy: bool


class ResourceGuard:
    """`with guard:` around what one thread or task may do at a time; a second one gets ResourceBusyError,
    at once.

    As anyio's, for threads too. The same one may not come twice either.

    Args:
        action: what the message says that another thread or task is already doing.
    """

    __slots__ = ("__weakref__", "_action", "_lock")

    def __init__(self, action: str = "using") -> None:
        self._action = action
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(False):
            raise ResourceBusyError(f"another thread or task is already {self._action} this resource")

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def statistics(self) -> ResourceGuardStatistics:
        """A record of the moment."""
        return ResourceGuardStatistics(self._lock.locked())

    __reduce__ = refuse_pickling

    def __repr__(self) -> str:
        return f"<fairlead.sync.extra.ResourceGuard {'busy' if self._lock.locked() else 'free'}>"

"""The lock of the pools' engines, which no exception that is sent to a thread can leave taken."""

from __future__ import annotations

import _thread
import sys

TYPE_CHECKING = False  # interpreters of a pool import this


class EngineLock(_thread.RLock):  # type: ignore[misc] # final only in its stub
    """For ``with``, as threading.RLock.

    From 3.14 on the interpreter lets an exception in, a task's interrupt or Ctrl-C, when a lock's
    ``__enter__`` in C has returned and the block has not begun that gives the lock back. It lets none in
    between a return in Python and that block.
    """

    __slots__ = ()

    if TYPE_CHECKING:  # what threading.Condition asks of its lock

        def _is_owned(self) -> bool: ...
        def _release_save(self) -> object: ...
        def _acquire_restore(self, held: object) -> None: ...

    if sys.version_info >= (3, 14):

        def __enter__(self) -> bool:
            try:
                return self.acquire()
            except BaseException:
                if self._is_owned():
                    self.release()
                raise

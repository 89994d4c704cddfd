"""The way to the extension: a clear error where it cannot work, and what its users share."""

from __future__ import annotations

import os
import sys
from _thread import RLock

from fairlead.errors import UnsupportedInterpreterError, UnsupportedPlatformError, UsageError
from fairlead.gil.observe import tested

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead import _probe


_lock = RLock()


def exclusive() -> RLock:
    """The one lock of all that observes, to be entered with ``with``.

    Asked for anew each time: a forked child, in which its holder does not exist, has a fresh one.
    """
    return _lock


def _renew() -> None:
    global _lock
    _lock = RLock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_renew)


def require() -> None:
    """Make sure that ``fairlead._probe`` can be imported and is more than a refusal.

    Raises:
        UnsupportedInterpreterError: it is not; the message says why. On another system than Linux it is an
            UnsupportedPlatformError.
    """
    if sys.platform != "linux":
        raise UnsupportedPlatformError("the GIL can be observed and scheduled on Linux only")
    if sys.implementation.name != "cpython":
        raise UnsupportedInterpreterError(
            f"the GIL of {sys.implementation.name} cannot be observed, only that of CPython"
        )
    try:
        from fairlead import _probe
    except ImportError as error:
        raise UnsupportedInterpreterError(
            f"the extension that observes the GIL cannot be loaded: {error}"
        ) from error
    if not hasattr(_probe, "read"):  # built where nothing can be observed: it has one function, to say why
        _probe.open()


def nanoseconds(wait_threshold: float | None) -> int | None:
    """A threshold in seconds as the extension wants it.

    Raises:
        UsageError: it is not a time.
    """
    if wait_threshold is None:
        return None
    if not 0 <= wait_threshold < 1e9:
        raise UsageError(f"wait_threshold is in seconds, 0 or more, or None, and not {wait_threshold!r}")
    return round(wait_threshold * 1e9)


_windows = 0


def _follow_collections(windows: int) -> None:
    """While a window is open, the garbage collector of this interpreter says when it runs."""
    global _windows
    known = "gc" in sys.modules
    import gc

    from fairlead import _probe

    if not known:  # a program's first line finds what it finds under stock
        del sys.modules["gc"]
    before, _windows = _windows, _windows + windows
    if not before:
        gc.callbacks.append(_probe.collected)
    elif not _windows and _probe.collected in gc.callbacks:
        gc.callbacks.remove(_probe.collected)


class Window:
    """One party's view of the counters: what was counted since it was opened. Several may be open at once."""

    def __init__(self, threshold_ns: int | None) -> None:
        """Begin to count.

        Args:
            threshold_ns: from which length on stacks are taken of the threads that wait and of those that
                make them wait; None: of none. The smallest of all windows that are open in the process, in
                whichever of its interpreters, is what counts.

        Raises:
            UnsupportedInterpreterError: the interpreter's GIL cannot be observed; the message says why.
            UsageError: eight windows are open.
        """
        require()
        from fairlead import _probe

        self._number = _probe.open()
        tested.warn(frames_checked=_probe.readable())
        _probe.threshold(self._number, threshold_ns)
        _follow_collections(1)

    def read(self) -> _probe.Reading:
        from fairlead import _probe

        return _probe.read(self._number)

    def close(self) -> None:
        from fairlead import _probe

        _follow_collections(-1)
        _probe.close(self._number)


def why_not() -> str | None:
    """Why the GIL of this interpreter cannot be observed, in one line; None when it can."""
    try:
        Window(None).close()
    except UnsupportedInterpreterError as error:
        return str(error)
    return None

"""``fairlead.gil.record``: everything that happens to the GIL, into a file, while it happens."""

from __future__ import annotations

import atexit
import errno
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import fairlead
from fairlead import machine
from fairlead.errors import FairleadError, OutputError, UsageError
from fairlead.gil.observe import names
from fairlead.gil.observe.access import Window, exclusive, nanoseconds

_current: Recorder | None = None
_handlers = False
LAST = -1000
"""Among the finalizers of multiprocessing."""


class Recorder:
    """A recording of the GIL, from ``start()`` to ``stop()`` or the end of the process.

    Also a context manager. Only one goes on at a time in a process. The file can be read while it grows,
    and, when the process is killed, up to what happened at most about 100 ms before. A forked child writes
    a file of its own beside it, whose name ends in its process id (``app.flrec``, ``app.flrec.4711``).

    Attributes:
        path: the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wait_threshold: float | None,
        events: bool,
        counters_interval: float,
        lease: str | None = None,
    ) -> None:
        if not 0.01 <= counters_interval < 1e9:
            raise UsageError(f"counters_interval is in seconds, at least 0.01, and not {counters_interval!r}")
        self.path = Path(path)
        self._name = self.path.name
        self._threshold = wait_threshold
        self._threshold_ns = nanoseconds(wait_threshold)
        self._events = events
        self._counters_ns = round(counters_interval * 1e9)
        self._lease = lease
        self._window: Window | None = None

    def start(self) -> Recorder:
        """Create the file (an existing one is replaced) and begin.

        Raises:
            UnsupportedInterpreterError: the interpreter's GIL cannot be observed; the message says why.
            UsageError: a recording is going on.
            OutputError: the file cannot be written.
        """
        global _current
        with exclusive():
            if self._window is not None:
                raise UsageError("this recording is going on already")
            self._begin(parent_pid=None)
        _current = self
        _handle_forks()
        atexit.register(self._at_exit)
        return self

    def _begin(self, parent_pid: int | None) -> None:
        window = Window(self._threshold_ns)
        from fairlead import _probe

        try:
            meta = json.dumps(self._meta(parent_pid))[:-1]  # the extension adds when it began
            # a forked child that turns into another program at once leaves no file
            later = parent_pid is not None
            _probe.record(self.path, meta, self._events, later, self._counters_ns, self._lease)
        except OSError as error:
            window.close()
            raise OutputError(
                f"{self.path} cannot be written ({error.strerror}): choose another place"
            ) from error
        except BaseException:
            window.close()
            raise
        self._window = window
        names.follow()

    def _meta(self, parent_pid: int | None) -> dict[str, object]:
        return {
            "pid": os.getpid(),
            "parent_pid": parent_pid,
            "argv": [Path(sys.orig_argv[0]).name, *sys.orig_argv[1:]] if sys.orig_argv else [],
            "executable": sys.executable,
            "python_version": platform.python_version(),
            "implementation": platform.python_implementation(),
            "fairlead": fairlead.__version__,
            "cpus": machine.cores().usable,
            "switch_interval_s": sys.getswitchinterval(),
            "wait_threshold_s": self._threshold,
            "clock": {
                "name": "CLOCK_MONOTONIC",
                "resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
                "boot": _boot(),
            },
        }

    def stop(self) -> None:
        """Write what is left and close the file. Harmless when it has ended, or was never started.

        Raises:
            OutputError: something could not be written: the disk is full, for example. What was written
                before is whole.
        """
        global _current
        with exclusive():
            window, self._window = self._window, None
            if window is None:
                return
            from fairlead import _probe

            names.unfollow()
            error = _probe.record_stop()
            window.close()
        if _current is self:
            _current = None
        atexit.unregister(self._at_exit)
        if error:
            why = "the program has closed it" if error == errno.EBADF else os.strerror(error)
            raise OutputError(f"{self.path} is not complete: {why}; what was written can be read")

    def _at_exit(self) -> None:
        """No caller is left to raise an error to."""
        try:
            self.stop()
        except OutputError as error:
            print(f"fairlead: {error}", file=sys.stderr)

    def _continue_in_child(self) -> None:
        """After a fork. The window that was open still is, and is this process's now."""
        global _current
        window, self._window = self._window, None
        if window is not None:
            names.unfollow()
            window.close()
        self.path = self.path.with_name(f"{self._name}.{os.getpid()}")
        try:
            self._begin(parent_pid=os.getppid())
        except FairleadError as error:
            _current = None
            print(f"fairlead: process {os.getpid()} is not recorded: {error}", file=sys.stderr)
            return
        # multiprocessing forgets finalizers that were made before its child's first step, and ends the
        # child by os._exit(), which runs nothing of atexit
        if processes := sys.modules.get("multiprocessing.util"):
            processes.register_after_fork(self, _stop_with_multiprocessing)

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "going on" if self._window else "not going on"
        return f"<fairlead.gil.Recorder of {str(self.path)!r}, {state}>"


def _stop_with_multiprocessing(recorder: Recorder) -> None:
    """In a child that multiprocessing has forked."""
    from multiprocessing.util import Finalize

    Finalize(recorder, recorder._at_exit, exitpriority=LAST)


def _boot() -> str | None:
    """The kernel's id of this boot: processes that have it in common share CLOCK_MONOTONIC."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip() or None
    except OSError:
        return None


def _handle_forks() -> None:
    """A fork finds no thread of the recorder's: so Python does not warn of threads that the program did not
    start, and the child finds nothing half written."""
    global _handlers
    if not _handlers:
        _handlers = True
        os.register_at_fork(
            before=_before_fork, after_in_parent=_after_in_parent, after_in_child=_after_in_child
        )


@contextmanager
def paused() -> Iterator[None]:
    """Everything so far is in the file, and nothing is written for a while."""
    _before_fork()
    try:
        yield
    finally:
        _after_in_parent()


def _before_fork() -> None:
    if _current is not None:
        from fairlead import _probe

        _probe.record_pause()


def _after_in_parent() -> None:
    if _current is not None:
        from fairlead import _probe

        _probe.record_resume()


def _after_in_child() -> None:
    if _current is not None:
        _current._continue_in_child()


def current() -> Recorder | None:
    """The recording that is going on in this process."""
    return _current

"""``fairlead.gil.record``: everything that happens to the GIL, into a file, while it happens."""

from __future__ import annotations

import atexit
import os
import sys
import time

import fairlead
from fairlead import machine
from fairlead.errors import FairleadError, OutputError, UsageError
from fairlead.gil.observe import names
from fairlead.gil.observe.access import Window, exclusive, nanoseconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_current: Recorder | None = None
_handlers = False
LAST = -1000
"""Among the finalizers of multiprocessing."""


class Recorder:
    """A recording of the GIL, from ``start()`` to ``stop()`` or the end of the process.

    Also a context manager. Only one goes on at a time in a process. The file can be read while it grows,
    and, when the process is killed, up to what happened at most about 100 ms before. A forked child writes
    a file of its own beside it, whose name ends in its process id (``app.flrec``, ``app.flrec.4711``).
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        wait_threshold: float | None,
        events: bool,
        counters_interval: float,
        lease: str | None = None,
        duration: float | None = None,
        most_bytes: int = 0,
    ) -> None:
        if not 0.01 <= counters_interval < 1e9:
            raise UsageError(f"counters_interval is in seconds, at least 0.01, and not {counters_interval!r}")
        self._first = self._path = os.fspath(path)
        self._threshold = wait_threshold
        self._threshold_ns = nanoseconds(wait_threshold)
        self._events = events
        self._counters_ns = round(counters_interval * 1e9)
        self._lease = lease
        self._duration_ns = round((duration or 0.0) * 1e9)
        self._most_bytes = most_bytes
        self._window: Window | None = None

    @property
    def path(self) -> Path:
        """The file."""
        from pathlib import Path

        return Path(self._path)

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
            meta = _json(self._meta(parent_pid))[:-1]  # the extension adds when it began
            # a forked child that turns into another program at once leaves no file
            later = parent_pid is not None
            _probe.record(
                self._path,
                meta,
                self._events,
                later,
                self._counters_ns,
                self._lease,
                self._duration_ns,
                self._most_bytes,
            )
        except OSError as error:
            window.close()
            raise OutputError(
                f"{self._path} cannot be written ({error.strerror}): choose another place"
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
            "argv": [*(word.rpartition("/")[2] for word in sys.orig_argv[:1]), *sys.orig_argv[1:]],
            "executable": sys.executable,
            "python_version": sys.version.split()[0],
            "implementation": "CPython",
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
            from errno import EBADF

            why = "the program has closed it" if error == EBADF else os.strerror(error)
            raise OutputError(f"{self._path} is not complete: {why}; what was written can be read")

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
        self._path = f"{self._first}.{os.getpid()}"
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
        return f"<fairlead.gil.Recorder of {self._path!r}, {state}>"


def _json(value: object) -> str:
    """As ``json.dumps``, whose modules every recorded program would have from its start."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(name)}: {_json(one)}" for name, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    return "null" if value is None else repr(value)


def _escaped(letter: str) -> str:
    if " " <= letter <= "~" and letter not in '"\\':
        return letter
    code = ord(letter)
    units = [code] if code < 0x10000 else [0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)]
    return "".join(f"\\u{unit:04x}" for unit in units)


def _stop_with_multiprocessing(recorder: Recorder) -> None:
    """In a child that multiprocessing has forked."""
    from multiprocessing.util import Finalize

    Finalize(recorder, recorder._at_exit, exitpriority=LAST)


def _boot() -> str | None:
    """The kernel's id of this boot: processes that have it in common share CLOCK_MONOTONIC."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:  # noqa: PTH123
            return file.read().strip() or None
    except OSError:
        return None


def _handle_forks() -> None:
    """A fork finds no thread of the recorder's: so Python does not warn of threads that the program did not
    start, and the child finds nothing half written."""
    global _handlers
    if not _handlers:
        _handlers = True
        os.register_at_fork(before=pause, after_in_parent=resume, after_in_child=_after_in_child)


def pause() -> None:
    """Everything so far is in the file, and nothing is written until ``resume``."""
    if _current is not None:
        from fairlead import _probe

        _probe.record_pause()


def resume() -> None:
    """Go on, after ``pause``."""
    if _current is not None:
        from fairlead import _probe

        _probe.record_resume()


def _after_in_child() -> None:
    if _current is not None:
        _current._continue_in_child()


def current() -> Recorder | None:
    """The recording that is going on in this process."""
    return _current

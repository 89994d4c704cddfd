"""Recording the GIL of this process into a file, from the inside.

The probe knows threads by number and by the name that the operating system has for them, which before
Python 3.14 is not the one that Python has. So while a recording goes on, ``Thread.start`` notes the name of
each thread that it has started, and the notes are handed to the probe in batches: looking a thread up costs
time in proportion to their number.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import json
import os
import platform
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import fairlead
from fairlead.errors import FairleadError, OutputError, UnsupportedInterpreter, UsageError

BATCH = 64


class _Names:
    """Names of threads that the probe has not been told yet."""

    def __init__(self, probe: Any) -> None:
        self.probe = probe
        self.lock = threading.Lock()
        self.noted: dict[int, str] = {}
        self.told = 0
        self.start = threading.Thread.start

    def install(self) -> None:
        for thread in threading.enumerate():
            self.note(thread)
        self.tell()
        start, names = self.start, self

        @functools.wraps(start)
        def noting(thread: threading.Thread) -> None:
            start(thread)
            names.note(thread)

        threading.Thread.start = noting  # type: ignore[method-assign, assignment]
        self.noting = noting

    def remove(self) -> None:
        if threading.Thread.start is self.noting:
            threading.Thread.start = self.start  # type: ignore[method-assign]
        for thread in threading.enumerate():
            self.note(thread)
        self.tell()

    def note(self, thread: threading.Thread) -> None:
        if thread.native_id is not None:
            with self.lock:
                self.noted[thread.native_id] = thread.name
                due = len(self.noted) >= min(BATCH, 1 + self.told)
            if due:
                self.tell()

    def tell(self) -> None:
        with self.lock:
            noted, self.noted = self.noted, {}
        for serial, native_id, _, _, _ in self.probe.threads():
            # newest first: an older thread with the same id has ended long ago
            name = noted.pop(native_id, None)
            if name is not None:
                self.probe.name(serial, name)
                self.told += 1
        with self.lock:
            # a thread that has not taken the GIL yet is not known: another time
            self.noted = {**noted, **self.noted} if len(noted) < BATCH else self.noted


@dataclass(slots=True)
class _Recording:
    """The one that is going on in this process."""

    probe: Any
    window: int
    path: str
    threshold: float | None
    events: bool
    counters_ns: int
    names: _Names
    pid: int = field(default_factory=os.getpid)

    def begin(self, *, parent_pid: int | None = None) -> None:
        meta = _meta(self.threshold, parent_pid)
        # a forked child that turns into another program at once leaves no file
        later = parent_pid is not None
        self.probe.record(self.path, meta, self.events, later, self.counters_ns)


_current: _Recording | None = None


def start_recording(
    path: str | os.PathLike[str],
    *,
    threshold: float | None = 1e-3,
    events: bool = True,
    counters_interval: float = 1.0,
) -> None:
    """Begin to record this process; the recording ends with ``stop_recording()`` or with the process.

    Args:
        path: the file; one that exists is replaced.
        threshold: in waits longer than this (seconds) both threads' stacks are recorded; None: in none.
        events: False records no single events, only snapshots of the counters.
        counters_interval: seconds between two snapshots.

    Raises:
        UnsupportedInterpreter: the GIL of this interpreter cannot be observed; the message says why.
        UsageError: a recording is going on already.
        OutputError: the file cannot be written.
    """
    global _current
    try:
        probe = importlib.import_module("fairlead._probe")
    except ImportError as error:
        raise UnsupportedInterpreter(
            f"fairlead is installed here without its probe ({error}): reinstall it"
        ) from error
    if _current is not None and _current.pid == os.getpid():
        raise UsageError("a recording is going on already: end it first")
    recording = _Recording(
        probe=probe,
        window=probe.open(),
        path=os.fspath(path),
        threshold=threshold,
        events=events,
        counters_ns=max(1, round(counters_interval * 1e9)),
        names=_Names(probe),
    )
    try:
        probe.threshold(None if threshold is None else max(1, round(threshold * 1e9)))
        recording.begin()
    except BaseException as error:
        probe.close(recording.window)
        if isinstance(error, OSError):
            raise OutputError(f"{recording.path} cannot be written: {error.strerror}") from error
        raise
    recording.names.install()
    _current = recording
    atexit.register(_at_exit)
    _watch_forks()


@functools.cache
def _watch_forks() -> None:
    """Once in a process: these cannot be taken back, and do nothing while no recording is going on."""
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _before_fork() -> None:
    if _current is not None:
        _current.probe.record_pause()


def _after_fork() -> None:
    if _current is not None:
        _current.probe.record_resume()


def _in_child() -> None:
    """The child is recorded afresh, into a file of its own beside its parent's."""
    global _current
    if _current is None:
        return
    parent, _current.pid = _current.pid, os.getpid()
    _current.path = f"{_current.path}.{_current.pid}"
    _current.names.lock = threading.Lock()
    try:
        _current.begin(parent_pid=parent)
    except (OSError, FairleadError) as error:
        _current = None
        print(f"fairlead: process {os.getpid()} is not recorded: {error}", file=sys.stderr)


def stop_recording() -> None:
    """End the recording and close its file.

    Raises:
        UsageError: no recording is going on.
        OutputError: not everything could be written; what was written before can be read.
    """
    global _current
    recording, _current = _current, None
    if recording is None or recording.pid != os.getpid():
        raise UsageError("no recording is going on")
    atexit.unregister(_at_exit)
    recording.names.remove()
    failed = recording.probe.record_stop()
    recording.probe.close(recording.window)
    if failed:
        raise OutputError(
            f"the recording is not complete: {os.strerror(failed)}; what was written can be read"
        )


def _at_exit() -> None:
    if _current is not None and _current.pid == os.getpid():
        try:
            stop_recording()
        except OutputError as error:
            print(f"fairlead: {error}", file=sys.stderr)


def _meta(threshold: float | None, parent_pid: int | None) -> str:
    """The META block without its last brace: the probe adds the times."""
    data = {
        "pid": os.getpid(),
        "parent_pid": parent_pid,
        "argv": [os.path.basename(sys.orig_argv[0]), *sys.orig_argv[1:]] if sys.orig_argv else [],  # noqa: PTH119
        "executable": sys.executable,
        "python_version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "fairlead": fairlead.__version__,
        "cpus": len(os.sched_getaffinity(0)),
        "switch_interval_s": sys.getswitchinterval(),
        "wait_threshold_s": threshold,
        "clock": {
            "name": "CLOCK_MONOTONIC",
            "resolution_ns": round(time.clock_getres(time.CLOCK_MONOTONIC) * 1e9),
        },
    }
    return json.dumps(data)[:-1]

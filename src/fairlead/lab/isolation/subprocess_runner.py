"""Running one foreign program so that it can neither disturb nor outlive the process that runs it.

A sample may spin at real-time priority, leave spinning children when it is killed, flood its
output or wait for ever. So each one gets

* a session of its own: no signal of the terminal reaches it, and one ``killpg`` ends it. The
  group is killed while its leader is still unreaped, so the number cannot have become another's;
* a mark in its environment, which every descendant inherits. What left the session (``setsid``) is
  found by the mark in /proc and killed too, and so is what a killed lab left behind;
* the scheduling policy and the cores it asks for. They are set on the calling thread around the
  spawn, because a child inherits them and so has them from its first instruction. While a real-time
  sample runs, the calling thread stands one priority above it: its time-out always fires;
* an environment without any ``PYTHON*`` of the caller, and bounded output.

Rejected: ``preexec_fn`` (runs Python between fork and exec, unsafe beside threads), and waiting
for the end of output (a grandchild may hold the pipe for ever): a pidfd says when the program ended.
"""

from __future__ import annotations

import ctypes
import os
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import IO, Literal

from fairlead.errors import FairleadError
from fairlead.lab.isolation.stop import Stop

MARK = "FAIRLEAD_SAMPLE"
"""The environment variable that marks everything a sample starts."""

Ended = Literal["exited", "timeout", "stopped"]

_OUTPUT_LIMIT = 1 << 20
_SAMPLE_PRIORITY = 1
_KILL_LIMIT_S = 5.0
_LOOK_S = 0.001
_STATE, _SESSION, _SIZE, _ENV_START, _ENV_END = 0, 3, 20, 47, 48
"""Places in /proc/PID/stat, from the state on."""
_BUSY = "import os; os.sched_setaffinity(0, {}); os.write(1, b'!')\nwhile True: pass"
_PASSED_ON = ("PYTHON_GIL", "PYTHON_JIT")
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an isolated program ended. When it is returned, nothing that the program started is alive."""

    ended: Ended
    """exited: by itself. timeout: killed after its time. stopped: killed because ``stop`` was set."""
    returncode: int
    """Its exit status, or minus the number of the signal that ended it."""
    stdout: bytes
    """At most the first MiB; the rest is read and thrown away."""
    stderr: bytes
    """At most the last MiB."""
    elapsed_s: float
    """From before the spawn until the end was seen."""
    usage: resource.struct_rusage
    """Of the program and the children it waited for."""


def clean_environment(*, free_threaded: bool) -> dict[str, str]:
    """The caller's environment without what bends an interpreter.

    No ``PYTHON*`` passes, with two exceptions that say which interpreter is meant to be measured:
    ``PYTHON_JIT``, and ``PYTHON_GIL`` where it is understood (other builds refuse to start with it).
    Bytecode is not written: a run must not depend on what an earlier one cached.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PYTHON") or name in _PASSED_ON
    }
    if not free_threaded:
        kept.pop("PYTHON_GIL", None)
    kept["PYTHONDONTWRITEBYTECODE"] = "1"
    return kept


@contextmanager
def adopting() -> Iterator[Callable[[], None]]:
    """What descendants leave behind becomes the child of this process, and its CPU time that of its children,
    once the function that this yields is called: it takes all that have ended.

    Without that, a worker whose parent has gone counts as other load. For processes of our own
    only: the function takes any child's exit status.
    """
    prctl = ctypes.CDLL(None).prctl
    prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def take() -> None:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass

    try:
        yield take
    finally:
        prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def run(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    mark: str,
    stop: Stop | None = None,
    policy: str = "other",
    cpus: Collection[int] | None = None,
) -> Outcome:
    """Run a program to its end, to its time-out or until ``stop`` is set, and leave nothing of it behind.

    Args:
        argv: the program and its arguments; no shell, standard input is empty.
        mark: a word of its own; see ``MARK``.
        policy: "other" (time sharing, whatever the caller itself runs under), or "rr" (round robin, real
            time), which takes what ``real_time_refused`` tests.
        cpus: the cores it may use; None: those of the caller.

    Raises:
        OSError: the program cannot be started, or the policy or the cores are refused.
    """
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    started = time.monotonic()
    try:
        with _inherited(policy, cpus):
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**env, MARK: mark},
                start_new_session=True,
            )
        with process:
            assert process.stdout is not None
            assert process.stderr is not None
            stdout = _Capture(process.stdout, keep_last=False)
            stderr = _Capture(process.stderr, keep_last=True)
            try:
                if policy == "rr":
                    os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_SAMPLE_PRIORITY + 1))
                ended = _watch(process.pid, (stdout, stderr), started + timeout_s, stop)
                elapsed = time.monotonic() - started
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                _, status, usage = os.wait4(process.pid, 0)
                process.returncode = os.waitstatus_to_exitcode(status)
                sweep(mark, process.pid)
            for capture in (stdout, stderr):
                with suppress(BlockingIOError):
                    while capture.read():
                        pass
    finally:
        os.sched_setscheduler(0, *before)
    return Outcome(
        ended=ended,
        returncode=process.returncode,
        stdout=bytes(stdout.data),
        stderr=bytes(stderr.data),
        elapsed_s=elapsed,
        usage=usage,
    )


@contextmanager
def background(argv: Sequence[str], *, mark: str, output: int) -> Iterator[subprocess.Popen[bytes]]:
    """A program that runs beside the caller; on leaving, it and all that it started are killed.

    Args:
        mark: as for ``run``.
        output: the file descriptor of what it prints, to either stream.

    Raises:
        OSError: the program cannot be started.
    """
    process = subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, MARK: mark},
        start_new_session=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        sweep(mark, process.pid)


@contextmanager
def busy(count: int, cpus: Collection[int], *, mark: str) -> Iterator[None]:
    """So many processes that compute beside the caller, on these cores: all of them from entering on.

    Raises:
        FairleadError: one of them did not begin.
        OSError: none can be started.
    """
    with ExitStack() as stack:
        ear, mouth = os.pipe()
        stack.callback(os.close, ear)
        try:
            for _ in range(count):
                argv = [sys.executable, "-SE", "-c", _BUSY.format(sorted(cpus))]
                stack.enter_context(background(argv, mark=mark, output=mouth))
        finally:
            os.close(mouth)
        for _ in range(count):
            if os.read(ear, 1) != b"!":
                raise FairleadError("a busy process beside the sample did not begin")
        yield


def memory_kib(mark: str) -> float | None:
    """What all processes of a mark take together; see ``proportional_kib``."""
    return proportional_kib(_members(mark, None))


def proportional_kib(pids: Iterable[int]) -> float | None:
    """What the processes take together, shared pages counted once (Pss); None if it is not told."""
    total = 0.0
    for pid in pids:
        try:
            lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        except OSError:
            continue
        total += sum(float(line.split()[1]) for line in lines if line.startswith(b"Pss:"))
    return total or None


def sweep(mark: str, session: int | None = None) -> None:
    """Kill every process whose mark begins with ``mark`` or that belongs to ``session``, and see them end.

    Raises:
        FairleadError: one of them is another user's, or does not end when it is killed; the message names it.
    """
    deadline = time.monotonic() + _KILL_LIMIT_S
    while found := _members(mark, session):
        if time.monotonic() >= deadline:
            raise FairleadError(f"process {found[0]}, which a sample started, does not end when it is killed")
        for pid in found:
            try:
                pidfd = os.pidfd_open(pid)
            except ProcessLookupError:
                continue
            try:
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                with selectors.DefaultSelector() as selector:
                    selector.register(pidfd, selectors.EVENT_READ)
                    selector.select(max(0.0, deadline - time.monotonic()))
            except ProcessLookupError:
                pass
            except PermissionError as error:
                raise FairleadError(
                    f"process {pid}, which a sample started, is another user's and goes on: end it by hand"
                ) from error
            finally:
                os.close(pidfd)


def _members(mark: str, session: int | None) -> list[int]:
    """The living processes that carry the mark or belong to the session."""
    marked = f"{MARK}={mark}".encode()
    found = []
    for entry in os.scandir("/proc"):
        if not entry.name.isdecimal():
            continue
        try:
            stat = _stat(entry.path)
            if stat[_STATE] in (b"Z", b"X"):
                continue
            if int(stat[_SESSION]) == session or any(
                variable.startswith(marked) for variable in _environment(entry.path)
            ):
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def _environment(path: str) -> list[bytes]:
    """A process's variables. In the middle of an exec it has memory, and no environment yet: so a descendant
    that has left the session would go unseen, if it were not looked at again."""
    for _ in range(round(_KILL_LIMIT_S / _LOOK_S)):
        if text := _read(f"{path}/environ"):
            return text.split(b"\0")
        stat = _stat(path)
        if stat[_SIZE] == b"0" or stat[_ENV_START] == stat[_ENV_END] != b"0":
            break  # it has no memory (a thread of the kernel), or was given no variables
        time.sleep(_LOOK_S)  # not in a loop that spins: this thread may have a priority above the process's
    return []


def _stat(path: str) -> list[bytes]:
    return _read(f"{path}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - a thousand of these per sample: no Path objects
        return file.read()


def real_time_refused() -> str | None:
    """Why this process may not run samples under SCHED_RR; None if it may."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_SAMPLE_PRIORITY + 1))
    except OSError as error:
        return (
            f"real-time scheduling is refused ({error.strerror}): needs root, CAP_SYS_NICE or `ulimit -r 2`"
        )
    os.sched_setscheduler(0, *before)
    return None


@contextmanager
def _inherited(policy: str, cpus: Collection[int] | None) -> Iterator[None]:
    """Give the calling thread what the child shall inherit; restore the cores, not the policy."""
    before = os.sched_getaffinity(0)
    try:
        if cpus is not None:
            os.sched_setaffinity(0, cpus)
        if policy == "rr":
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(_SAMPLE_PRIORITY))
        else:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        yield
    finally:
        os.sched_setaffinity(0, before)


class _Capture:
    """The bounded beginning or end of what comes out of a pipe."""

    def __init__(self, pipe: IO[bytes], *, keep_last: bool) -> None:
        self.fd = pipe.fileno()
        self.data = bytearray()
        self._keep_last = keep_last
        os.set_blocking(self.fd, False)

    def read(self) -> bool:
        """Take one piece; False at the end.

        Raises:
            BlockingIOError: there is none yet.
        """
        piece = os.read(self.fd, 1 << 16)
        self.data += piece
        excess = len(self.data) - _OUTPUT_LIMIT
        if excess > 0:
            del self.data[: excess if self._keep_last else 0]
            del self.data[_OUTPUT_LIMIT:]
        return bool(piece)


def _watch(pid: int, captures: Sequence[_Capture], deadline: float, stop: Stop | None) -> Ended:
    """Collect output until the program ends, its time is up or ``stop`` is set."""
    pidfd = os.pidfd_open(pid)
    try:
        with selectors.DefaultSelector() as selector:
            exited = selector.register(pidfd, selectors.EVENT_READ)
            stopped = selector.register(stop, selectors.EVENT_READ) if stop is not None else None
            for capture in captures:
                selector.register(capture.fd, selectors.EVENT_READ, capture)
            while (left := deadline - time.monotonic()) > 0:
                ready = [key for key, _ in selector.select(left)]
                if stopped in ready:
                    return "stopped"
                if exited in ready:
                    return "exited"
                for key in ready:
                    with suppress(BlockingIOError):
                        if not key.data.read():
                            selector.unregister(key.fd)
            return "timeout"
    finally:
        os.close(pidfd)

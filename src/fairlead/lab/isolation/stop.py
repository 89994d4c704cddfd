"""Being stopped from outside: a state that can be waited for, not an exception that falls in anywhere."""

from __future__ import annotations

import os
import select
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from fairlead.errors import RunInterruptedError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """Catches SIGINT, SIGTERM and SIGHUP while it is entered, and remembers the first.

    An exception out of a signal handler can strike between a process being started and being
    noted, or in the middle of a line being written. Here the handler only sets ``signum`` and
    makes ``fileno()`` readable for good, so that every wait of the lab, in any thread, can
    include it and end in order. What was ignored on entry stays so: SIGHUP under ``nohup``, SIGINT in the
    background of a shell without job control. SIGTERM ends the lab there, too.

    Entered in a thread other than the main one it catches nothing, as handlers cannot be set there.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self._reader = self._writer = -1
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                before = signal.getsignal(number)
                if before not in (signal.SIG_IGN, None):
                    self._before[number] = before
                    signal.signal(number, self._caught)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        self._before.clear()
        os.close(self._reader)
        os.close(self._writer)
        self._reader = self._writer = -1

    def _caught(self, signum: int, _frame: FrameType | None) -> None:
        self.request(signum)

    def request(self, signum: int) -> None:
        """Stop as if this signal had come; from any thread, while it is entered."""
        if self.signum is None:
            self.signum = signum
            os.write(self._writer, b"!")

    def fileno(self) -> int:
        """A file descriptor that is readable once a signal has come; never read from it."""
        return self._reader

    def wait(self, timeout_s: float) -> bool:
        """Wait until a signal has come, at most ``timeout_s`` seconds; say whether one has."""
        poller = select.poll()
        poller.register(self._reader, select.POLLIN)
        return bool(poller.poll(max(0.0, timeout_s) * 1000))

    def check(self, message: str) -> None:
        """Raise ``RunInterruptedError`` with this message if a signal has come."""
        if self.signum is not None:
            raise RunInterruptedError(message, self.signum)

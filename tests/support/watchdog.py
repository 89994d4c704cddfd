"""Ends a run of the tests that has come to a stand, and names the tests that it stands in.

A test's own time-out is a signal that Python answers to. A worker that hangs in C does not, and of one that
crashed while a child that it forked holds its pipe, xdist never learns: either way the run would wait for
ever. This looks on from the process that has the workers. When no test has begun or ended for SILENCE_S, all
that the run started gets a SIGABRT, which faulthandler answers with the stacks and asks no interpreter for
them, and then a SIGKILL; the last lines name the tests.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import pytest
from programs import living

SILENCE_S = float(os.environ.get("FAIRLEAD_TESTS_SILENCE_S", "240"))
"""Longer than any test takes that is not stuck."""
RUN = "FAIRLEAD_TESTS_RUN"
"""The environment's variable by which the processes of a run are known."""


class Watchdog:
    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.running: dict[str, float] = {}
        self.heard = time.monotonic()
        self.over = threading.Event()
        os.environ[RUN] = str(os.getpid())

    def pytest_sessionstart(self) -> None:
        threading.Thread(target=self.watch, name="watchdog of the tests", daemon=True).start()

    def pytest_sessionfinish(self) -> None:
        self.over.set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.running[nodeid] = self.heard = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.running.pop(nodeid, None)
        self.heard = time.monotonic()

    def watch(self) -> None:
        while not self.over.wait(min(5.0, SILENCE_S / 10)):
            if time.monotonic() - self.heard > SILENCE_S:
                self.end()

    def end(self) -> None:
        started = living(f"{RUN}={os.getpid()}\0")
        for number in (signal.SIGABRT, signal.SIGKILL):
            for process in started:
                with contextlib.suppress(OSError):
                    os.kill(process, number)
            time.sleep(2)  # for the stacks, and for xdist's last words
        writer = self.config.get_terminal_writer()
        writer.line()
        writer.line(f"The tests stood still for {SILENCE_S:.0f} s, so the run was ended. Begun and not over:")
        for name, since in self.running.items():
            writer.line(f"    {name}, {time.monotonic() - since:.0f} s ago")
        writer.flush()
        os._exit(1)

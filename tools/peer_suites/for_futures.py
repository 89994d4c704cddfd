"""The interpreter's own tests of concurrent.futures over the kind of pool that PEERS_KIND names."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import threading
import unittest
from typing import Any

from fairlead import pools
from fairlead.sync import Event

PACKAGE = "test.test_concurrent_futures"
KIND = os.environ["PEERS_KIND"]


if KIND == "interpreters" and sys.version_info < (3, 13):
    raise unittest.SkipTest("this interpreter has no InterpreterPool")


class Base(unittest.TestCase):
    worker_count = 3

    def executor_type(self, max_workers: int | None = None) -> Any:
        return pools.pool(KIND, max_workers)

    def setUp(self) -> None:
        self.executor = self.executor_type(self.worker_count)

    def tearDown(self) -> None:
        self.executor.shutdown()

    def create_event(self) -> Any:
        if KIND == "threads":
            return threading.Event()
        if KIND == "interpreters":
            return Event()
        return self.enterContext(multiprocessing.Manager()).Event()


def _tests(module: str, name: str) -> type[unittest.TestCase]:
    return type(name, (getattr(importlib.import_module(f"{PACKAGE}.{module}"), name), Base), {})


Executor = _tests("executor", "ExecutorTest")
Wait = _tests("test_wait", "WaitTests")
AsCompleted = _tests("test_as_completed", "AsCompletedTests")
Shutdown = _tests("test_shutdown", "ExecutorShutdownTest")

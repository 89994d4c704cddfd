"""Runs the standard library's own tests of executors and of multiprocessing's Pool against a kind of pool.

poolsuites.py futures|multiprocessing threads|processes|interpreters: prints JSON, for each test "passed" or
what it said.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import sys
import threading
import unittest
from typing import Any

from fairlead.pools import InterpreterPool, ProcessPool, ThreadPool
from fairlead.pools.multiprocessing import Pool
from fairlead.sync import Event

KINDS: dict[str, Any] = {"threads": ThreadPool, "processes": ProcessPool, "interpreters": InterpreterPool}


class Result(unittest.TestResult):
    def __init__(self) -> None:
        super().__init__()
        self.said: dict[str, str] = {}

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        self.said[test.id().rpartition(".")[2]] = "passed"

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        self.said[test.id().rpartition(".")[2]] = repr(err[1])

    addFailure = addError  # noqa: N815 - unittest's name

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        self.said[test.id().rpartition(".")[2]] = "passed, skipped: " + reason


def futures(kind: str) -> list[type[unittest.TestCase]]:
    package = "test.test_concurrent_futures"

    def of(module: str) -> Any:
        return importlib.import_module(f"{package}.{module}")

    class Base(unittest.TestCase):
        worker_count = 3

        def executor_type(self, max_workers: int | None = None) -> Any:
            return KINDS[kind](max_workers)

        def setUp(self) -> None:
            self.executor = self.executor_type(self.worker_count)

        def tearDown(self) -> None:
            self.executor.shutdown()

        def create_event(self) -> Any:
            if kind == "threads":
                return threading.Event()
            if kind == "interpreters":
                return Event()
            return self.enterContext(multiprocessing.Manager()).Event()

    mixins = {
        "executor": "ExecutorTest", "test_wait": "WaitTests", "test_as_completed": "AsCompletedTests",
        "test_shutdown": "ExecutorShutdownTest",
    }  # fmt: skip
    return [type(name, (getattr(of(module), name), Base), {}) for module, name in mixins.items()]


def classic(kind: str) -> list[type[unittest.TestCase]]:
    import test._test_multiprocessing as tests

    class Base(unittest.TestCase):
        TYPE = kind

        @staticmethod
        def Pool(processes: int | None = None, **given: Any) -> Any:  # noqa: N802 - the tests' name
            initializer, initargs = given.pop("initializer", None), given.pop("initargs", ())
            over = KINDS[kind](
                processes, initializer=initializer, initargs=initargs,
                max_tasks_per_child=given.pop("maxtasksperchild", None),
            )  # fmt: skip
            return Pool(over=over, **given)

    return [type("TestPool", (tests._TestPool, Base), {})]


def main(suite: str, kind: str) -> None:
    import warnings

    warnings.simplefilter("ignore")
    cases = futures(kind) if suite == "futures" else classic(kind)
    result = Result()
    for case in cases:
        unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    print(json.dumps(result.said))


if __name__ == "__main__":
    multiprocessing.set_start_method("forkserver")
    main(*sys.argv[1:])

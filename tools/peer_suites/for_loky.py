"""loky's tests over ProcessPool and shared_pool: its names of the calls, and what it calls its errors."""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import CancelledError
from typing import Any

import loky.process_executor

from fairlead import errors, pools
from fairlead.pools import shared

sys.modules["psutil"] = None  # type: ignore[assignment] # loky's tests would look for its own processes
opened: list[Executor] = []


class Executor(pools.ProcessPool):
    def __init__(
        self, max_workers: int | None = None, context: Any = None, timeout: float | None = None, **given: Any
    ) -> None:
        super().__init__(max_workers, context, idle_timeout=timeout, **given)
        opened.append(self)

    def shutdown(self, wait: bool = True, *, kill_workers: bool = False, **given: Any) -> None:
        if kill_workers:
            self.terminate()
        super().shutdown(wait, **given)


def get_reusable_executor(max_workers: int | None = None, **options: Any) -> Any:
    if options.keys() - {"timeout", "kill_workers", "reuse"}:
        raise TypeError("shared_pool takes a kind and a size")
    return shared.shared_pool("processes", max_workers)


shared.make = lambda _, max_workers: Executor(max_workers)  # type: ignore[assignment] # shutdown(kill_workers)

for _name, _error in {
    "TerminatedWorkerError": errors.WorkerDiedError,
    "BrokenProcessPool": errors.SerializationError,  # expected where a worker cannot read what it is sent
    "ShutdownExecutorError": (errors.PoolClosedError, CancelledError),
    "_RemoteTraceback": pools.WorkerTraceback,
}.items():
    setattr(loky.process_executor, _name, _error)

from tests import _executor_mixin, _test_process_executor, test_reusable_executor, utils  # noqa: E402


def _ours(text: str) -> str:
    """A program that uses this module in place of loky."""
    return text.replace("from loky.process_executor import", "from for_loky import").replace(
        "from loky import get_reusable_executor", "from for_loky import get_reusable_executor"
    )


def _worded(match: str) -> str:
    return {r"EXIT\(0\)": "exited with status 0", r"EXIT\(42\)": "exited with status 42"}.get(match, match)


for _module in (_test_process_executor, test_reusable_executor):
    _module.filter_match = _worded
_test_process_executor.check_subprocess_call = lambda command, **given: utils.check_subprocess_call(
    [_ours(word) for word in command], **given
)
test_reusable_executor.check_python_subprocess_call = lambda code, **given: (
    utils.check_python_subprocess_call(_ours(code), **given)
)
test_reusable_executor.get_reusable_executor = get_reusable_executor


class Base:
    """In the place of loky's ExecutorMixin, which looks at private names."""

    worker_count = 5
    context = multiprocessing.get_context("forkserver")
    executor_type = Executor

    @classmethod
    def setup_class(cls) -> None:
        _executor_mixin._test_event = cls.context.Event()

    def setup_method(self) -> None:
        event = (_executor_mixin._test_event,)
        self.executor = Executor(
            self.worker_count, self.context, initializer=_executor_mixin.initializer_event, initargs=event
        )
        self.executor.submit(id, None).result(_executor_mixin.TIMEOUT)

    def teardown_method(self) -> None:
        end_all()

    def check_no_running_workers(self, patience: float) -> None:
        deadline = time.monotonic() + patience
        while multiprocessing.active_children():
            assert time.monotonic() < deadline, multiprocessing.active_children()
            time.sleep(0.01)


def end_all() -> None:
    while opened:
        executor = opened.pop()
        executor.terminate()
        executor.shutdown(timeout=10)


class TestWait(Base, _test_process_executor.WaitTests): ...


class TestAsCompleted(Base, _test_process_executor.AsCompletedTests): ...


class TestExecutor(Base, _test_process_executor.ExecutorTest): ...


class TestShutdown(Base, _test_process_executor.ExecutorShutdownTest): ...


class Reused:
    """In the place of loky's ReusableExecutorMixin."""

    def setup_method(self, _: Any) -> None: ...

    def teardown_method(self, _: Any) -> None:
        end_all()

    @classmethod
    def teardown_class(cls) -> None: ...


class TestDeadlock(Reused, test_reusable_executor.TestExecutorDeadLock): ...


class TestTerminate(Reused, test_reusable_executor.TestTerminateExecutor): ...


class TestResize(Reused, test_reusable_executor.TestResizeExecutor): ...


class TestGetReusable(Reused, test_reusable_executor.TestGetReusableExecutor): ...


class TestInitializer(Reused, test_reusable_executor.TestExecutorInitializer): ...

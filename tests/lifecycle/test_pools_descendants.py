"""What a worker process has started ends when the worker is stopped, and stays when it ends by itself."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from waiting import PATIENCE_S, until

from fairlead.errors import TaskTimeoutError
from fairlead.pools import ProcessPool

LONG = "86400"
METHODS = ["forkserver", "spawn", "fork"]

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="ProcessPool is for Linux"),
    pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning"),
]


def note(path: str, pid: int) -> None:
    """In one step, as the reader waits for the file."""
    Path(f"{path}.new").write_text(str(pid))
    Path(f"{path}.new").rename(path)


def program(path: str) -> None:
    with subprocess.Popen(["sleep", LONG]) as process:
        note(path, process.pid)


def shell(path: str) -> None:
    """A shell that waits for what it runs."""
    subprocess.run(f"sleep {LONG} & echo $! > {path}.new; mv {path}.new {path}; wait; true", shell=True)


def session(path: str) -> None:
    """Not in the worker's process group, nor in its session."""
    with subprocess.Popen(["sleep", LONG], start_new_session=True) as process:
        note(path, process.pid)


def by_a_thread(path: str) -> None:
    import threading

    threading.Thread(target=program, args=(path,), daemon=True).start()
    time.sleep(float(LONG))


def workers_of_a_pool(path: str) -> None:
    with ProcessPool(1) as pool:
        pool.submit(program, path).result()


def forks(path: str) -> None:
    import multiprocessing

    process = multiprocessing.get_context("fork").Process(target=program, args=(path,))
    process.start()
    process.join()


STARTED = [program, shell, session, by_a_thread, workers_of_a_pool, forks]


@contextlib.contextmanager
def ended(path: Path) -> Iterator[None]:
    """The process that has noted its number there ends in this block."""
    until(path.exists)
    pidfd = os.pidfd_open(int(path.read_text()))
    try:
        assert not select.select([pidfd], [], [], 0)[0]
        yield
        assert select.select([pidfd], [], [], PATIENCE_S)[0], "it lives on"
    finally:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)  # type: ignore[attr-defined,unused-ignore]
        os.close(pidfd)


@pytest.mark.parametrize("method", METHODS)
def test_what_a_timed_out_task_started_ends_with_its_worker(method: Any, tmp_path: Path) -> None:
    path = tmp_path / "pid"
    with ProcessPool(1, method) as pool:
        pool.submit(abs, 1).result()
        future = pool.with_options(timeout=600).submit(program, str(path))
        with ended(path):
            engine, task = pool._engine, future._task
            assert task is not None
            task.deadline = 0.0  # the time is up
            engine._expire()  # type: ignore[attr-defined]
            with pytest.raises(TaskTimeoutError):
                future.result()


def state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return "-"


@pytest.mark.parametrize("start", STARTED)
def test_what_a_cancelled_task_started_ends_with_its_worker(
    start: Callable[[str], None], tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    with ProcessPool(1) as pool:
        future = pool.submit(start, str(path))
        with ended(path):
            assert future.cancel()
        assert pool.submit(abs, -3).result() == 3


@pytest.mark.parametrize("start", STARTED)
def test_what_a_task_started_ends_with_a_terminated_pool(
    start: Callable[[str], None], tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    pool = ProcessPool(1)
    pool.submit(start, str(path))
    with ended(path):
        pool.terminate()
        pool.shutdown()


PROGRAM = """
import sys
sys.path[:0] = {path!r}
import test_pools_descendants as tests
from fairlead.pools import ProcessPool
if __name__ == "__main__":
    ProcessPool(1, {method!r}).submit(tests.{start}, {pid!r}).result()
"""


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("start", STARTED)
def test_what_a_task_started_ends_with_a_program_that_is_killed(
    start: Callable[[str], None], method: str, tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    file = tmp_path / "program.py"
    file.write_text(
        PROGRAM.format(
            path=[str(Path(__file__).parent), *sys.path], method=method, start=start.__name__, pid=str(path)
        )
    )
    with subprocess.Popen([sys.executable, "-W", "ignore", file], stderr=subprocess.DEVNULL) as process:
        try:
            with ended(path):
                process.kill()
        finally:
            process.kill()


def leave(path: str) -> int:
    note(path, subprocess.Popen(["sleep", LONG]).pid)
    return os.getpid()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("how", [{}, {"max_tasks_per_child": 1}, {"idle_timeout": 0.01}])
def test_what_a_task_left_in_the_background_survives_a_worker_that_ends_by_itself(
    how: dict[str, Any], method: Any, tmp_path: Path
) -> None:
    path = tmp_path / "pid"
    with ProcessPool(1, method, **how) as pool:
        worker = pool.submit(leave, str(path)).result()
        if how:
            until(lambda: state(worker) in "Z-")
    until(lambda: state(worker) in "Z-")
    pid = int(path.read_text())
    try:
        assert state(pid) in "SRD"
    finally:
        os.kill(pid, signal.SIGKILL)

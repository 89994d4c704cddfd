"""Programs end with exit status 0, or by the signal that ended them, whatever their interpreters do."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

pytestmark = pytest.mark.skipif(sys.version_info < (3, 13), reason="there are interpreters from 3.13 on")

SUPPORT = Path(__file__).parents[1] / "support"

START = """
import sys, threading, time
from pathlib import Path
sys.path.insert(0, {support!r})
from pooltasks import announce_and_spin
from fairlead.pools import InterpreterPool
from fairlead.pools.engine import shutdown
from waiting import until

def leave_a_thread(seconds):
    import threading, time
    threading.Thread(target=time.sleep, args=(seconds,)).start()

def sleep_as_often_as_it_is_stopped(path, seconds=600):
    import time
    from pathlib import Path
    while True:
        try:
            Path(path).touch()
            time.sleep(seconds)
        except BaseException:
            pass

if __name__ == "__main__":
"""


@contextlib.contextmanager
def program(tmp_path: Path, body: str) -> Iterator[subprocess.Popen[str]]:
    text = START.format(support=str(SUPPORT)) + "".join(f"    {line}\n" for line in body.strip().splitlines())
    (tmp_path / "program.py").write_text(text)
    with subprocess.Popen(
        [sys.executable, "program.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


SPIN = """
with InterpreterPool(2) as pool:
    futures = [pool.submit(announce_and_spin, f"begun {n}") for n in range(4)]
    futures[0].result()
"""


def test_storm_of_ctrl_c_ends_the_program_by_that_signal(tmp_path: Path) -> None:
    """One interrupts the task that waits, one the wait for the workers' end, one that of the program."""
    with program(tmp_path, SPIN) as process:
        until((tmp_path / "begun 0").exists)
        until((tmp_path / "begun 1").exists)
        while process.returncode is None:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.005)
        assert process.stderr is not None
        said = process.stderr.read()
    assert process.returncode == -signal.SIGINT, said


LEAVES = """
shutdown.PATIENCE_S = 0.05
pool = InterpreterPool(1)
pool.submit(leave_a_thread, {seconds}).result()
"""


def test_program_waits_for_a_thread_that_a_task_has_left(tmp_path: Path) -> None:
    """As for each thread that is no daemon; the interpreter is not ended by two threads at once."""
    with program(tmp_path, LEAVES.format(seconds=0.5)) as process:
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (0, "")


def handles_ctrl_c(process: subprocess.Popen[str]) -> bool:
    status = Path(f"/proc/{process.pid}/status").read_text()
    masks = [line.split()[1] for line in status.splitlines() if line.startswith(("SigIgn", "SigCgt"))]
    return any(int(mask, 16) >> (signal.SIGINT - 1) & 1 for mask in masks)


WAITS = """
def tell():
    until(lambda: shutdown.over is not None)
    Path("waits").touch()
threading.Thread(target=tell, daemon=True).start()
"""
"""The program tells when it waits for its pools, from when on Ctrl-C ends that."""


def test_ctrl_c_ends_a_program_that_waits_for_a_thread_that_a_task_has_left(tmp_path: Path) -> None:
    with program(tmp_path, LEAVES.format(seconds=600) + WAITS) as process:
        until((tmp_path / "waits").exists)
        process.send_signal(signal.SIGINT)
        until(lambda: not handles_ctrl_c(process))  # from then on it is the system that ends it
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (-signal.SIGINT, "")


BUSY = """
shutdown.PATIENCE_S = 0.05
pool = InterpreterPool(1)
future = pool.submit(sleep_as_often_as_it_is_stopped, "begun")
until(Path("begun").exists)
"""
LEFT = "fairlead: the program was ended before 1 of its pools' tasks\n"


def test_program_ends_beside_a_worker_that_cannot_be_stopped(tmp_path: Path) -> None:
    with program(tmp_path, BUSY + "assert future.cancel()") as process:
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (0, "")


RETURNING = """
shutdown.PATIENCE_S = 0.05
pool = InterpreterPool(4)
futures = [pool.submit(sleep_as_often_as_it_is_stopped, f"begun {n}", 0.02 * (n + 1)) for n in range(4)]
for n in range(4):
    until(Path(f"begun {n}").exists)
assert all([future.cancel() for future in futures])

class LongEnd:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)  # meanwhile the workers' calls into C return

kept = LongEnd()
sys.exit(3)
"""


def test_call_into_c_that_returns_as_its_program_ends_does_no_harm(tmp_path: Path) -> None:
    with program(tmp_path, RETURNING) as process:
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (3, "")


def test_ctrl_c_ends_a_program_beside_a_task_that_cannot_be_stopped(tmp_path: Path) -> None:
    with program(tmp_path, BUSY + WAITS) as process:
        until((tmp_path / "waits").exists)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=100)
    assert (process.returncode, said) == (0, LEFT)

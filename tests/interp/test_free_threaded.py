"""fairlead._native where there is no GIL."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import threading
from pathlib import Path

import pytest
from commands import fairlead
from waiting import Thread

from fairlead import machine

pytestmark = pytest.mark.skipif(
    not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this is not a free-threaded build of Python"
)


def test_gil_stays_off_after_import() -> None:
    program = "import sys; from fairlead import machine; machine.cores(); print(sys._is_gil_enabled())"
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


def test_counters_from_four_threads_at_once_are_each_threads_own() -> None:
    gate = threading.Barrier(4)

    def read() -> list[str]:
        faults = []
        gate.wait()
        last, used = machine.clock_ns(), 0
        for _ in range(5000):
            now, usage, whole = machine.clock_ns(), machine.thread_usage(), machine.process_usage()
            total = usage.user_ns + usage.system_ns
            if now < last or total < used or total > whole.user_ns + whole.system_ns + 2000:
                faults.append(f"{last} {now} {used} {usage} {whole}")
            last, used = now, total
        return faults

    assert [thread.result() for thread in [Thread(read) for _ in range(4)]] == [[]] * 4


def test_program_to_record_is_refused_by_name_and_not_started(tmp_path: Path) -> None:
    done = fairlead(
        "record", "-o", "app.flrec", "--", sys.executable, "-c", "open('started', 'w')", cwd=tmp_path
    )
    assert done.returncode == 1
    assert "free-threaded" in done.stderr
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []

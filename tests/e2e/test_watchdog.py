"""A run of the tests that comes to a stand ends, and names the test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from programs import living

pytestmark = pytest.mark.once

pytest.importorskip("xdist")

HANGS_IN_C = """
import ctypes

def test_stuck():
    ctypes.PyDLL(None).sleep(60)
"""
CRASHES_BESIDE_A_CHILD = """
import os, signal, time

def test_stuck():
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGSEGV)
"""
PYTEST = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n1", "--max-worker-restart=0")


@pytest.mark.long
@pytest.mark.parametrize("program", [HANGS_IN_C, CRASHES_BESIDE_A_CHILD], ids=["hangs-in-c", "crashes"])
def test_run_that_stands_still_is_ended_and_names_its_test(program: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(program)
    (tmp_path / "conftest.py").write_text(
        "from watchdog import Watchdog\n\n"
        "class OfTheTest(Watchdog):  # and not of how long a worker takes to begin\n"
        "    def pytest_sessionstart(self): pass\n"
        "    def pytest_runtest_logstart(self, nodeid):\n"
        "        super().pytest_runtest_logstart(nodeid)\n"
        "        super().pytest_sessionstart()\n\n"
        "def pytest_configure(config):\n"
        "    if not hasattr(config, 'workerinput'):\n"
        "        config.pluginmanager.register(OfTheTest(config))\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | {
        "FAIRLEAD_TESTS_SILENCE_S": "3",
        "PYTHONPATH": str(Path(__file__).parents[1] / "support"),
        "THIS_TEST": str(tmp_path),
    }
    done = subprocess.run(
        [*PYTEST, "test_it.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "test_it.py::test_stuck" in done.stdout
    assert 'test_it.py", line' in done.stderr, "the stacks"
    assert living(f"THIS_TEST={tmp_path}\0") == []

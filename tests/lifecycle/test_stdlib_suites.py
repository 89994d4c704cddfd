"""The standard library's own tests hold for pools and primitives, but for differences that have a reason."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PROGRAM = Path(__file__).parents[2] / "tools" / "peers.py"


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("suite", ["futures", "multiprocessing", "threading", "queue", "asyncio"])
def test_standard_librarys_tests_pass_but_for_the_differences(suite: str) -> None:
    done = subprocess.run([sys.executable, PROGRAM, suite], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

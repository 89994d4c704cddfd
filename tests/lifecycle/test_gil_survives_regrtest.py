"""The interpreter's own tests, hooked: a part that takes seconds. ``make regrtest`` runs the whole of it."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not

MODULES = ("test_thread", "test_threading_local", "test_fork1")

pytestmark = [
    pytest.mark.once,
    pytest.mark.long,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.skipif(
        importlib.util.find_spec("test") is None or importlib.util.find_spec("test.test_thread") is None,
        reason="this interpreter does not ship its tests",
    ),
]


def test_outcomes_do_not_differ_from_stock() -> None:
    tool = Path(__file__).parents[2] / "tools" / "regrtest.py"
    command = [sys.executable, tool, sys.executable, "--modules", ",".join(MODULES), "--jobs", "3"]
    done = subprocess.run(
        [*command, "--ways", "observed,interactive"], capture_output=True, text=True, timeout=55
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(any(line.startswith(f"{name} ") for line in done.stdout.splitlines()) for name in MODULES)
    assert "no difference" in done.stdout

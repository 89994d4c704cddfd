"""tools/sync_storms.py, some rounds of it; ten thousand are for changes of how a wait ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once
TOOL = Path(__file__).parents[2] / "tools" / "sync_storms.py"


@pytest.mark.parametrize("which", ["INT", "ALRM"])
@pytest.mark.parametrize(
    ("statements", "count"), [("RWLock", 15), ("PriorityQueue", 6), ("Condition.wait", 2)]
)
def test_storm_of_signals_leaves_nothing_broken(statements: str, count: int, which: str) -> None:
    options = f"--rounds 20 --alone --seed 1 --signal {which} --only {statements}"
    command = [sys.executable, str(TOOL), *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert [(one["rounds"], one["broken"]) for one in found] == [(20, 0)] * count

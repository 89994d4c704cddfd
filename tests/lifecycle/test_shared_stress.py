"""tools/shared_stress.py, up to a hundred kills; a thousand are for changes of native/sync/processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"),
]
TOOL = Path(__file__).parents[2] / "tools" / "shared_stress.py"


@pytest.mark.parametrize("rounds", [4, pytest.param(100, marks=[pytest.mark.long, pytest.mark.timeout(300)])])
def test_event_survives_kills_of_setters_and_waiters(rounds: int) -> None:
    command = [sys.executable, str(TOOL), "--of", "event", "--rounds", str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100 + rounds, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()[1:]]
    assert [one["kill"] for one in found] == ["owner", "granted", "queued", "any"]
    assert [one["rounds"] for one in found] == [rounds] * 4

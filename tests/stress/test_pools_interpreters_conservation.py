"""The same of interpreters, which only some versions have: run by each."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "tools" / "pools_stress.py"


@pytest.mark.skipif(sys.version_info < (3, 13), reason="has no interpreters with a pool")
def test_every_future_ends_once_and_no_interpreter_is_left() -> None:
    seed = random.randrange(2**32)
    done = subprocess.run(
        [sys.executable, PROGRAM, "interpreters", "--tasks=600", f"--seed={seed}"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    assert sum(json.loads(done.stdout.splitlines()[-1])["outcomes"].values()) == 600

"""Tasks that fail, take too long, kill their worker or are cancelled: every future ends exactly once."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

PROGRAM = Path(__file__).parents[2] / "tools" / "pools_stress.py"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        ("threads", 1000),
        ("async", 1000),
        ("processes", 600),
        pytest.param("dask", 100, marks=pytest.mark.nightly),
    ],
)
def test_every_future_ends_once_and_nothing_is_left(kind: str, tasks: int) -> None:
    if kind == "dask":
        pytest.importorskip("distributed", reason="distributed is not installed")
    seed = random.randrange(2**32)
    done = subprocess.run(
        [sys.executable, PROGRAM, kind, f"--tasks={tasks}", f"--seed={seed}"],
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"seed {seed}: {done.stdout}{done.stderr}"
    report = json.loads(done.stdout.splitlines()[-1])
    assert sum(report["outcomes"].values()) == tasks
    assert report["outcomes"]["work: result"] > tasks / 2

"""Tasks that fail, take too long, kill their worker or are cancelled: every future ends exactly once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ends_and_free

PROGRAM = Path(__file__).parents[2] / "tools" / "pools_stress.py"


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        pytest.param("threads", 1000, marks=pytest.mark.once),
        pytest.param("async", 1000, marks=pytest.mark.once),
        pytest.param("processes", 600, marks=pytest.mark.once),
        pytest.param("dask", 100, marks=[pytest.mark.once, pytest.mark.nightly]),
        pytest.param(
            "interpreters", 600,
            marks=pytest.mark.skipif(sys.version_info < (3, 13), reason="has no interpreters with a pool"),
        ),
    ],
)  # fmt: skip
def test_every_future_ends_once_and_nothing_is_left(kind: str, tasks: int) -> None:
    if kind == "dask":
        pytest.importorskip("distributed", reason="distributed is not installed")
    done = subprocess.run(
        [sys.executable, PROGRAM, kind, f"--tasks={tasks}", "--seed=1"],
        capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert sum(report["outcomes"].values()) == tasks
    assert report["outcomes"]["work: result"] > tasks / 2

"""The programs with known answers that benchmarks/observe_truth.py measures: what is so on any machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead.gil.observe.access import why_not

refusal = why_not()
pytestmark = pytest.mark.skipif(refusal is not None, reason=f"the GIL cannot be observed: {refusal}")

PROGRAMS = Path(__file__).parents[2] / "benchmarks" / "truth_programs.py"
THREADS = {
    "spinners": {"spin-1", "spin-2"},
    "c-call": {"c-code", "asker"},
    "c-sleep": {"c-code", "asker"},
    "half-busy": {"half"},
    "hashing": {"hash-1", "hash-2"},
}


@pytest.mark.parametrize("name", THREADS)
def test_a_program_with_a_known_answer_is_seen_within_its_own_clocks(name: str) -> None:
    command = [sys.executable, str(PROGRAMS), name, "0.4", "--observe"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    result: dict[str, Any] = json.loads(done.stdout)
    seen, own = result["seen"], result["own"]
    assert {figure.rpartition(" ")[2] for figure in seen} >= THREADS[name]
    assert set(result["known"]) <= set(seen)
    for thread in THREADS[name]:
        assert 0 <= seen[f"on CPU {thread}"] <= seen[f"held {thread}"]
        # whoever computes in Python has the GIL; the rest is the CPU time of taking and dropping it
        assert seen[f"held {thread}"] >= own.get(f"on CPU {thread}", 0.0) - 0.05
    if name.startswith("c-"):
        # a call into C that keeps the GIL is one hold, which takes at least the CPU time of the call
        assert seen["longest hold c-code"] >= result["longest_call_cpu_s"]

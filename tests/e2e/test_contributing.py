"""The experiment that CONTRIBUTING.md shows is a real one: the lab reads it, and it measures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.lab.catalogue import registry

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]


def test_the_example_experiment_is_read_and_runs(tmp_path: Path) -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    path = tmp_path / "square_condition.py"
    path.write_text(program, encoding="utf-8")
    shutil.copy(registry.DIRECTORY / "probe.py", tmp_path)

    experiment = registry.load(path)
    done = subprocess.run(
        [sys.executable, path, json.dumps({"n": 5})], capture_output=True, text=True, check=True, timeout=100
    )
    result = json.loads(done.stdout)

    assert experiment.id == "square.condition"
    assert result["details"]["awake"] == 5
    assert result["wall_s"] > 0

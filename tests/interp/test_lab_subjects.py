"""The lab measures every kind of interpreter that this machine has."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from subprocess import run

import pytest
from interpreters import here

from fairlead.lab.catalogue.interpreters import contrast
from fairlead.record.results import read_results

pytestmark = pytest.mark.once


@pytest.mark.long
@pytest.mark.timeout(120)
def test_lab_run_measures_one_interpreter_of_each_kind(tmp_path: Path) -> None:
    chosen = contrast(here())
    names = [word for one in chosen for word in ("--interpreter", one.path)]
    program = (
        "from fairlead.lab.run import runner, sampling\n"
        "sampling.ENOUGH = sampling.AT_MOST = 2\nrunner.ATTEMPTS = 1\n"
        "from fairlead.cli import main; main()"
    )
    options = ["--sizes", "5,10", "--budget", "60s", "--out", str(tmp_path / "run")]
    command = [sys.executable, "-c", program, "lab", "run", "square.mutex", "--quick", *names, *options]
    done = run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    samples = read_results(tmp_path / "run").samples
    assert Counter(s.interpreter["executable"] for s in samples if s.status == "ok") == {
        one.executable: 4 for one in chosen
    }

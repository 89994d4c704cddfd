"""What upstream/ publishes is what its commands wrote."""

from __future__ import annotations

import runpy
import subprocess
from pathlib import Path

import pytest

UPSTREAM = Path(__file__).parents[2] / "upstream"
PATCHES = sorted(UPSTREAM.glob("patches/*/*.patch"))


def test_the_tables_are_those_of_the_results() -> None:
    page = runpy.run_path(str(UPSTREAM / "table.py"))["page"]()
    assert (UPSTREAM / "results.md").read_text() == page


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.parent.name)
def test_a_patch_is_whole_and_touches_the_gil_alone(patch: Path) -> None:
    run = subprocess.run(["git", "apply", "--numstat", patch], capture_output=True, text=True, check=True)
    touched = {line.split()[2] for line in run.stdout.splitlines()}
    allowed = {"Python/ceval_gil.c", "Include/internal/pycore_gil.h", "Include/internal/pycore_tstate.h"}
    assert touched <= allowed
    assert patch.read_text().startswith("From ")

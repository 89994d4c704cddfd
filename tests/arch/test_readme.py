"""The two commands at the top of README do what they say: make has both, and CI runs the same tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST_BLOCK = re.search(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ (make [\w-]+) +#", FIRST_BLOCK[1] if FIRST_BLOCK else "", re.MULTILINE)


def test_readme_begins_with_the_two_commands() -> None:
    assert COMMANDS == ["make lab", "make test"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_of_readme_is_a_target_that_make_can_reach(command: str) -> None:
    target = command.split()[1]
    assert re.search(rf"^{target}:.*  ## ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    # this test may run below a make, whose flags are not for this one
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS")}
    planned = subprocess.run(
        ["make", "-n", target], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert {"lab": "fairlead lab run", "test": "pytest"}[target] in planned


def test_ci_runs_the_command_for_the_tests_itself() -> None:
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()

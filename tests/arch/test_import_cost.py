"""What ``import fairlead`` brings along, in a fresh interpreter."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import python

import fairlead

PROGRAM = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
start = time.process_time()
import fairlead
spent = time.process_time() - start
print(json.dumps([sorted(set(sys.modules) - before), spent]))
"""


def import_alone() -> tuple[list[str], float]:
    """(modules, CPU seconds) of the import in an interpreter without site packages: its own cost only."""
    source = Path(fairlead.__file__).parent.parent
    modules, seconds = json.loads(python("-I", "-S", "-c", PROGRAM, source).stdout)
    return modules, seconds


def test_import_brings_nothing_but_the_package_itself() -> None:
    modules, _ = import_alone()
    assert modules == ["fairlead"]


@pytest.mark.timing
def test_import_takes_under_ten_milliseconds_of_cpu_time() -> None:
    assert min(seconds for _, seconds in (import_alone() for _ in range(5))) < 0.010


def test_command_that_starts_a_program_imports_neither_the_lab_nor_the_reports() -> None:
    program = """
import sys
import fairlead.cli.run, fairlead.gil.schedule.launch
print(*(name for name in sys.modules if name.startswith("fairlead.")))
"""
    loaded = python("-c", program).stdout.split()
    assert "fairlead.cli.run" in loaded
    heavy = ("fairlead.lab", "fairlead.report.summary.html", "fairlead.record.", "fairlead.cli.record")
    light = {"fairlead.record.policies"}
    assert [name for name in loaded if name.startswith(heavy) and name not in light] == []


@pytest.mark.parametrize("part", ["sync", "pools", "gil"])
def test_a_part_imports_nothing_that_takes_longer_than_itself(part: str) -> None:
    program = f"""
import sys
slow = {{"asyncio", "dataclasses", "enum", "inspect", "logging", "re", "typing"}}
for name in slow:
    sys.modules.pop(name, None)  # an editable install has some of them from its start
import fairlead.{part}
print("loaded:", *slow & sys.modules.keys())
"""
    assert python("-c", program).stdout.split() == ["loaded:"]


def test_help_imports_no_subcommand() -> None:
    program = """
import sys
from fairlead.cli.root import root
root.main(["--help"], standalone_mode=False)
print(*(name for name in sys.modules if name.startswith(("fairlead.cli.", "fairlead.lab"))))
"""
    assert python("-c", program).stdout.splitlines()[-1].split() == ["fairlead.cli.root"]

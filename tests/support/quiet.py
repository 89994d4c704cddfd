"""Tests that judge real time are run on a machine that is found to be quiet, or not at all."""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

import pytest

from fairlead.lab.isolation.other_load import Meter
from fairlead.record.sample import DISTURBED

LOOK_S = 1.0
METER: pytest.StashKey[Meter] = pytest.StashKey()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ends the run where other programs, or the host, take a share of the cores."""
    if item.get_closest_marker("timing") is None:
        return
    meter = Meter()
    meter.begin()
    time.sleep(LOOK_S)
    foreign = meter.end()
    if foreign is None or foreign >= DISTURBED:
        used = "nothing here tells" if foreign is None else f"other programs use {foreign:.0%} of its cores"
        pytest.exit(f"this machine is not quiet ({used}): run the tests of time when it is", returncode=1)
    meter.begin()
    item.stash[METER] = meter


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failure says how quiet it was meanwhile."""
    report = yield
    if call.when == "call" and report.failed and METER in item.stash:
        meter = item.stash[METER]
        foreign: Any = meter.end()
        if foreign is not None:
            report.sections.append(
                ("the machine meanwhile", f"other programs used {foreign:.0%} of its cores")
            )
    return report

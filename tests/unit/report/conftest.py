"""A recording that several reports are made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from gilprograms import example
from gilsim import MS, Simulation

from fairlead.gil.analysis.analyse import analyse
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import Recording


@pytest.fixture(scope="session")
def convoy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One thread computes, and one needs the GIL now and then."""
    simulation = Simulation(example("convoy"), until_ns=500 * MS)
    return simulation.writer().save(tmp_path_factory.mktemp("recordings") / "convoy.flrec")


@pytest.fixture(scope="session")
def convoy_summary(convoy: Path) -> GilSummary:
    return analyse(Recording(convoy))

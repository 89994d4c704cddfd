"""The squares under the scheduler at a million simulated threads: a minute of CPU time, 500 MB each."""

from __future__ import annotations

import os
from typing import Any

import pytest

from fairlead.gil import simulation as sim


@pytest.mark.skipif(
    "FAIRLEAD_STRESS" not in os.environ, reason="takes minutes; set FAIRLEAD_STRESS=1 to run it"
)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "square", [sim.square_thread_start, sim.square_mutex, sim.square_semaphore], ids=lambda f: f.__name__
)
def test_squares_stay_linear_at_a_million_threads(square: Any) -> None:
    run = sim.simulate(square(1_000_000), seed=1)
    assert run.passes <= 8 * 1_000_000
    assert run.elapsed_seconds <= 1_000_000 * 100e-6

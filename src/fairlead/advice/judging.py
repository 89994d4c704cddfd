"""How sure the measured time of a candidate is, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from fairlead.lab.analysis.modes import FEWEST
from fairlead.lab.analysis.statistics import FOREIGN_LIMIT, Description
from fairlead.record.advice import Sureness

DISTURBED_LIMIT = 0.25
"""The quartiles, and so the interval, stand up to this share of disturbed samples."""
SPREAD_LIMIT = 0.10
"""A median whose interval reaches further than this to either side, relative to it, is noisy."""
_WORTHWHILE = 10


def judge(count: int, found: Description, foreign: Sequence[float]) -> tuple[Sureness, str | None]:
    """How sure the median of so many times is.

    Args:
        count: of the times.
        found: what they say.
        foreign: share of the cores that other processes took (0 to 1), a number per time, or empty.
    """
    disturbed = sum(share > FOREIGN_LIMIT for share in foreign)
    busy = disturbed > DISTURBED_LIMIT * count
    if count < FEWEST:
        have = "1 sample is" if count == 1 else f"{count} samples are"
        return "undecided", f"{have} too few, {FEWEST} are the least: run again with a larger --budget"
    if len(found.modes) > 1:
        quiet = (
            f"; {disturbed} of {count} samples met foreign load: run again on a quieter machine"
            if busy
            else ""
        )
        apart = found.modes[1] / found.modes[0]
        factor = f"x{apart:.1f}" if apart < 10 else f"x{apart:.0f}"
        return "bimodal", f"two populations, {factor} apart: quote both modes, not the median{quiet}"
    if busy:
        return "noisy", (
            f"other processes took more than {FOREIGN_LIMIT * 100:.0f} % of the cores "
            f"during {disturbed} of {count} samples: stop them or run again on a quieter machine"
        )
    assert found.median is not None
    assert found.low is not None
    assert found.high is not None
    reach = max(found.high - found.median, found.median - found.low) / found.median
    if reach > SPREAD_LIMIT:
        # an interval shrinks with the root of the number of samples
        times = math.ceil((reach / SPREAD_LIMIT) ** 2)
        remedy = "on a quieter machine"
        if times <= _WORTHWHILE:
            remedy = f"with {times} times the --budget or {remedy}"
        return "noisy", f"the median is known to {reach * 100:.0f} % only: run again {remedy}"
    return "stable", None

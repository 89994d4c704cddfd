"""Which thread held the GIL and which waited when: the pure data that timelines are drawn from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """One thread on one GIL. Times are ns since the recording's start."""

    gil: int
    serial: int
    held: NDArray[np.int64]
    """ns held within each bin: exact, whatever the number of intervals."""
    waited: NDArray[np.int64]
    holds: NDArray[np.int64]
    """Rows of (start, end), in order; those that are at least ``Timeline.shortest_ns`` long."""
    waits: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """All lanes over the same bins."""

    end_ns: int
    bin_ns: int
    shortest_ns: int
    """Intervals shorter than this are in the bins only; 0 when all are there."""
    lanes: tuple[Lane, ...]
    """Dearest (held + waited) first."""
    left_out: int
    """Threads that found no lane."""

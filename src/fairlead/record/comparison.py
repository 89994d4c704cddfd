"""How two runs differ: the pure data between ``fairlead.lab.compare`` and the reports.

"a" is the run that is held to be the base, "b" the one that is compared with it: "slower" means that b is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlead.record.summary import Fit

Run = Literal["a", "b"]

Change = Literal["faster", "slower", "no difference shown", "undecided"]
"""faster, slower: b, beyond chance and by more than two runs of the same thing may differ. no difference
shown: there were samples enough to show one. undecided: there were not, or they cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """One cell that both runs measured."""

    n: int
    median_a: float
    """Seconds."""
    median_b: float
    samples_a: int
    samples_b: int
    ratio: float
    """median_b / median_a: 2 is twice as slow."""
    low: float
    """Lower end of the 95 % bootstrap interval of the ratio."""
    high: float
    p: float
    """Two-sided Mann-Whitney U test, corrected by Holm's method for all cells of the comparison."""
    effect: float
    """Cliff's delta, -1 to 1: how much more often a sample of b is slower than one of a than the reverse."""
    change: Change
    advice: str | None
    """Why it is undecided, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChange:
    """One series that both runs have."""

    experiment: str
    title: str
    variant: dict[str, Any]
    label_a: str
    label_b: str
    interpreter_a: dict[str, Any]
    interpreter_b: dict[str, Any]
    fit_a: Fit
    fit_b: Fit
    cells: tuple[CellChange, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """What only one run measured."""

    run: Run
    experiment: str
    variant: dict[str, Any]
    label: str
    interpreter: dict[str, Any]
    sizes: tuple[int, ...]
    """The sizes that the other run has no time for; empty for a series that only this run has, unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything a report of a comparison shows."""

    series: tuple[SeriesChange, ...]
    unmatched: tuple[Unmatched, ...]
    environment_a: dict[str, Any]
    environment_b: dict[str, Any]
    differing: tuple[str, ...]
    """What differs between the machines (names of ``results.FINGERPRINT``); then times compare badly."""
    problems: tuple[str, ...]
    """What was left out of either run, and what else a reader must know."""

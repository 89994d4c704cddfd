"""How runs differ: the pure data between ``fairlead.lab.analysis.compare`` and the reports.

Runs are called by letters, in the order in which they were named. What several of them measured is held
against the first that has it, its base: mostly "a". "slower" means slower than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlead.record.summary import Series, Subject

Change = Literal["faster", "slower", "no difference shown", "undecided"]
"""faster, slower: than the base, beyond chance and by more than two runs of the same thing may differ. no
difference shown: there were samples enough to show one. undecided: there were not, or they cannot be
compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One of the runs that are compared."""

    letter: str
    name: str
    """What it was named by: its directory or file."""
    environment: dict[str, Any]
    """The one that most of its samples share."""
    samples: int
    started: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """One cell of a run, beside the same of the first run that has it."""

    n: int
    base: str
    """The letter of that first run."""
    run: str
    """The letter of the run that is held against it."""
    median_base: float
    """Seconds."""
    median: float
    samples_base: int
    samples: int
    ratio: float
    """median / median_base: 2 is twice as slow."""
    low: float | None
    """Lower end of the 95 % bootstrap interval of the ratio; None with fewer than five samples on a side."""
    high: float | None
    p: float
    """Two-sided Mann-Whitney U test, corrected by Holm's method for all cells of the comparison."""
    effect: float
    """Cliff's delta, -1 to 1: how much more often a sample of the run is slower than one of the base than the
    reverse."""
    change: Change
    advice: str | None
    """Why it is undecided, and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A run's part in a series that several have."""

    run: str
    series: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesChange:
    """One series that two runs or more have."""

    subject: Subject
    variant: dict[str, Any]
    members: tuple[Member, ...]
    """In the order of the runs."""
    cells: tuple[CellChange, ...]
    """By size, and for each size in the order of the runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmatched:
    """What only one run measured."""

    run: str
    experiment: str
    variant: dict[str, Any]
    label: str
    interpreter: dict[str, Any]
    sizes: tuple[int, ...]
    """The sizes that no other run has a time for; empty for a series that only this run has, unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything a report of a comparison shows."""

    runs: tuple[ComparedRun, ...]
    series: tuple[SeriesChange, ...]
    unmatched: tuple[Unmatched, ...]
    differing: tuple[str, ...]
    """What differs between the machines (names of ``results.FINGERPRINT``); then times compare badly."""
    problems: tuple[str, ...]
    """What was left out of any run, and what else a reader must know."""

"""How runs differ: the pure data between ``fairlead.lab.analysis.compare`` and the reports.

What is compared, a directory or file, is called a run, also where it holds several repetitions. Runs are
called by letters, in the order in which they were named. What several of them measured is held against the
first that has it, its base: mostly "a". "slower" means slower than that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fairlead.record.summary import Series, Subject

Change = Literal["faster", "slower", "within", "undecided"]
"""faster, slower: than the base, beyond chance, by more than two runs of the same thing may differ, and by
more than the machine's speed did. within: no difference beyond a margin. undecided: the samples do not say,
or cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRun:
    """One of the runs that are compared."""

    letter: str
    name: str
    """What it was named by: its directory or file."""
    environment: dict[str, Any]
    """The one that most of its samples share."""
    samples: int
    runs: int
    """How often it was repeated: the runs in its file, which are clusters of samples."""
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
    runs_base: int
    runs: int
    """How many repetitions the samples are from. With three a side or more the interval is over these."""
    ratio: float
    """Of the geometric means, run over base: 2 is twice as slow."""
    low: float | None
    """Lower end of the 95 % interval of the ratio, with fewer repetitions that of just these samples; None
    with fewer than three samples on a side."""
    high: float | None
    p: float
    """Two-sided, of Welch's t test of the logarithms, with what runs of the same thing differ by counted,
    corrected by Holm's method for all cells of the comparison."""
    change: Change
    within: float | None
    """1.1: the whole interval lies between 1 / 1.1 and 1.1. None unless that is the change."""
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
class WholeChange:
    """What differs between a run and another as a whole."""

    base: str
    run: str
    series: int
    """So many series the ratio is the geometric mean of, each taken once."""
    ratio: float
    low: float
    """Lower end of the 95 % interval, from how far the series' ratios lie apart."""
    high: float
    speed: float | None
    """How many times as long the fixed loop before each sample took; None for two machines."""


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
    wholes: tuple[WholeChange, ...]
    """For each two runs that have three series or more in common."""
    unmatched: tuple[Unmatched, ...]
    differing: tuple[str, ...]
    """What differs between the machines (names of ``results.FINGERPRINT``); then times compare badly."""
    problems: tuple[str, ...]
    """What was left out of any run, and what else a reader must know."""

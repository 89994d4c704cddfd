"""What a set of samples says: the pure data between the lab's statistics and the reports.

``fairlead.lab.analyse`` makes a ``Summary`` from samples; ``fairlead.report`` turns one
into a table, a page, JSON or CSV. Neither knows the other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from fairlead.record.gil_trace import GilTrace

Verdict = Literal["stable", "noisy", "bimodal", "undecided"]
"""stable: the number can be relied on. noisy: foreign load or a wide spread. bimodal: two populations, so
one median means little. undecided: too few samples, or no model fits clearly better than the next."""

Model = Literal["1", "n", "n log n", "n^2", "undecided"]

Schedule = Literal["", "start", "pass"]
"""Which picture explains an experiment. start: n are started one by one, and each start is waited for.
pass: a lock or a wake-up goes from one to the next. Empty: neither picture is true of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All samples of one experiment, interpreter and parameter set."""

    params: dict[str, Any]
    n: int
    values: tuple[float, ...]
    """Wall seconds of the samples with status "ok", in the order they were taken."""
    median: float | None
    low: float | None
    """Lower end of the 95 % bootstrap interval of the median."""
    high: float | None
    iqr: float | None
    outliers: int
    modes: tuple[float, ...]
    """One value when unimodal, the two modes' medians when bimodal."""
    factor: float | None
    """median / median of the smallest n of the same series."""
    cpu_s: float | None
    """Median of user + system seconds."""
    cpu_percent: float | None
    max_rss_kb: float | None
    sum_rss_kb: float | None
    ctx_voluntary: float | None
    ctx_involuntary: float | None
    foreign_share: float | None
    verdict: Verdict
    advice: str | None
    """What to do about a verdict other than "stable"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How time grows with n over one series."""

    exponent: float | None
    """Slope of log(time) over log(n), on raw points."""
    low: float | None
    """Lower end of the exponent's 95 % bootstrap interval."""
    high: float | None
    model: Model
    verdict: Verdict
    advice: str | None
    coefficients: tuple[float, float] | None = None
    """(intercept, slope) of the chosen model: time = intercept + slope * g(n)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One experiment on one interpreter with one variant of parameters, over its sizes."""

    experiment: str
    interpreter: dict[str, Any]
    variant: dict[str, Any]
    """The parameters without ``n``."""
    label: str
    """A short name for the variant ("release", "rr, 1 core"); empty for the plain one."""
    cells: tuple[Cell, ...]
    fit: Fit
    skipped: str | None = None
    """The reason when nothing was run."""
    failures: tuple[str, ...] = ()
    """One line per kind of failed sample: how many, status, reason."""
    trace: GilTrace | None = None
    """Of an experiment that records one: that of its last sample."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """One published curve to hold a series against."""

    label: str
    points: tuple[tuple[int, float], ...]
    """(n, seconds)"""
    exponent: float | None
    variant: dict[str, Any] = field(default_factory=dict)
    """Parameters this curve belongs to; empty means every variant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is known of an experiment beforehand: enough to explain its results without importing the lab."""

    id: str
    title: str
    question: str
    """One sentence: what the experiment asks."""
    explanation: str
    """One paragraph: why the result comes out as it does."""
    size_name: str
    """What n counts: "threads", "processes"."""
    references: tuple[Reference, ...] = ()
    schedule: Schedule = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Everything a report shows."""

    subjects: tuple[Subject, ...]
    series: tuple[Series, ...]
    environment: dict[str, Any]
    """The environment that most samples share."""
    environments: int
    """How many different environments the samples come from (1 unless files were put together)."""
    samples: int
    started: str | None
    finished: str | None
    problems: tuple[str, ...] = ()
    """Damaged lines and other things the reader had to leave out."""

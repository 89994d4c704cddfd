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

Unit = Literal["s", "KiB", "share", "ratio", "count", "per s"]
"""What a metric counts: seconds, KiB, a share of 1, a ratio, things, or things a second."""

Schedule = Literal["", "start", "pass"]
"""Which picture explains an experiment. start: n are started one by one, and each start is waited for.
pass: a lock or a wake-up goes from one to the next. Empty: neither picture is true of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A figure that an experiment gives besides the time: what stands at the head of its column."""

    name: str
    """The key in ``Cell.metrics`` and in a sample's ``details["metrics"]``."""
    title: str
    unit: Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """All samples of one experiment, interpreter and parameter set."""

    params: dict[str, Any]
    n: int
    values: tuple[float, ...]
    """Seconds of the samples with status "ok", in the order they were taken: ``wall_s``, or the metric that
    the experiment declares as its value."""
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
    metrics: dict[str, float] = field(default_factory=dict)
    """Medians of the experiment's further figures, by the names of ``Subject.metrics``; what no sample gave
    is not among them."""


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
    not_measured: dict[str, str] = field(default_factory=dict)
    """Of metrics that could not be measured: why, by their names."""
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
    metrics: tuple[Metric, ...] = ()
    growth: bool = True
    """Whether it asks how the time grows with n; if not, nothing is fitted."""
    group: str = ""
    """Experiments of one group do the same work in different ways, and are ranked (see ``Ranking``)."""
    ways: str = "case"
    """The parameter whose values are those ways: of one experiment, or each that of an experiment of its
    own."""
    base: str = ""
    """The way that the others are compared with, in the metric "speed_up"; empty: none."""
    value_name: str = "elapsed"
    """What the time is: that of the whole, unless the experiment declares another ("per request")."""


Standing = Literal["best", "as fast", "slower", "wrong", "undecided"]
"""as fast: the interval of its time reaches that of the fastest. best: of those the one that uses the least
processor time; where two use about as much, the one with less memory. slower: the interval lies above.
wrong: some of its answers were, and it is no candidate. undecided: too few samples for an interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One way of doing the work, as it stands among the others."""

    series: Series
    case: str
    """Its short name: the value of ``Subject.ways``; "free-threaded threads" on a build without a GIL."""
    cell: Cell
    standing: Standing
    times: float
    """Its median time over that of the fastest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """All ways of doing the same work, with the same number of tasks on one version of an interpreter: to
    its ways belong those of its free-threaded build."""

    group: str
    n: int
    interpreter: dict[str, Any]
    """Of the first place: the one with a GIL if there are both."""
    places: tuple[Place, ...]
    """In the order of the catalogue, those of a free-threaded build last."""
    label: str = ""
    """What the labels of all their series say besides the way: the setting."""


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
    rankings: tuple[Ranking, ...] = ()
    problems: tuple[str, ...] = ()
    """Damaged lines and other things the reader had to leave out."""

"""What a set of samples says: the pure data between the lab's statistics and the reports.

``fairlead.lab.analysis.summarise`` makes a ``Summary`` from samples; ``fairlead.report`` turns one
into a table, a page, JSON or CSV. Neither knows the other.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal

from fairlead.record.document import Document
from fairlead.record.gil_trace import GilTrace

Verdict = Literal["settled", "open", "contradicts the source"]
"""settled: the whole interval lies on one side of the claim's threshold. open: it does not, or there is none
yet. contradicts the source: settled, and what was published lies on the other side."""

ClaimKind = Literal["ratio", "exponent"]

Model = Literal["1", "n", "n log n", "n^2", "undecided"]

Unit = Literal["s", "KiB", "share", "ratio", "count", "per s"]
"""What a metric counts: seconds, KiB, a share of 1, a ratio, things, or things a second."""

Schedule = Literal["", "start", "pass"]
"""Which picture explains an experiment. start: n are started one by one, and each start is waited for.
pass: a lock or a wake-up goes from one to the next. Empty: neither picture is true of it."""


RunRound = tuple[int, int]
"""(number of the run, from 0; number of the round in it): only what shares both was taken side by side."""


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
    """Lower end of the 95 % interval of the median; of several runs, of the mean of their medians."""
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
    rounds: tuple[RunRound, ...] = ()
    """In which run and round each of ``values`` was taken."""
    disturbed: float | None = None
    """Median of ``Sample.disturbed``: the share of the time that others took."""
    metrics: dict[str, float] = field(default_factory=dict)
    """Medians of the experiment's further figures, by the names of ``Subject.metrics``; what no sample gave
    is not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """How time grows with n over one series. ``Claim`` says what of it is settled."""

    exponent: float | None
    """Slope of log(time) over log(n), on raw points; of several runs the mean of their slopes."""
    low: float | None
    """Lower end of the exponent's 95 % interval."""
    high: float | None
    model: Model
    note: str | None = None
    """What keeps the exponent or the model from saying more: few sizes, a bend, two populations, rivals."""
    coefficients: tuple[float, float] | None = None
    """(intercept, slope) of the chosen model: time = intercept + slope * g(n)."""
    behind_fixed_cost: float | None = None
    """The greatest p that time = a + b n^p leaves open at 95 %, a not negative: where a part of the time is a
    fixed cost, the rest grows faster than ``exponent``."""


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
    fit: Fit = Fit(exponent=None, low=None, high=None, model="undecided")
    """Of an experiment that asks no growth, one without an exponent."""
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
    """What it was measured on: "CPython, 2 cores"."""
    points: tuple[tuple[int, float], ...]
    """(n, value); n is 0 where the source does not say what it was."""
    variant: dict[str, Any] = field(default_factory=dict)
    """Parameters this curve belongs to; empty means every variant."""
    metric: str = "elapsed"
    """What the values are: "elapsed" (the time that the statistics are about), one of the experiment's
    metrics, or ``cpu_percent`` or ``max_rss_kb``."""
    unit: Unit = "s"
    versions: str = ""
    """The versions of the interpreter that it is about, as "<3.2" or ">=2.7,<3.2"; empty: all."""

    def is_about(self, interpreter: Mapping[str, Any]) -> bool:
        """Whether it can be held against results of an interpreter.

        A label that begins with the name of an implementation ("PyPy, 2 cores") is about that one alone, and
        one that names the free-threaded build about that build.
        """
        named = next((name for name in _IMPLEMENTATIONS if self.label.startswith(name)), None)
        return (
            named in (None, interpreter.get("implementation"))
            and ("free-threaded" not in self.label or bool(interpreter.get("free_threaded")))
            and (not self.versions or meets(self.versions, str(interpreter.get("version"))))
        )

    def at(self, n: int) -> float | None:
        """The curve at a size between two of its points, as a power of n; None outside of them."""
        for (n0, t0), (n1, t1) in pairwise(sorted(self.points)):
            if 0 < n0 <= n <= n1 and n0 < n1 and min(t0, t1) > 0:
                return float(t0 * (n / n0) ** (math.log(t1 / t0) / math.log(n1 / n0)))
        return None

    def exponent(self, sizes: Iterable[int]) -> float | None:
        """The slope of log(value) over log(n) at those of ``sizes`` that lie in its range: what a series of
        these sizes is to be held against. None where fewer than two do."""
        found = {n: value for n in sizes if (value := self.at(n)) is not None}
        if len(found) < 2:
            return None
        x, y = [math.log(n) for n in found], [math.log(value) for value in found.values()]
        middle = sum(x) / len(x)
        return sum((a - middle) * b for a, b in zip(x, y, strict=True)) / sum((a - middle) ** 2 for a in x)


_IMPLEMENTATIONS = ("CPython", "PyPy")
"""Names that can begin a reference's label."""
_CONDITION = re.compile(r"(>=|<=|==|<|>|)\s*(\d+)\.(\d+)")
_COMPARE = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}


def meets(conditions: str, version: str) -> bool:
    """Whether a version, "3.13.0", meets every one of comma-separated conditions, as "2.7" or ">=3.8,<3.12".

    Raises:
        ValueError: a condition is none.
    """
    own = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    met = True
    for condition in conditions.split(","):
        parsed = _CONDITION.fullmatch(condition.strip())
        if parsed is None:
            raise ValueError(f"{condition.strip()!r} is no version as 2.7 or >=3.8")
        compare, major, minor = parsed.groups()
        met = met and _COMPARE[compare](own, (int(major), int(minor)))
    return met


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
"""By the ratio of its time to that of the fastest, paired by round. slower: the whole interval lies above 1.
as fast: it does not, and ends below 1.1. best: of the fastest and those as fast the one that uses the least
processor time; where two use about as much, the one with less memory. wrong: some of its answers were, and
it is no candidate. undecided: the interval holds 1 and more than 1.1, there are fewer than 5 rounds, or
others disturbed the samples; then nothing is best."""


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
class Side:
    """One of the two times, or of the two figures of a metric, that a ratio is about."""

    what: str
    """Which variant, or which n where that is all they differ in: "beside nothing", "2 threads"."""
    n: int
    median: float
    """Of the rounds that the ratio is of."""
    unit: Unit = "s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """What a source says to a claim."""

    label: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One of the two populations that the ratios of a claim fall into."""

    value: float
    """The geometric mean of its rounds' ratios."""
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement that a reader takes home, and how sure it is.

    A ratio is that of two times of the same round. Of one run, its interval is that of this run:
    ``measure.ratio.paired`` over the rounds. Of several runs it is over the runs, by their means. An exponent
    and its interval are those of the series' fit.
    """

    topic: str
    """What it is about, in a few words; unique among the claims of an experiment."""
    kind: ClaimKind
    experiment: str
    """Which declares it; of ways of doing the same work their group."""
    interpreter: dict[str, Any]
    text: str
    """What is claimed: the declared sentence, or its opposite if that is what is settled."""
    value: float | None
    """None of a ratio with two modes, whose mean is none of them."""
    low: float | None
    high: float | None
    rounds: int
    """How many rounds the interval rests on; of an exponent, the fewest samples of a size."""
    threshold: float
    verdict: Verdict
    falsified: str
    """What would show that it is wrong."""
    main: bool = True
    """Whether it stands in the short report where there are many."""
    sides: tuple[Side, ...] = ()
    published: tuple[Published, ...] = ()
    note: str | None = None
    """What keeps it open besides the width of its interval, and what was left out."""
    modes: tuple[Mode, ...] = ()
    """Of a ratio that falls into two: both, the smaller value first."""
    unseen: float | None = None
    """Of a ratio with an interval: a mode that fewer than this share of the rounds take may not have been
    seen, at 99 %."""
    runs: int = 1
    """How many runs it rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What disturbed a run, told apart. ``None`` where nothing was recorded."""

    other_load: float | None = None
    """Median share of the cores that other processes took while samples ran, without stolen time."""
    highest_load: float | None = None
    """The same of the 19th of 20 samples."""
    stolen: float | None = None
    """Share of the cores' time that the host gave to other machines, of the 19th of 20 samples."""
    throttled_s: float | None = None
    """How long a CPU quota kept samples from running, all together."""
    speed_varied: float | None = None
    """Half the distance from the 5th to the 95th percentile of ``spin_s``, over its median: how much the
    core's speed varied."""
    spin_s: float | None = None
    """Median CPU time of a fixed piece of code, run before each sample."""
    rejected: int = 0
    """Samples that were disturbed, rejected and taken again."""
    warm_up: tuple[str, ...] = ()
    """Interpreters with a compiler at run time: each sample is a fresh process and includes its warm-up."""
    wrong_clock: str | None = None
    """A time that no sample can have been taken at, as one said: the machine's clock was wrong."""


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
    """That were begun: what was skipped is none."""
    started: str | None
    finished: str | None
    rankings: tuple[Ranking, ...] = ()
    claims: tuple[Claim, ...] = ()
    conditions: Conditions = Conditions()
    again: dict[str, str] = field(default_factory=dict)
    """By the names of experiments and of groups of them: the command that measures the same once more."""
    documents: tuple[Document, ...] = ()
    """Those that show what one of the experiments measures."""
    runs: int = 1
    """How many runs the samples come from."""
    problems: tuple[str, ...] = ()
    """Damaged lines and other things the reader had to leave out."""

"""What the figures say, in sentences and in ASCII: shared by the terminal and the page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from fairlead.record.summary import (
    Cell,
    Fit,
    Metric,
    Place,
    Ranking,
    Reference,
    Series,
    Subject,
    Summary,
)
from fairlead.report.common import names, units

VERDICTS: dict[str, tuple[str, str]] = {
    "settled": (
        "The whole interval lies on one side of the claim's threshold. A ratio is the geometric mean of its "
        "rounds' ratios, with an interval of 99 % that is of this run, or over the runs where there are "
        "several; the two times are medians of the same rounds; an exponent has an interval of 95 %. A ratio "
        "with two modes has none: both lie on one side.",
        "There is nothing to do.",
    ),
    "rough": (
        "Settled, but for the size: the upper end of the interval is more than twice the lower one, or it is "
        "that of an exponent and wider than 0.3. Beyond 100 times, or 2 of an exponent, it is unknown.",
        "A larger --budget narrows it.",
    ),
    "open": (
        "The interval holds the threshold, there are too few rounds for one, or others disturbed the "
        "samples.",
        "A larger --budget narrows it: rounds go where they narrow a claim's interval most per second.",
    ),
    "contradicts the source": (
        "Settled, and everything that was published of it lies on the other side of the threshold.",
        "Look at what the source measured: its machine and its version of Python stand beside its figure.",
    ),
}
"""Each verdict's meaning, and what to do about it."""

MODELS: dict[str, str] = {
    "1": "takes the same time whatever n is",
    "n": "grows in step with n",
    "n log n": "grows a little faster than n",
    "n^2": "grows with the square of n",
    "undecided": "follows none of the models clearly",
}


def subjects(summary: Summary) -> list[tuple[Subject, list[Series]]]:
    """Every experiment that has a series, in the catalogue's order, with its series in theirs.

    An experiment that the summary does not explain still gets its place, under its id.
    """
    known = {subject.id: subject for subject in summary.subjects}
    ids = [i for i in known if any(s.experiment == i for s in summary.series)]
    ids += [i for i in dict.fromkeys(s.experiment for s in summary.series) if i not in known]
    return [
        (
            known.get(i) or Subject(id=i, title=i, question="", explanation="", size_name="n"),
            [s for s in summary.series if s.experiment == i],
        )
        for i in ids
    ]


def measured(series: Series) -> bool:
    """Whether any sample of the series succeeded."""
    return any(cell.values for cell in series.cells)


def standing(place: Place) -> str:
    """ "best", "as fast", "wrong", "undecided"; of one that is slower, how many times: "x3.20"."""
    return units.factor(place.times) if place.standing == "slower" else place.standing


STANDINGS = (
    "best: the least processor time of all that are as fast as the fastest, by the ratio of their times, "
    "paired by round; where two use about as much of it, the one with less memory. x2.00: twice the time of "
    "the fastest. wrong: some answers were, and however fast it is, it is no candidate."
)
"""The rule by which alternatives are ranked."""


WORKS = {
    "models.io": "I/O",
    "models.cpu": "CPU work",
    "models.mixed": "I/O and CPU work",
    "models.blocking": "a blocking client in an event loop",
}
"""What the works of a family are called in a word or two, where several experiments are ways to do them."""


def work_order(group: str) -> int:
    """Works in the order in which one asks for them."""
    return [*WORKS, group].index(group)


def work(group: str, subjects: Mapping[str, Subject]) -> str:
    """What a work is called in a word or two: "I/O", "a recursive function"."""
    if group in WORKS:
        return WORKS[group]
    title = subjects[group].title if group in subjects else group
    return names.clean(title.partition(": ")[2] or title)


def way(place: Place, subjects: Mapping[str, Subject]) -> str:
    """A way of doing it: what stands behind the comma of its title, or its short name."""
    subject = subjects.get(place.series.experiment)
    behind = subject.title.partition(", ")[2] if subject and subject.id != subject.group else ""
    # that a build is free-threaded is said by its name
    return names.clean(behind or place.case.removeprefix("free-threaded "))


def ranking(ranking: Ranking, subject: Subject, roster: names.Roster) -> str:
    """ "models.io, 30 tasks, CPython 3.13.0": what is ranked, of the subject of one of its ways."""
    first = ranking.places[0].series
    where = ", ".join(filter(None, (roster.of(first).label, names.clean(ranking.label))))
    return f"{names.clean(ranking.group)}, {ranking.n} {names.clean(subject.size_name)}, {where}"


def further(subject: Subject, cells: Iterable[Cell]) -> list[Metric]:
    """The figures of an experiment besides the one that the statistics are about, of which a cell has any."""
    had = {name for cell in cells for name, value in cell.metrics.items() if value is not None}
    return [metric for metric in subject.metrics if metric.name in had and metric.title != subject.value_name]


def took(subject: Subject) -> str:
    """What the time of a ranking is."""
    return "wall" if subject.value_name == "elapsed" else names.clean(subject.value_name)


def switches(cell: Cell) -> float | None:
    """Context switches of both kinds together; None when neither was counted."""
    counted = [c for c in (cell.ctx_voluntary, cell.ctx_involuntary) if c is not None]
    return sum(counted) if counted else None


def power(exponent: float | None) -> str:
    """ "n^2.05"; "-" for None."""
    return units.NOTHING if exponent is None else f"n^{_two(exponent)}"


def bounds(low: float | None, high: float | None) -> str:
    """ "[1.98, 2.11]" of an exponent, "[unknown]" where it may be anything; empty where an end is missing."""
    if low is None or high is None:
        return ""
    # over sizes 1 to 10 that is as wide as a ratio's interval of the same name
    return "[unknown]" if high - low > math.log10(units.UNKNOWN) else f"[{_two(low)}, {_two(high)}]"


def _two(exponent: float) -> str:
    # adding zero turns the -0.0 that a small negative number is rounded to into 0.0
    return f"{round(exponent, 2) + 0.0:.2f}"


def model(fit: Fit) -> str:
    """ "n^2", "constant"."""
    return "constant" if fit.model == "1" else fit.model


def fit(fit: Fit) -> str:
    """ "grows as n^2.05 [1.98, 2.11] -> n^2"."""
    if fit.exponent is None:
        return "no exponent"
    grows = " ".join(filter(None, ("grows as", power(fit.exponent), bounds(fit.low, fit.high))))
    return f"{grows} -> {fit.model}"


def cell(cell: Cell) -> str:
    """ "344 ms ± 26 %", or both modes of a cell that has two: "190 ms or 4.10 s"."""
    if len(cell.modes) > 1:
        return " or ".join(map(units.seconds, cell.modes))
    return " ".join(
        filter(None, (units.seconds(cell.median), units.spread(cell.low, cell.high, cell.median)))
    )


def published(subject: Subject, series: Series) -> tuple[Reference, ...]:
    """The published figures that belong to the series: its variant's, and of its own interpreter.

    One that does not say so was measured on all cores under the default policy.
    """
    return tuple(
        r
        for r in subject.references
        if all(series.variant.get(k) == v for k, v in r.variant.items())
        and all(series.variant.get(k, v) == v for k, v in _PLAIN.items() if k not in r.variant)
        and r.is_about(series.interpreter)
    )


def references(subject: Subject, series: Series) -> tuple[Reference, ...]:
    """Of those the curves of what the statistics are about, with the sizes that they were measured at."""
    return tuple(
        r for r in published(subject, series) if r.metric == "elapsed" and all(n for n, _ in r.points)
    )


_PLAIN = {"policy": "other", "cores": "all"}


def reference(reference: Reference) -> str:
    """ "CPython, 2 cores: n = 100: 128 ms, n = 900: 11.0 s (x85.8)"."""
    parts = []
    if reference.points:
        first, last = reference.points[0], reference.points[-1]
        parts.append(f"n = {first[0]}: {units.seconds(first[1])}")
        if last != first:
            parts.append(f"n = {last[0]}: {units.seconds(last[1])} ({units.factor(last[1] / first[1])})")
    return f"{names.clean(reference.label)}: {', '.join(parts)}"


def reference_place(reference: Reference, series: Series) -> str | None:
    """The published exponent at the sizes that were measured here, and where it lies as seen from the series'
    own: "n^1.71 at n = 40 to 130, inside the interval"; None where it has none at two of them."""
    sizes = [cell.n for cell in series.cells if cell.values]
    exponent = reference.exponent(sizes)
    if exponent is None:
        return None
    common = [n for n in sizes if reference.at(n) is not None]
    text = f"{power(exponent)} at n = {min(common)} to {max(common)}"
    low, high = series.fit.low, series.fit.high
    if low is None or high is None or len(common) < len(sizes):
        return text
    if low <= exponent <= high:
        return f"{text}, inside the interval"
    return f"{text}, {'steeper' if exponent > high else 'flatter'} than here"


def p_value(p: float) -> str:
    """ "0.012"; "<0.001" below."""
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def notes(series: Series) -> Iterator[str]:
    """What a reader of the series' figures has to know: sizes with two populations, and the fit's note."""
    for one in series.cells:
        if len(one.modes) > 1:
            yield (
                f"n = {one.n}: two populations, {' and '.join(map(units.seconds, one.modes))}; "
                "the median says little"
            )
    if series.cells and series.fit.note:
        yield names.clean(series.fit.note)

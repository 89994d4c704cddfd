"""Claims: what a run settles, what it leaves open, and where it contradicts what was published.

A claim is declared beside its experiment (``Declared``): two times, or a series, and a threshold. It is
settled when the whole interval lies on one side of the threshold. A ratio is paired: both times come from the
same round of the same run, taken one right after the other; of several runs each counts once
(``measure.ratio.over_runs``). Published figures belong to a claim by the parameters that it names; where all
of them lie on the other side of the threshold than what is settled here, that is said.

Three things keep a claim open whatever its interval. Samples that others disturbed (``pairs.disturbed``), as
they keep a comparison undecided. Two modes: a mean of both is neither, so it has no interval, and is settled
only if each mode is, by Student's interval with the spread within both, from ``FEWEST_OF_TWO`` rounds on. And
a fixed cost, of an exponent below its threshold: what is behind the cost may well grow faster.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean, median
from typing import Any

from fairlead.lab.analysis import pairs
from fairlead.lab.analysis.modes import boundary
from fairlead.lab.catalogue.declared import Declared
from fairlead.measure.ratio import RATIO_LEVEL, over_runs, student
from fairlead.record.summary import (
    Cell,
    Claim,
    Mode,
    Published,
    Reference,
    RunRound,
    Series,
    Side,
    Subject,
    Unit,
    Verdict,
)

ANY_OF_GROUP = "experiment"
"""The key of a side that names another experiment than the one that declares the claim."""
FEWEST_OF_TWO = 10
"""With fewer rounds a ratio with two modes is open, and none is known to have one."""
INVERSE = "requests_per_s"
"""A published rate, whose inverse is a time."""
TIMES = ("elapsed", INVERSE)
"""Published metrics that a claim about times is held against."""
_PLAIN = {"policy": "other", "cores": "all", "scheduler": "off"}
"""What a side means unless it says otherwise, of parameters that the experiment has."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A series with what of its samples a claim needs."""

    subject: Subject
    series: Series
    metrics: Mapping[str, Mapping[int, Mapping[RunRound, float]]]
    """Of each metric and n: the value of each round."""
    place: str
    """The machine that it was measured on, and what of it may change."""
    host: str = ""
    """Its name."""


def claims(declared: Mapping[str, Sequence[Declared]], taken: Sequence[Taken]) -> tuple[Claim, ...]:
    """Every declared claim that the samples say something to, on every interpreter.

    Args:
        declared: by experiment, or by the group of experiments that do the same work.
        taken: all series.
    """
    found = []
    several = len({one.place for one in taken}) > 1
    for name, its in declared.items():
        for one in its:
            for alike in _interpreters(taken, name):
                made = _exponent(name, one, alike) if one.kind == "exponent" else _ratio(name, one, alike)
                if made is not None:
                    found.append(replace(made, text=f"{made.text} ({alike[0].host})") if several else made)
    return tuple(found)


def fits(wanted: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether a series with these parameters is what a side names."""
    named = {name: value for name, value in wanted.items() if name not in ("n", ANY_OF_GROUP)}
    usual = {name: value for name, value in _PLAIN.items() if name not in named}
    return all(params.get(name) == value for name, value in named.items()) and all(
        params.get(name, value) == value for name, value in usual.items()
    )


def further(wanted: Mapping[str, Any], params: Mapping[str, Any]) -> int:
    """How many parameters a series has that a side does not name."""
    return len(params.keys() - wanted.keys())


def _interpreters(taken: Sequence[Taken], name: str) -> Iterator[list[Taken]]:
    """The measured series, an interpreter and machine at a time, if the experiment is among them."""
    alike: dict[tuple[str, str], list[Taken]] = {}
    for one in taken:
        if any(cell.values for cell in one.series.cells):
            alike.setdefault((str(one.series.interpreter), one.place), []).append(one)
    for group in alike.values():
        if any(name in (one.subject.id, one.subject.group) for one in group):
            yield group


def _find(name: str, wanted: Mapping[str, Any], taken: Iterable[Taken]) -> Taken | None:
    """The first series that a side names; with fewest further parameters that the side does not name."""
    experiment = wanted.get(ANY_OF_GROUP, name)
    found = [
        one
        for one in taken
        if experiment in (one.subject.id, one.subject.group) and fits(wanted, one.series.variant)
    ]
    return min(found, key=lambda one: further(wanted, one.series.variant), default=None)


def _exponent(name: str, declared: Declared, taken: Sequence[Taken]) -> Claim | None:
    found = _find(name, declared.of, taken)
    if found is None:
        return None
    cells = [cell for cell in found.series.cells if cell.values]
    fit, sizes = found.series.fit, [cell.n for cell in cells]
    split = any(len(cell.modes) > 1 for cell in cells)
    ends = None if fit.low is None or fit.high is None or split else (fit.low, fit.high)
    enough = sum(len(cell.values) >= 5 for cell in cells) >= 3
    why = next(filter(None, map(pairs.disturbed, cells)), None)
    steepest = fit.behind_fixed_cost
    if why is None and ends and steepest and ends[1] < declared.more_than <= steepest:
        why = f"behind a fixed cost it may be n^{steepest:.1f}: larger --sizes tell"
    published = [
        Published(label=r.label, value=exponent)
        for r in found.subject.references
        if r.metric == "elapsed"
        and r.is_about(found.series.interpreter)
        and all(found.series.variant.get(key) == value for key, value in r.variant.items())
        and (exponent := r.exponent(sizes)) is not None
    ]
    return _claim(
        name,
        declared,
        found,
        value=fit.exponent,
        ends=ends if enough else None,
        doubt=why,
        rounds=min((len(cell.values) for cell in cells), default=0),
        runs=len({run for cell in cells for run, _ in cell.rounds}),
        published=published,
        note=why or fit.note,
    )


def _ratio(name: str, declared: Declared, taken: Sequence[Taken]) -> Claim | None:
    one = _find(name, declared.of, taken)
    other = one if declared.over_metric else _find(name, declared.over, taken)
    if one is None or other is None:
        return None
    cells = cells_of(declared, one.series.cells, other.series.cells)
    if cells is None:
        return None
    first, second = cells
    if first is second and not declared.over_metric:
        return None  # of a series with one size the least and the greatest are the same
    a, b = pairs.by_round(first), pairs.by_round(second)
    if declared.over_metric:
        b = dict(one.metrics.get(declared.over_metric, {}).get(first.n, {}))
        title = next(m.title for m in one.subject.metrics if m.name == declared.over_metric)
        whats = (_called(first, one, one), title)
    else:
        whats = (_called(first, one, other), _called(second, other, one))
    if declared.metric:
        sides_of = (one, first, declared.metric), (other, second, declared.over_metric or declared.metric)
        a, b = (dict(of.metrics.get(metric, {}).get(cell.n, {})) for of, cell, metric in sides_of)
    unit: Unit = next((m.unit for m in one.subject.metrics if m.name == declared.metric), "s")
    ratios = pairs.ratios(a, b)
    by_run = pairs.by_run(ratios)
    modes, ends = _modes(by_run)
    found = None if modes else over_runs(list(by_run.values()))
    why = pairs.disturbed(first) or pairs.disturbed(second)
    if not {run for run, _ in a} & {run for run, _ in b}:
        why = "its two sides were never measured in one run"
    elif modes and len(ratios) < FEWEST_OF_TWO:
        why = why or f"two modes need {FEWEST_OF_TWO} rounds or more: give a larger --budget"
    # of the rounds that the ratio is of: one side may have been measured in others as well, for another claim
    sides = tuple(
        Side(what=what, n=cell.n, median=median(times[where] for where in ratios), unit=unit)
        for what, cell, times in zip(whats, (first, second), (a, b), strict=True)
        if ratios
    )
    return _claim(
        name,
        declared,
        one,
        value=found.value if found else geometric_mean(ratios.values()) if ratios and not modes else None,
        ends=(found.low, found.high) if found else ends,
        doubt=why,
        rounds=len(ratios),
        runs=len(by_run),
        published=list(_published(declared, one, other)),
        sides=sides,
        names=whats,
        n=first.n,
        note="; ".join(filter(None, (why, _left_out(ratios, first, second)))) or None,
        modes=modes,
    )


def _modes(runs: Mapping[int, Sequence[float]]) -> tuple[tuple[Mode, ...], tuple[float, float] | None]:
    """The two modes that ratios fall into, or none; and the ends that hold both.

    Runs differ as a whole, which makes no modes: they are looked for around the median of each.
    """
    logs = {run: [math.log(ratio) for ratio in own] for run, own in runs.items()}
    if not logs:
        return (), None
    whole = median(itertools.chain.from_iterable(logs.values()))
    level = {run: whole - median(own) for run, own in logs.items()}
    every = [(value, value + level[run]) for run, own in logs.items() for value in own]
    between = boundary([math.exp(centred) for _, centred in every])
    if between is None:
        return (), None
    edge = math.log(between) - 1e-9
    sides = [[value for value, centred in every if (centred >= edge) == above] for above in (False, True)]
    middles = [sum(side) / len(side) for side in sides]
    freedom = len(every) - len(sides)
    squares = sum(
        (value - middle) ** 2 for side, middle in zip(sides, middles, strict=True) for value in side
    )
    error = student(freedom, RATIO_LEVEL) * math.sqrt(squares / freedom)
    reaches = [error / math.sqrt(len(side)) for side in sides]
    found = tuple(
        Mode(value=math.exp(middle), rounds=len(side)) for side, middle in zip(sides, middles, strict=True)
    )
    return found, (math.exp(middles[0] - reaches[0]), math.exp(middles[1] + reaches[1]))


def _left_out(ratios: Mapping[RunRound, float], *cells: Cell) -> str | None:
    """What of several runs the ratio is not of, in words."""
    runs = {run for cell in cells for run, _ in cell.rounds}
    paired = {run for run, _ in ratios}
    twice = sum(len(cell.rounds) - len(set(cell.rounds)) for cell in cells)
    told = []
    if paired and runs - paired:
        told.append(f"{len(runs - paired)} of {len(runs)} runs have no round with both times")
    if twice:
        told.append(f"of {twice} samples there is another of the same run and round, which counts")
    return "; ".join(told) or None


def cells_of(declared: Declared, of: Sequence[Any], over: Sequence[Any]) -> tuple[Any, Any] | None:
    """The two cells that a ratio is about, of two series' cells with an ``n`` each; None if one is missing.

    Of a metric both are the same.
    """
    first = [cell for cell in of if _has_values(cell)]
    second = [cell for cell in over if _has_values(cell)]
    if not first or not second:
        return None
    n, m = declared.of.get("n"), declared.over.get("n")
    if n is None and m is None:
        both = {cell.n for cell in first} & {cell.n for cell in second}
        if not both:
            return None
        n = m = max(both)
    pair = _at(first, n), _at(second, n if declared.over_metric else m)
    return pair if pair[0] is not None and pair[1] is not None else None


def _has_values(cell: Any) -> bool:
    return bool(getattr(cell, "values", True))


def _at(cells: Sequence[Any], n: Any) -> Any:
    if n in ("least", "greatest", None):
        ordered = sorted(cells, key=lambda cell: int(cell.n))
        return ordered[0] if n == "least" else ordered[-1]
    return next((cell for cell in cells if cell.n == n), None)


def _called(cell: Cell, of: Taken, other: Taken) -> str:
    """What a side is called: what its series differs in from the other, or its size."""
    differing = [
        _parameter(key, value, of.subject.ways)
        for key, value in of.series.variant.items()
        if value != other.series.variant.get(key) and key in other.series.variant
    ]
    words = differing if of is not other else [_size(cell.n, of.subject.size_name)]
    if of.subject.id != other.subject.id and not of.subject.group:
        words = [of.subject.title]
    return ", ".join(words)


def _parameter(key: str, value: Any, ways: str) -> str:
    """ "beside threads", "interval 5 ms"; of ways of doing the same work the way alone."""
    if key == ways:
        return str(value)
    name, _, unit = key.rpartition("_")
    if name and unit == "ms":
        return f"{name} {value} ms".replace("_", " ")
    return f"{key} {value}".replace("_", " ")


def _size(n: int, of_what: str) -> str:
    if n == 1:
        of_what = of_what.removesuffix("es") if of_what.endswith("sses") else of_what.removesuffix("s")
    return f"{n} {of_what}"


def _claim(
    name: str,
    declared: Declared,
    of: Taken,
    *,
    value: float | None,
    ends: tuple[float, float] | None,
    doubt: str | None,
    rounds: int,
    runs: int,
    published: Sequence[Published],
    sides: tuple[Side, ...] = (),
    names: tuple[str, ...] = (),
    n: int = 0,
    note: str | None = None,
    modes: tuple[Mode, ...] = (),
) -> Claim:
    """``doubt``: why it stays open whatever its interval, None if nothing keeps it."""
    settled = None if doubt else ends
    verdict, above = verdict_of(settled, declared.more_than, [one.value for one in published])
    printed = None if modes else ends
    threshold = f"n^{declared.more_than:g}" if declared.kind == "exponent" else f"x{declared.more_than:g}"
    interval = "99 %" if declared.kind == "ratio" else "95 %"
    return Claim(
        topic=declared.topic,
        kind=declared.kind,
        experiment=name,
        interpreter=of.series.interpreter,
        text=declared.said(above, settled, n, *names),
        value=value,
        low=printed[0] if printed else None,
        high=printed[1] if printed else None,
        rounds=rounds,
        threshold=declared.more_than,
        verdict=verdict,
        falsified=f"a {interval} interval that lies {'below' if above else 'above'} {threshold} as a whole",
        main=declared.main,
        sides=sides,
        published=tuple(published),
        note=note,
        modes=modes,
        unseen=1 - (1 - RATIO_LEVEL) ** (1 / rounds) if printed and declared.kind == "ratio" else None,
        runs=runs,
    )


def verdict_of(
    ends: tuple[float, float] | None, threshold: float, published: Sequence[float]
) -> tuple[Verdict, bool]:
    """The verdict, and whether the value lies above the threshold (of an open claim: whether it is declared
    to)."""
    if ends is None or ends[0] <= threshold <= ends[1]:
        return "open", True
    above = ends[0] > threshold
    if published and all((value > threshold) != above for value in published):
        return "contradicts the source", above
    return "settled", above


# ---- what was published


def _published(declared: Declared, of: Taken, over: Taken) -> Iterator[Published]:
    """Ratios of two published figures of one source, at the parameters and sizes that the claim names."""
    if declared.over_metric:
        for a, b in _same_source(of, of):
            if (a.metric, b.metric) == ("elapsed", declared.over_metric) and a.variant == b.variant:
                yield Published(label=a.label, value=a.points[-1][1] / b.points[-1][1])
        return
    for a, b in _same_source(of, over):
        if a.metric != b.metric or a.metric not in ((declared.metric,) if declared.metric else TIMES):
            continue
        if not (_names(a, declared.of) and _names(b, declared.over)):
            continue
        pair = cells_of(declared, [_Point(*p) for p in a.points], [_Point(*p) for p in b.points])
        if pair is not None:
            ratio = pair[0].value / pair[1].value
            yield Published(label=_source(a, b), value=1 / ratio if a.metric == INVERSE else ratio)


@dataclass(frozen=True, slots=True)
class _Point:
    n: int
    value: float


def _same_source(of: Taken, over: Taken) -> Iterator[tuple[Reference, Reference]]:
    for a in of.subject.references:
        for b in over.subject.references:
            if not a.is_about(of.series.interpreter) or not b.is_about(over.series.interpreter):
                continue
            if (a is b and of is over) or (a is not b and (a.label == b.label or a.metric == INVERSE)):
                yield a, b


def _source(a: Reference, b: Reference) -> str:
    return a.label if a.label == b.label else a.label.partition(",")[0]


def _names(reference: Reference, wanted: Mapping[str, Any]) -> bool:
    """Whether a published figure is about what a side names; it need not say all that the side does."""
    return all(
        reference.variant.get(key, value) == value
        for key, value in {**_PLAIN, **wanted}.items()
        if key not in ("n", ANY_OF_GROUP)
    )

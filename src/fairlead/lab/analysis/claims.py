"""Claims: what a run settles, what it leaves open, and where it contradicts what was published.

A claim is declared beside its experiment (``Declared``): two times, or a series, and a threshold. It is
settled when the whole interval lies on one side of the threshold. A ratio is paired by round: both times come
from the same round, taken one right after the other. Published figures belong to a claim by the parameters
that it names; where all of them lie on the other side of the threshold than what is settled here, that is
said.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from fairlead.lab.analysis.statistics import paired
from fairlead.lab.catalogue.declared import Declared
from fairlead.record.summary import Cell, Claim, Published, Reference, Series, Side, Subject, Verdict

ANY_OF_GROUP = "experiment"
"""The key of a side that names another experiment than the one that declares the claim."""
INVERSE = "requests_per_s"
"""A published rate, whose inverse is a time."""
_PLAIN = {"policy": "other", "cores": "all", "scheduler": "off"}
"""What a side means unless it says otherwise, of parameters that the experiment has."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A series with what of its samples a claim needs."""

    subject: Subject
    series: Series
    metrics: Mapping[str, Mapping[int, Mapping[int, float]]]
    """Of each metric and n: the value of each round."""

    def by_round(self, cell: Cell) -> dict[int, float]:
        """The times of a cell by round; of two of one round, as of two runs put together, the last."""
        return dict(zip(cell.rounds, cell.values, strict=True))


def claims(declared: Mapping[str, Sequence[Declared]], taken: Sequence[Taken]) -> tuple[Claim, ...]:
    """Every declared claim that the samples say something to, on every interpreter.

    Args:
        declared: by experiment, or by the group of experiments that do the same work.
        taken: all series.
    """
    found = []
    for name, its in declared.items():
        for one in its:
            for alike in _interpreters(taken, name):
                made = _exponent(name, one, alike) if one.kind == "exponent" else _ratio(name, one, alike)
                if made is not None:
                    found.append(made)
    return tuple(found)


def fits(wanted: Mapping[str, Any], params: Mapping[str, Any]) -> bool:
    """Whether a series with these parameters is what a side names."""
    named = {name: value for name, value in wanted.items() if name not in ("n", ANY_OF_GROUP)}
    usual = {name: value for name, value in _PLAIN.items() if name not in named}
    return all(params.get(name) == value for name, value in named.items()) and all(
        params.get(name, value) == value for name, value in usual.items()
    )


def _interpreters(taken: Sequence[Taken], name: str) -> Iterator[list[Taken]]:
    """The measured series, an interpreter and environment at a time, if the experiment is among them."""
    alike: dict[str, list[Taken]] = {}
    for one in taken:
        if any(cell.values for cell in one.series.cells):
            alike.setdefault(str(one.series.interpreter), []).append(one)
    for group in alike.values():
        if any(name in (one.subject.id, one.subject.group) for one in group):
            yield group


def _find(name: str, wanted: Mapping[str, Any], taken: Iterable[Taken]) -> Taken | None:
    """The first series that a side names; with fewest further parameters that the side does not name."""
    experiment = wanted.get(ANY_OF_GROUP, name)
    for one in taken:
        if experiment in (one.subject.id, one.subject.group) and fits(wanted, one.series.variant):
            return one
    return None


def _exponent(name: str, declared: Declared, taken: Sequence[Taken]) -> Claim | None:
    found = _find(name, declared.of, taken)
    if found is None:
        return None
    fit = found.series.fit
    split = fit.note is not None and "two populations" in fit.note
    ends = None if fit.low is None or fit.high is None or split else (fit.low, fit.high)
    enough = sum(len(cell.values) >= 5 for cell in found.series.cells) >= 3
    published = [
        Published(label=r.label, value=r.exponent)
        for r in found.subject.references
        if r.exponent is not None
        and r.metric == "elapsed"
        and _is_of(r, found.series)
        and all(found.series.variant.get(key) == value for key, value in r.variant.items())
    ]
    return _claim(
        name,
        declared,
        found,
        value=fit.exponent,
        ends=ends if enough else None,
        rounds=min((len(cell.values) for cell in found.series.cells if cell.values), default=0),
        published=published,
        note=fit.note,
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
    a = one.by_round(first)
    if declared.over_metric:
        b = dict(one.metrics.get(declared.over_metric, {}).get(first.n, {}))
        title = next(m.title for m in one.subject.metrics if m.name == declared.over_metric)
        whats = (_called(first, one, one), title)
    else:
        b = other.by_round(second)
        whats = (_called(first, one, other), _called(second, other, one))
    common = sorted(a.keys() & b.keys())
    ratios = [a[number] / b[number] for number in common]
    found = paired(ratios)
    # of the rounds that the ratio is of: one side may have been measured in others as well, for another claim
    sides = tuple(
        Side(what=what, n=cell.n, median=median(times[number] for number in common))
        for what, cell, times in zip(whats, (first, second), (a, b), strict=True)
        if common
    )
    return _claim(
        name,
        declared,
        one,
        value=found.value if found else _middle(ratios),
        ends=(found.low, found.high) if found else None,
        rounds=len(ratios),
        published=list(_published(declared, one, other)),
        sides=sides,
        names=whats,
        n=first.n,
    )


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


def _middle(ratios: Sequence[float]) -> float | None:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


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
    rounds: int,
    published: Sequence[Published],
    sides: tuple[Side, ...] = (),
    names: tuple[str, ...] = (),
    n: int = 0,
    note: str | None = None,
) -> Claim:
    verdict, above = verdict_of(ends, declared.more_than, [one.value for one in published])
    threshold = f"n^{declared.more_than:g}" if declared.kind == "exponent" else f"x{declared.more_than:g}"
    interval = "99 %" if declared.kind == "ratio" else "95 %"
    return Claim(
        topic=declared.topic,
        kind=declared.kind,
        experiment=name,
        interpreter=of.series.interpreter,
        text=declared.said(above, ends, n, *names),
        value=value,
        low=ends[0] if ends else None,
        high=ends[1] if ends else None,
        rounds=rounds,
        threshold=declared.more_than,
        verdict=verdict,
        falsified=f"a {interval} interval that lies {'below' if above else 'above'} {threshold} as a whole",
        main=declared.main,
        sides=sides,
        published=tuple(published),
        note=note,
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


def _is_of(reference: Reference, series: Series) -> bool:
    """Whether a reference can be about this interpreter: its label begins with an implementation, or none."""
    own = str(series.interpreter.get("implementation"))
    free_threaded = bool(series.interpreter.get("free_threaded"))
    for name in ("CPython", "PyPy"):
        if reference.label.startswith(name) and name != own:
            return False
    return free_threaded or "free-threaded" not in reference.label


def _published(declared: Declared, of: Taken, over: Taken) -> Iterator[Published]:
    """Ratios of two published figures of one source, at the parameters and sizes that the claim names."""
    if declared.over_metric:
        for a, b in _same_source(of, of):
            if (a.metric, b.metric) == ("elapsed", declared.over_metric) and a.variant == b.variant:
                yield Published(label=a.label, value=a.points[-1][1] / b.points[-1][1])
        return
    for a, b in _same_source(of, over):
        if a.metric != b.metric or a.metric not in ("elapsed", INVERSE):
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
            if a is not b and _is_of(a, of.series) and _is_of(b, over.series):
                if a.label == b.label or a.metric == INVERSE:
                    yield a, b
            elif a is b and of is over and _is_of(a, of.series):
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

"""What differs between runs, in sentences: shared by the terminal and the page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from fairlead.record.comparison import CellChange, Change, Comparison, SeriesChange, Unmatched, WholeChange
from fairlead.record.summary import Series
from fairlead.report.common import names, units


def tally(comparison: Comparison) -> Iterator[str]:
    """How many cells are faster, slower and so on, and what differs as a whole: for each run that is held
    against another."""
    for run in comparison.runs:
        cells = [cell for series in comparison.series for cell in series.cells if cell.run == run.letter]
        if cells:
            counted = Counter((get_args(Change).index(cell.change), called(cell)) for cell in cells)
            parts = [f"{count} {change}" for (_, change), count in sorted(counted.items())]
            bases = " or ".join(sorted({cell.base for cell in cells}))
            yield f"Of {len(cells)} cells in {run.letter}, held against {bases}: {', '.join(parts)}."
        for one in comparison.wholes:
            if one.run == run.letter:
                yield _whole(one)
    if not any(series.cells for series in comparison.series):
        yield "The runs have no cell in common: nothing can be compared."


def _whole(one: WholeChange) -> str:
    ratio = f"{units.factor(one.ratio)} {units.interval(one.low, one.high)}"
    loop = "" if one.speed is None else f"; a fixed loop took {units.factor(one.speed)}"
    return f"Over {one.series} series, {one.run} takes {ratio} the time of {one.base}{loop}."


def called(cell: CellChange) -> str:
    """ "slower", "within 10 %"."""
    return cell.change if cell.within is None else f"within {(cell.within - 1) * 100:.0f} %"


def differing(comparison: Comparison) -> Iterator[str]:
    """What is not the same of the machines, one line each."""
    for name in comparison.differing:
        runs: dict[str, list[str]] = {}
        for run in comparison.runs:
            runs.setdefault(names.value(run.environment.get(name)), []).append(run.letter)
        values = ", ".join(f"{value} in {' and '.join(letters)}" for value, letters in runs.items())
        yield f"{names.clean(name)} differs: {values}; compare exponents, not times"


def participants(series: SeriesChange) -> str:
    """On what a series was measured: "CPython 3.13.0, release", or run by run where it is not the same."""
    labels = {member.run: labelled(member.series) for member in series.members}
    paths = {member.run: names.value(member.series.interpreter.get("path")) for member in series.members}
    alike = {label: {paths[run] for run in labels if labels[run] == label} for label in labels.values()}
    if len(alike) == 1 and len(set(paths.values())) == 1:
        return next(iter(alike))
    return "; ".join(
        f"{run}: {label}{f' ({paths[run]})' if len(alike[label]) > 1 else ''}"
        for run, label in labels.items()
    )


def labelled(series: Series | Unmatched) -> str:
    """ "CPython 3.13.0, release"."""
    label = names.clean(series.label)
    return f"{names.label(series.interpreter)}{f', {label}' if label else ''}"


def unmatched(one: Unmatched) -> str:
    """ "b: square.mutex, CPython 3.13.0: n = 50, 100"."""
    sizes = f"n = {', '.join(map(str, one.sizes))}" if one.sizes else "not measured"
    return f"{one.run}: {names.clean(one.experiment)}, {labelled(one)}: {sizes}"


def undecided(series: SeriesChange) -> Iterator[str]:
    """Why something cannot be said of a series, with the runs and sizes that it is true of."""
    advised: dict[tuple[str, str], list[str]] = {}
    for cell in series.cells:
        if cell.advice:
            advised.setdefault((cell.run, names.clean(cell.advice)), []).append(str(cell.n))
    alike: dict[tuple[str, str], list[str]] = {}
    for (run, what), sizes in advised.items():
        alike.setdefault((", ".join(sizes), what), []).append(run)
    for (listed, what), runs in alike.items():
        yield f"{', '.join(runs)}, n = {listed}: {what}"

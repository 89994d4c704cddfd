"""``fairlead lab compare``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fairlead.cli.lab import results
from fairlead.cli.table import table
from fairlead.errors import RecordError
from fairlead.record.comparison import Comparison, Unmatched
from fairlead.report.names import clean


@click.command()
@click.argument("base", metavar="RUN", type=click.Path(path_type=Path))
@click.argument("other", metavar="RUN", type=click.Path(path_type=Path))
def compare(base: Path, other: Path) -> None:
    """Say where the second run is faster or slower than the first, and where nothing can be said."""
    from fairlead.lab.compare import compare as compared

    (a, problems_a), (b, problems_b) = results.summary([base]), results.summary([other])
    click.echo("\n".join(_lines(compared(a, b))))
    if problems := problems_a or problems_b:
        raise RecordError(problems)


def _lines(comparison: Comparison) -> Iterator[str]:
    from fairlead.report.units import seconds

    yield "a is the first run, b the second; a ratio is b / a, with its 95 % interval"
    for name in comparison.differing:
        before, now = comparison.environment_a.get(name), comparison.environment_b.get(name)
        yield f"the machines differ in {name}: {clean(before)} and {clean(now)}"
    for series in comparison.series:
        first, second = clean(series.interpreter_a.get("name")), clean(series.interpreter_b.get("name"))
        who = first if first == second else f"{first} and {second}"
        yield f"\n{_what(series.experiment, series.label_a)} on {who}"
        rows = [("n", "a", "b", "ratio", "", "verdict")]
        for cell in series.cells:
            medians = seconds(cell.median_a), seconds(cell.median_b)
            ratio = f"{cell.ratio:.2f}", f"{cell.low:.2f} to {cell.high:.2f}"
            verdict = f"{cell.change}: {cell.advice}" if cell.advice else cell.change
            rows.append((str(cell.n), *medians, *ratio, clean(verdict)))
        yield table(rows)
    if comparison.unmatched:
        yield "\nonly in one of them"
        yield table([_unmatched(one) for one in comparison.unmatched])
    yield from (f"\n{clean(problem)}" for problem in comparison.problems)


def _unmatched(one: Unmatched) -> tuple[str, ...]:
    sizes = ", ".join(map(str, one.sizes))
    what = f"{_what(one.experiment, one.label)} on {clean(one.interpreter.get('name'))}"
    return one.run, what, f"n = {sizes}" if sizes else "not measured"


def _what(experiment: str, label: str) -> str:
    return f"{clean(experiment)} ({clean(label)})" if label else clean(experiment)

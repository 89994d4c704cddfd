"""All ways of doing the same work as bars: time, CPU, memory, and the GIL, two by two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fairlead.record.summary import Cell, Place, Ranking, Subject
from fairlead.report.common import names, units


@dataclass(frozen=True, slots=True)
class Bar:
    """One way's figure."""

    case: str
    value: str
    """As it is read; why there is none, if there is none."""
    width: float | None
    """Per cent of the longest; None: not measured."""
    low: float | None
    """Where the interval begins, in per cent of the longest."""
    high: float | None
    standing: str
    """"best", "slower" ...: the bar's class."""


@dataclass(frozen=True, slots=True)
class Picture:
    """One figure of all ways."""

    title: str
    bars: tuple[Bar, ...]


Figure = Callable[[Cell], float | None]


def pictures(ranking: Ranking, subjects: dict[str, Subject]) -> list[Picture]:
    """Time, CPU, memory and the share of time in which the GIL was held, or else processor time."""
    known = {
        metric.name
        for place in ranking.places
        if place.series.experiment in subjects
        for metric in subjects[place.series.experiment].metrics
    }
    return [
        _picture("Time", ranking.places, lambda cell: cell.median, units.seconds, interval=True),
        _picture("CPU, all cores", ranking.places, _metric("cpu_share"), units.percent, whole=1.0)
        if "cpu_share" in known
        else _picture("CPU, one core is 100 %", ranking.places, _cpu, units.percent),
        _picture("Memory, all processes", ranking.places, _memory, units.memory),
        _picture("GIL held", ranking.places, _metric("gil_share"), units.percent, name="gil_share", whole=1.0)
        if "gil_share" in known
        else _picture("Processor time", ranking.places, lambda cell: cell.cpu_s, units.seconds),
    ]


def _metric(name: str) -> Figure:
    return lambda cell: cell.metrics.get(name)


def _cpu(cell: Cell) -> float | None:
    return None if cell.cpu_percent is None else cell.cpu_percent / 100


def _memory(cell: Cell) -> float | None:
    return cell.metrics.get("peak_kb", cell.sum_rss_kb)


def _picture(
    title: str,
    places: Sequence[Place],
    figure: Figure,
    shown: Callable[[float | None], str],
    *,
    interval: bool = False,
    name: str = "",
    whole: float = 0.0,
) -> Picture:
    """``whole``: what a bar of full length stands for, unless one is longer; 0: the longest."""
    figures = [figure(place.cell) for place in places]
    ends = [place.cell.high for place in places] if interval else []
    longest = max([whole, *(value for value in (*figures, *ends) if value is not None)]) or 1.0

    def share(value: float | None) -> float | None:
        return None if value is None else round(100 * value / longest, 2)

    return Picture(
        title=title,
        bars=tuple(
            Bar(
                case=names.clean(place.case),
                value=_reason(place, name) if value is None else shown(value),
                width=share(value),
                low=share(place.cell.low) if interval else None,
                high=share(place.cell.high) if interval else None,
                standing=place.standing.replace(" ", "-"),
            )
            for place, value in zip(places, figures, strict=True)
        ),
    )


def _reason(place: Place, name: str) -> str:
    return "not measurable here" if name in place.series.not_measured else units.NOTHING

"""One HTML file that holds everything: tables, plots and the library that draws them. It loads nothing.

Safe with any name: the template escapes all text, data for the script is JSON without a "<" in it, and the
page's own content policy lets exactly the two scripts run whose hashes it names, and no request leave the
page. The larger of the two, the library that draws, stands in it compressed, which makes the page a third of
what it were; the page's own script unpacks it.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from fairlead.record.summary import Cell, Metric, Ranking, Series, Subject, Summary
from fairlead.report import answers, bars, battle, families, figures, names, schedule, units, words
from fairlead.report.assets import asset, inert_json, packed, page
from fairlead.report.extra import needed_for
from fairlead.report.headline import headline

_PICTURE_SIZE = 6
"""The n of the picture of who runs: as many columns as a telephone can show."""

_MARKS = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6.5L6.5 0L0 6.5L-6.5 0z",
    "M0-6L6 5H-6z",
    "M0 6L6-5H-6z",
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z",
    "M-6-3.2L-3.2-6L0-2.8L3.2-6L6-3.2L2.8 0L6 3.2L3.2 6L0 2.8L-3.2 6L-6 3.2L-2.8 0z",
    "M0-7L1.7-2.2L6.7-2.2L2.7 .9L4.1 5.7L0 2.8L-4.1 5.7L-2.7 .9L-6.7-2.2L-1.7-2.2z",
)
"""The interpreters' marks in the page's tables: the shapes, in the order in which ``page.js`` names them."""


def render(summary: Summary) -> str:
    """The report as one HTML page that works offline, in light and dark, from 360 pixels of width upwards.

    Raises:
        MissingExtra: jinja2 or plotly is not installed.
    """
    with needed_for("the HTML report"):
        from plotly.offline import get_plotlyjs

    roster = names.Roster(summary.series)
    number = itertools.count(1)
    shown = [_family(family, roster, number) for family in families.families(summary)]
    sections = [section for family in shown for section in family["sections"]]
    panels = [panel["data"] for section in sections for panel in section["panels"] if panel["data"]]
    page_script = asset("page.js")
    library = get_plotlyjs() if panels else ""
    return page(
        "page.html",
        "fairlead lab report",
        scripts=[library, page_script] if panels else [],
        trusted={
            "data": inert_json(panels),
            "library": packed(library),
            "script": page_script if panels else "",
        },
        filters={"power": _power, "anchor": anchor},
        mark=lambda index: _MARKS[index % len(_MARKS)],
        summary=summary,
        headline=headline(summary),
        answers=answers.answers(summary),
        places={topic: family["id"] for family in shown for topic in family["topics"]},
        families=shown,
        growing=[section for section in sections if section["subject"].growth],
        interpreters=list(roster),
        verdicts=words.VERDICTS,
    )


def _family(family: families.Family, roster: names.Roster, number: Iterator[int]) -> dict[str, Any]:
    """A family with its topics: works that are ranked, and experiments of their own."""
    blocks = []
    for topic in family.topics:
        if topic.as_a_whole:
            blocks.append(_work(topic, roster))
            continue
        sections = [_section(next(number), one, series, roster) for one, series in topic.sections()]
        blocks.append({"id": anchor(topic.id), "sections": sections})
    return {
        "id": f"family-{anchor(family.id)}",
        "family": family,
        "blocks": blocks,
        "topics": {topic.id: None for topic in family.topics}
        | {subject.id: None for topic in family.topics for subject in topic.subjects},
        "sections": [section for block in blocks for section in block["sections"]],
        "losses": families.losses(family, roster),
    }


def anchor(text: str) -> str:
    """A name for an element that text stands for: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def _power(text: str) -> Any:
    """Text with the exponents of "n^2.05" in it raised."""
    from markupsafe import Markup, escape

    return Markup(re.sub(r"\bn\^(-?\d+(?:\.\d+)?)", r"n<sup>\1</sup>", str(escape(text))))


def _section(number: int, subject: Subject, series: list[Series], roster: names.Roster) -> dict[str, Any]:
    """One experiment: a panel for each variant, in the order of first appearance."""
    from markupsafe import Markup

    variants: dict[str, list[Series]] = {}
    for s in series:
        variants.setdefault(json.dumps([s.label, s.variant], sort_keys=True, default=str), []).append(s)
    drawn = schedule.passes(subject.schedule, _PICTURE_SIZE)
    return {
        "id": f"experiment-{number}",
        "anchor": anchor(subject.id),
        "subject": subject,
        "further": [names.clean(metric.title) for metric in words.further(subject)],
        "one": schedule.singular(names.clean(subject.size_name)),
        "panels": [
            _panel(f"plot-{number}-{i}", subject, group, roster)
            for i, group in enumerate(variants.values(), start=1)
        ],
        "picture": Markup(schedule.svg(subject.schedule, _PICTURE_SIZE, names.clean(subject.size_name))),
        "picture_size": _PICTURE_SIZE,
        "picture_sum": schedule.sum_in_words(drawn, _PICTURE_SIZE) if drawn else "",
    }


def _panel(identity: str, subject: Subject, group: list[Series], roster: names.Roster) -> dict[str, Any]:
    rows = [_row(s, roster.of(s), subject) for s in group]
    return {
        "id": identity,
        "variant": names.variant(group[0]),
        "parameters": names.parameters(group[0].variant),
        "data": figures.panel(identity, subject, group, roster) if subject.growth else None,
        "measured": any(words.measured(one) for one in group),
        "rows": rows,
        "warnings": _warnings(group, roster),
        "of": {row["who"].index: row for row in rows},
        "references": _references(subject, group, roster),
    }


def _references(
    subject: Subject, group: list[Series], roster: names.Roster
) -> list[tuple[str, list[tuple[names.Named, str]]]]:
    """Each published curve in words, and where it lies as seen from each series that it is held against."""
    places: dict[str, list[tuple[names.Named, str]]] = {}
    for series in group:
        for reference in words.references(subject, series):
            seen = places.setdefault(words.reference(reference), [])
            if place := words.reference_place(reference, series.fit):
                seen.append((roster.of(series), place))
    return list(places.items())


def _warnings(group: list[Series], roster: names.Roster) -> list[tuple[tuple[str, ...], list[names.Named]]]:
    """Warnings with the interpreters that they are true of: what is said of several stands there once."""
    alike: dict[tuple[str, ...], list[names.Named]] = {}
    for series in group:
        if lines := tuple(words.warnings(series)):
            alike.setdefault(lines, []).append(roster.of(series))
    return list(alike.items())


def _row(series: Series, who: names.Named, subject: Subject) -> dict[str, Any]:
    fit, measured = series.fit, [c for c in series.cells if c.median is not None]
    return {
        "who": who,
        "fit": fit,
        "power": words.power(fit.exponent),
        "bounds": words.bounds(fit.low, fit.high),
        "model": "constant" if fit.model == "1" else fit.model,
        "cells": [_cell(c, words.further(subject)) for c in series.cells],
        "largest": measured[-1] if measured else None,
        "skipped": series.skipped,
        "failures": series.failures,
        "battle": _battle(series),
    }


def _battle(series: Series) -> dict[str, Any] | None:
    from markupsafe import Markup

    if series.trace is None:
        return None
    return {
        "sentences": list(battle.summary(series.trace)),
        "picture": Markup(battle.svg(series.trace)),
        "events": battle.events(series.trace),
    }


def _cell(cell: Cell, further: Sequence[Metric]) -> dict[str, Any]:
    return {
        "cell": cell,
        "time": " or ".join(map(units.seconds, cell.modes))
        if len(cell.modes) > 1
        else units.seconds(cell.median),
        "interval": units.interval(cell.low, cell.high, cell.median),
        "switches": words.switches(cell),
        "further": [units.metric(cell.metrics.get(m.name), m.unit) for m in further],
    }


def _work(topic: families.Topic, roster: names.Roster) -> dict[str, Any]:
    """A work with the ways of doing it: a picture and a table for each interpreter and number of tasks."""
    subjects = {subject.id: subject for subject in topic.subjects}
    warned: dict[tuple[str, str], dict[str, None]] = {}
    for ranking in topic.rankings:
        for place in ranking.places:
            for line in words.warnings(place.series):
                warned.setdefault((roster.of(place.series).label, line), {})[names.clean(place.case)] = None
    return {
        "id": anchor(topic.id),
        "sections": [],
        "topic": topic,
        "rankings": [_ranking(ranking, subjects, roster) for ranking in topic.rankings],
        "warnings": [(who, line, list(cases)) for (who, line), cases in warned.items()],
        "unmeasured": sorted(
            {
                f"{names.clean(metric.title)}: {names.clean(reason)}"
                for one in topic.series
                for metric in topic.subject.metrics
                if (reason := one.not_measured.get(metric.name))
            }
        ),
    }


def _ranking(ranking: Ranking, subjects: dict[str, Subject], roster: names.Roster) -> dict[str, Any]:
    subject = subjects[ranking.places[0].series.experiment]
    further = words.further(subject)
    return {
        "title": words.ranking(ranking, roster),
        "pictures": bars.pictures(ranking, subjects),
        "further": [names.clean(metric.title) for metric in further],
        "has": {metric.name for metric in further},
        "referenced": any(one.references for one in subjects.values()),
        "places": [
            {
                "place": place,
                "standing": words.standing(place),
                "shown": _cell(place.cell, further),
                "references": [
                    f"{units.seconds(seconds)} for {n}"
                    for reference in words.references(subjects[place.series.experiment], place.series)
                    for n, seconds in reference.points
                ],
            }
            for place in ranking.places
        ],
    }

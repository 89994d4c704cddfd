"""One HTML file that holds everything: claims, tables and pictures. It loads nothing and runs nothing.

Safe with any name: the template escapes all text, and the page's own content policy lets no script run and no
request leave the page. Pictures are SVG.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Sequence
from typing import Any

from fairlead.record.summary import Cell, Claim, Metric, Ranking, Series, Subject, Summary
from fairlead.report.common import names, plot, units, words
from fairlead.report.common.assets import page
from fairlead.report.summary import claims, documents, published, sections
from fairlead.report.summary.pictures import bar_charts, claim_picture, curves, gil_timeline, schedule

_PICTURE_SIZE = 6
"""The n of the picture of which thread runs: as many columns as a telephone can show."""


def render(summary: Summary) -> str:
    """The report as one HTML page that works offline, in light and dark, from 360 pixels of width upwards.

    Raises:
        MissingExtraError: jinja2 is not installed.
    """
    roster = names.Roster(summary.series)
    found = claims.ordered(summary)
    return page(
        "page.html",
        "fairlead lab report",
        filters={"typeset": _typeset, "anchor": anchor},
        mark=lambda index: plot.MARKS[index % len(plot.MARKS)],
        summary=summary,
        headline=claims.headline(summary),
        machine=claims.machine(summary),
        conditions=units.bound(claims.conditions(summary)),
        busy=claims.mood(summary.conditions) == "busy: ",
        tally=claims.tally(found) if found else "",
        answers=[_claim(claim, summary, roster) for claim in _drawn(found)],
        claims=[_claim(claim, summary, roster) for claim in found],
        families=[_family(family, roster) for family in sections.families(summary)],
        documents=[
            {"credit": documents.credit(one), "tables": documents.tables(summary, one)}
            for one in summary.documents
        ],
        interpreters=list(roster),
        verdicts=words.VERDICTS,
        left=published.LEFT,
    )


FIRST = 5
"""So many claims stand at the head with a picture each."""


def _drawn(found: Sequence[Claim]) -> list[Claim]:
    """That of the headline, and the first of each family in turn: settled before open, main before others."""
    head = claims.first(found)
    order = sorted(
        found,
        key=lambda claim: (claim is not head, claim.verdict == "open", not claim.main, claim.value is None),
    )
    families_of: dict[str, list[Claim]] = {}
    for claim in order:
        families_of.setdefault(claim.experiment.partition(".")[0], []).append(claim)
    turns = itertools.zip_longest(*families_of.values())
    return [claim for turn in turns for claim in turn if claim is not None][:FIRST]


def _claim(claim: Claim, summary: Summary, roster: names.Roster) -> dict[str, Any]:
    from markupsafe import Markup

    interpreter = next(one for one in roster if one.record == claim.interpreter)
    return {
        "claim": claim,
        "text": claims.said(claim),
        "interpreter": interpreter,
        "verdict": claims.verdict(claim),
        "ours": claims.ours(claim),
        "sides": [units.bound(claims.named(side)) for side in claim.sides],
        "published": claims.sources(claim),
        "rounds": "; ".join(filter(None, (_rounds(claim), claims.basis(claim)))),
        "open": claims.why_open(claim) if claim.verdict == "open" else "",
        "anchor": anchor(claim.experiment),
        "picture": Markup(claim_picture.svg(claim, summary, roster)),
    }


def _rounds(claim: Claim) -> str:
    if claim.kind == "exponent":
        return f"{claim.rounds} samples a size or more"
    return f"{claim.rounds} round{'s' * (claim.rounds != 1)}"


def _family(family: sections.ExperimentFamily, roster: names.Roster) -> dict[str, Any]:
    """A family with its topics: works that are ranked, and experiments of their own."""
    blocks = []
    for topic in family.topics:
        if topic.as_a_whole:
            blocks.append(_work(topic, roster))
            continue
        shown = [_section(one, series, roster) for one, series in topic.sections()]
        blocks.append({"id": anchor(topic.id), "sections": shown})
    return {
        "id": f"family-{anchor(family.id)}",
        "family": family,
        "blocks": blocks,
        "sections": [section for block in blocks for section in block["sections"]],
        "losses": sections.losses(family, roster),
    }


def anchor(text: str) -> str:
    """A name for an element that text stands for: letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "unnamed"


def _typeset(text: str) -> Any:
    """Text with the exponents of "n^2.05" in it raised; no line of it ends in an option or a date."""
    from markupsafe import Markup, escape

    raised = re.sub(r"\bn\^(-?\d+(?:\.\d+)?)", r"n<sup>\1</sup>", str(escape(text)))
    return Markup(re.sub(r"--[a-z-]+\b|\b\d{4}-\d\d-\d\d\b", r'<span class="whole">\g<0></span>', raised))


def _section(subject: Subject, series: list[Series], roster: names.Roster) -> dict[str, Any]:
    """One experiment: a panel for each variant, in the order of first appearance."""
    from markupsafe import Markup

    variants: dict[str, list[Series]] = {}
    for s in series:
        variants.setdefault(json.dumps([s.label, s.variant], sort_keys=True, default=str), []).append(s)
    drawn = schedule.passes(subject.schedule, _PICTURE_SIZE)
    further = words.further(subject, [cell for one in series for cell in one.cells])
    return {
        "anchor": anchor(subject.id),
        "subject": subject,
        "further": [names.clean(metric.title) for metric in further],
        "panels": [_panel(subject, group, roster, further) for group in variants.values()],
        "picture": Markup(schedule.svg(subject.schedule, _PICTURE_SIZE, names.clean(subject.size_name))),
        "picture_size": _PICTURE_SIZE,
        "picture_sum": schedule.sum_in_words(drawn, _PICTURE_SIZE) if drawn else "",
    }


def _panel(
    subject: Subject, group: list[Series], roster: names.Roster, further: Sequence[Metric]
) -> dict[str, Any]:
    rows = [_row(s, roster.of(s), further) for s in group]
    return {
        "variant": names.variant(group[0]),
        "parameters": names.parameters(group[0].variant),
        "picture": _picture(subject, group, roster),
        "published": published.table([row for one in group for row in published.rows(subject, one)]),
        "measured": any(words.measured(one) for one in group),
        "rows": rows,
        "notes": _notes(group, roster),
        "references": _references(subject, group, roster),
    }


def _picture(subject: Subject, group: list[Series], roster: names.Roster) -> Any:
    from markupsafe import Markup

    data = curves.panel(subject, group, roster) if subject.growth else None
    if data is None:
        return None
    label = (
        f"Time over the number of {names.clean(subject.size_name)}: {names.clean(subject.title)}, "
        f"{names.variant(group[0])}. All of its figures are in the tables below it."
    )
    return Markup(plot.svg(data, label))


def _references(
    subject: Subject, group: list[Series], roster: names.Roster
) -> list[tuple[str, list[tuple[names.Named, str]]]]:
    """Each published curve in words, and where it lies as seen from each series that it is held against."""
    places: dict[str, list[tuple[names.Named, str]]] = {}
    for series in group:
        for reference in words.references(subject, series):
            seen = places.setdefault(words.reference(reference), [])
            if place := words.reference_place(reference, series):
                seen.append((roster.of(series), place))
    return list(places.items())


def _notes(group: list[Series], roster: names.Roster) -> list[tuple[tuple[str, ...], list[names.Named]]]:
    """Notes with the interpreters that they are true of: what is said of several stands there once."""
    alike: dict[tuple[str, ...], list[names.Named]] = {}
    for series in group:
        if lines := tuple(words.notes(series)):
            alike.setdefault(lines, []).append(roster.of(series))
    return list(alike.items())


def _row(series: Series, interpreter: names.Named, further: Sequence[Metric]) -> dict[str, Any]:
    fit, measured = series.fit, [c for c in series.cells if c.median is not None]
    return {
        "interpreter": interpreter,
        "fit": fit,
        "power": words.power(fit.exponent),
        "bounds": words.bounds(fit.low, fit.high),
        "model": words.model(fit),
        "cells": [_cell(c, further) for c in series.cells],
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
        "sentences": list(gil_timeline.summary(series.trace)),
        "picture": Markup(gil_timeline.svg(series.trace)),
        "events": gil_timeline.events(series.trace),
    }


def _cell(cell: Cell, further: Sequence[Metric]) -> dict[str, Any]:
    return {
        "cell": cell,
        "time": words.cell(cell),
        "switches": words.switches(cell),
        "further": [units.metric(cell.metrics.get(m.name), m.unit) for m in further],
    }


def _work(topic: sections.Topic, roster: names.Roster) -> dict[str, Any]:
    """A work with the ways of doing it: a picture and a table for each interpreter and number of tasks."""
    subjects = {subject.id: subject for subject in topic.subjects}
    warned: dict[tuple[str, str], dict[str, None]] = {}
    for ranking in topic.rankings:
        for place in ranking.places:
            for line in words.notes(place.series):
                warned.setdefault((roster.of(place.series).label, line), {})[names.clean(place.case)] = None
    return {
        "id": anchor(topic.id),
        "sections": [],
        "topic": topic,
        "rankings": [_ranking(ranking, subjects, roster) for ranking in topic.rankings],
        "warnings": [(label, line, list(cases)) for (label, line), cases in warned.items()],
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
    further = words.further(subject, [place.cell for place in ranking.places])
    return {
        "title": words.ranking(ranking, subject, roster),
        "pictures": bar_charts.pictures(ranking, subjects),
        "took": words.took(subject),
        "further": [names.clean(metric.title) for metric in further],
        "has": {metric.name for metric in further},
        "published": published.table(
            [
                row
                for place in ranking.places
                for row in published.rows(subjects[place.series.experiment], place.series, place.case)
            ]
        ),
        "places": [
            {
                "place": place,
                "standing": words.standing(place),
                "shown": _cell(place.cell, further),
            }
            for place in ranking.places
        ],
    }

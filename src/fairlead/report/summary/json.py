"""Summaries as JSON for other programs: a stable format.

A summary is one object:

``version``
    3. It grows when a field changes its meaning or goes; a new field alone does not change it.
``environment``, ``environments``
    What most samples share of machine and settings, and how many different environments there are.
``runs``
    How many runs the samples come from.
``started``, ``finished``, ``samples``
    First and last time stamp (UTC, ISO 8601), and the number of samples that were begun.
``interpreters``
    Every interpreter's own description under the name that results use.
``results``
    One object for each experiment, interpreter and parameter set: ``experiment``, ``interpreter`` (a name in
    ``interpreters``), ``label`` (of the variant), ``params`` (``n`` included), ``n``, ``samples`` (how many
    succeeded), ``values`` (seconds, in the order taken), ``median``, ``low`` and ``high`` (its 95 %
    interval), ``iqr`` (seconds all), ``outliers``, ``modes`` (seconds; two when bimodal), ``factor`` (over
    the series' smallest n), ``cpu_s``, ``cpu_percent``, ``max_rss_kb``, ``sum_rss_kb``, ``ctx_voluntary``,
    ``ctx_involuntary``, ``foreign_share`` (0..1), ``disturbed`` (the same with what a host or a quota
    took), ``rounds`` (number of the run and of the round in it that each value was taken in), ``metrics``
    (medians of the experiment's further figures, by name), and ``fit`` of its whole
    series: ``exponent``, ``low``, ``high``, ``model`` ("1", "n", "n log n", "n^2" or "undecided"),
    ``note``, ``coefficients`` (time = first + second * model, seconds), ``behind_fixed_cost`` (the greatest
    exponent that is left open for the rest if a part of the time is a fixed cost).
``claims``
    What the run settles: ``topic``, ``kind`` ("ratio" or "exponent"), ``experiment``, ``interpreter``,
    ``text`` (a sentence), ``value`` with its interval ``low`` to ``high`` (99 % of ratios, 95 % of
    exponents), ``modes`` (``value``, ``rounds``: of a ratio that falls into two; then there is no value and
    no interval), ``rounds`` and ``runs`` (how many it rests on), ``unseen`` (a mode that fewer than this
    share of rounds take may not have been seen), ``threshold``, ``verdict`` ("settled", "open" or
    "contradicts the source"), ``falsified`` (what would show that it is wrong), ``sides`` (the two times of
    a ratio, or the two figures of a metric: ``what``, ``n``, ``median`` of the same rounds, ``unit``),
    ``published`` (``label``, ``value``), ``note`` and ``main``.
``conditions``
    What disturbed the run: ``other_load``, ``highest_load``, ``stolen`` (shares of the cores),
    ``throttled_s``, ``spin_s`` (a fixed piece of code's CPU time), ``speed_varied`` (of that), ``rejected``
    (samples taken again), ``warm_up`` (interpreters whose samples include a compiler's warm-up) and
    ``wrong_clock`` (a time that a sample had and cannot have been taken at).
``experiments``
    What each experiment asks: ``id``, ``family``, ``title``, ``question``, ``explanation``, ``size_name``,
    ``metrics`` (``name``, ``title``, ``unit``) and ``references`` (``label``, ``metric``, ``unit``,
    ``points``: pairs of n, 0 where the source does not state it, and the value; ``variant``, ``versions``).
``rankings``
    One object for each work, number of tasks and interpreter that more than one way of doing it was measured
    on: ``group``, ``n``, ``interpreter``, and ``places``: ``experiment``, ``label``, ``case``, ``median``
    (seconds), ``standing`` ("best", "as fast", "slower", "wrong" or "undecided") and ``times`` (over the
    fastest).
``skipped``
    Series of which nothing was run: ``experiment``, ``interpreter``, ``label``, ``params`` (without ``n``),
    ``reason``.
``failures``
    Kinds of failed samples: the same, with ``reason`` saying how many and why.
``problems``
    Lines of the results that could not be read.

What was not measured is ``null``, and so is a number that is not finite: there is no NaN. All text is as
recorded, and the output is ASCII.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

from fairlead.record.summary import Claim, Ranking, Series, Subject, Summary
from fairlead.report.common import names, plain
from fairlead.report.summary import claims, sections

VERSION = 3


def render(summary: Summary) -> str:
    """The summary in the format above, indented, with a line end at the end."""
    roster = names.Roster(summary.series)
    called = _short_names(roster)
    heads = [(_head(s, called[roster.of(s).label]), s) for s in summary.series]
    return plain.finite_json(
        {
            "version": VERSION,
            "environment": summary.environment,
            "environments": summary.environments,
            "runs": summary.runs,
            "started": summary.started,
            "finished": summary.finished,
            "samples": summary.samples,
            "interpreters": {called[named.label]: named.record for named in roster},
            "results": [result for head, s in heads for result in _results(head, s)],
            "claims": [_claim(claim, called, roster) for claim in claims.ordered(summary)],
            "conditions": asdict(summary.conditions),
            "experiments": [
                _experiment(family.id, subject)
                for family in sections.families(summary)
                for topic in family.topics
                for subject in topic.subjects
            ],
            "rankings": [
                _ranking(one, called[roster.of(one.places[0].series).label]) for one in summary.rankings
            ],
            "skipped": [{**head, "params": s.variant, "reason": s.skipped} for head, s in heads if s.skipped],
            "failures": [{**head, "params": s.variant, "reason": f} for head, s in heads for f in s.failures],
            "problems": summary.problems,
        }
    )


def _short_names(roster: names.Roster) -> dict[str, str]:
    """For each label the interpreter's own short name, or the label where two have one name."""
    taken = Counter(str(named.record.get("name")) for named in roster)
    return {
        named.label: name if (name := str(named.record.get("name"))) and taken[name] == 1 else named.label
        for named in roster
    }


def _head(series: Series, interpreter: str) -> dict[str, Any]:
    return {"experiment": series.experiment, "interpreter": interpreter, "label": series.label}


def _claim(claim: Claim, called: dict[str, str], roster: names.Roster) -> dict[str, Any]:
    label = next(one.label for one in roster if one.record == claim.interpreter)
    return {**asdict(claim), "interpreter": called[label]}


def _experiment(family: str, subject: Subject) -> dict[str, Any]:
    return {
        "id": subject.id,
        "family": family,
        "title": subject.title,
        "question": subject.question,
        "explanation": subject.explanation,
        "size_name": subject.size_name,
        "metrics": [asdict(metric) for metric in subject.metrics],
        "references": [asdict(reference) for reference in subject.references],
    }


def _ranking(ranking: Ranking, interpreter: str) -> dict[str, Any]:
    return {
        "group": ranking.group,
        "n": ranking.n,
        "interpreter": interpreter,
        "places": [
            {
                "experiment": place.series.experiment,
                "label": place.series.label,
                "case": place.case,
                "median": place.cell.median,
                "standing": place.standing,
                "times": place.times,
            }
            for place in ranking.places
        ],
    }


def _results(head: dict[str, Any], series: Series) -> list[dict[str, Any]]:
    fit = asdict(series.fit)
    return [
        {**head, "params": {**cell.params, "n": cell.n}, "n": cell.n, "samples": len(cell.values)}
        | {key: value for key, value in asdict(cell).items() if key not in {"params", "n"}}
        | {"fit": fit}
        for cell in series.cells
    ]

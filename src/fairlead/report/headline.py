"""The whole report in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fairlead.record.summary import Fit, Place, Series, Subject, Summary, Verdict
from fairlead.report import names, units, words

_NAMED_AT_MOST = 2
"""How many interpreters the headline names; of more it says the number."""

_COSTS: dict[Verdict, str] = {"stable": "costs", "noisy": "seems to cost"}
"""The verdicts that a headline can rest on, the better one first, and how sure it sounds."""


@dataclass(frozen=True, slots=True)
class Headline:
    """``start``, ``power`` and ``meaning`` in this order are the sentence; it may be ``meaning`` alone."""

    start: str
    """"On this machine, on CPython 3.13.0, passing a lock costs"."""
    power: str
    """"n^2.0", or "n^1.9 to n^2.1" over several interpreters."""
    meaning: str

    def __str__(self) -> str:
        return f"{self.start} {self.power}: {self.meaning}" if self.power else self.meaning


def headline(summary: Summary) -> Headline:
    """The first experiment with a stable exponent, over all interpreters that agree on its model.

    Where none is stable, the first whose model is decided in spite of noise, said with less certainty; then
    the best way to do a work. Where there is none of these either the sentence names no figure, and says what
    to do. What the GIL does is told by ratios, and by exponents only if nothing else is there.
    """
    subjects = words.subjects(summary)
    costs = [(subject, series) for subject, series in subjects if not subject.id.startswith("gil.")]
    if told_cost := _cost(summary, costs):
        return told_cost
    rankings = sorted(summary.rankings, key=lambda ranking: words.work_order(ranking.group))
    if best := next((p for r in rankings for p in r.places if p.standing == "best"), None):
        told = _best(summary, best)
    elif told_cost := _cost(summary, subjects):
        return told_cost
    elif any(map(words.measured, summary.series)):
        told = "Measured, but no exponent is sure yet: see the verdicts and what to do about them."
    elif summary.series:
        told = "Nothing could be measured: everything was skipped or failed. See the reasons."
    else:
        told = "There is nothing to show: the run holds no sample. Start one with: fairlead lab run"
    return Headline("", "", told)


def _cost(summary: Summary, subjects: Sequence[tuple[Subject, list[Series]]]) -> Headline | None:
    """What grows, of these, the surest first."""
    for verdict in _COSTS:
        for subject, series in subjects:
            firm = [s for s in series if s.fit.verdict == verdict and _decided(s.fit)]
            if firm:
                return _told(summary, subject, firm)
    return None


def _told(summary: Summary, subject: Subject, firm: list[Series]) -> Headline:
    lead, roster = firm[0], names.Roster(summary.series)
    agreeing = [s for s in firm if (s.fit.model, s.label) == (lead.fit.model, lead.label)]
    exponents = sorted(s.fit.exponent for s in agreeing if s.fit.exponent is not None)
    ends = dict.fromkeys(f"n^{round(e, 1) + 0.0:.1f}" for e in (exponents[0], exponents[-1]))
    place = "On this machine" if summary.environments <= 1 else "On these machines"
    what = f"{_named(subject)}{f' ({names.variant(lead)})' if lead.label else ''}"
    where = f"{place}, on {_joined([roster.of(s).label for s in agreeing])}"
    return Headline(
        start=f"{where}, {what} {_COSTS[lead.fit.verdict]}",
        power=" to ".join(ends),
        meaning=_meaning(lead.fit, exponents[len(exponents) // 2], names.clean(subject.size_name)),
    )


def _best(summary: Summary, place: Place) -> str:
    roster = names.Roster(summary.series)
    subjects = {subject.id: subject for subject, _ in words.subjects(summary)}
    subject = subjects[place.series.experiment]
    return (
        f"On this machine, on {roster.of(place.series).label}, what is best for "
        f"{words.work(subject.group, subjects)}: {words.way(place, subjects)} ({place.cell.n} tasks take "
        f"{units.seconds(place.cell.median)}, and {units.seconds(place.cell.cpu_s)} of processor time)."
    )


def _named(subject: Subject) -> str:
    """Its title within a sentence."""
    title = names.clean(subject.title)
    return f"{title[:1].lower()}{title[1:]}"


def _joined(labels: list[str]) -> str:
    if len(labels) > _NAMED_AT_MOST:
        return f"{labels[0]} and {len(labels) - 1} other interpreters"
    return " and ".join(labels)


def _meaning(fit: Fit, exponent: float, size_name: str) -> str:
    if fit.model == "1":
        return f"the time does not grow with the number of {size_name}."
    times = float(f"{10.0**exponent:.2g}")
    return f"ten times the {size_name} take about {times:,.6g} times as long."


def _decided(fit: Fit) -> bool:
    return fit.model != "undecided" and fit.exponent is not None

"""A report's sections: families of experiments, and in each of them experiments, or works and their ways."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fairlead.record.summary import Ranking, Series, Subject, Summary
from fairlead.report.common import names, words


@dataclass(frozen=True, slots=True)
class Topic:
    """An experiment; or, with a ``group``, all experiments that do the same work in different ways."""

    subjects: tuple[Subject, ...]
    series: tuple[Series, ...]
    rankings: tuple[Ranking, ...] = ()

    @property
    def subject(self) -> Subject:
        """What all of them have in common can be read off the first."""
        return self.subjects[0]

    @property
    def group(self) -> str:
        return self.subject.group

    @property
    def id(self) -> str:
        return self.group or self.subject.id

    def sections(self) -> list[tuple[Subject, list[Series]]]:
        """Each experiment with its series."""
        return [
            (subject, [one for one in self.series if one.experiment == subject.id])
            for subject in self.subjects
        ]

    def case(self, series: Series) -> str:
        """Which way of doing the work a series is: "threads"."""
        return names.clean(series.variant.get(self.subject.ways, series.label))

    @property
    def title(self) -> str:
        """Its own, without that of the family before a colon; or that of the work."""
        title = words.WORKS.get(self.group, self.group)
        if len(self.subjects) == 1:
            _, _, behind = self.subject.title.partition(": ")
            title = behind if self.group and behind else self.subject.title
        return names.clean(title[:1].upper() + title[1:])

    @property
    def as_a_whole(self) -> bool:
        """Whether there is nothing to be told of each experiment by itself: a work that was ranked, or not
        done at all."""
        return bool(self.rankings or (self.group and not any(map(words.measured, self.series))))


@dataclass(frozen=True, slots=True)
class ExperimentFamily:
    """What belongs together, with what it is about."""

    id: str
    title: str
    about: str
    topics: tuple[Topic, ...]


_FAMILIES: dict[str, tuple[str, str]] = {
    "square": (
        "The square",
        "n threads or processes are started, woken or let through one by one, and those that are through "
        "keep running. Each newcomer waits for a turn of all before it, so that n of them cost n x n turns. "
        "Beside each square stands what removes it, where there is such a thing.",
    ),
    "gil": (
        "What the GIL does",
        "Only the thread that holds the GIL runs Python code. What that costs threads that compute, threads "
        "that wait, and those that do some of both.",
    ),
    "models": (
        "Which model for which work",
        "The same work, done in every way that the standard library has for it. " + words.STANDINGS,
    ),
    "party": (
        "Pool party",
        "The same tasks, given to every kind of worker: threads, processes, interpreters, and pools of them. "
        "Of each the time, the share of all cores that it used, the memory of all its processes, and the "
        "share of the time in which a GIL was held. " + words.STANDINGS,
    ),
}
_WITH = {"cured": "square"}
"""Families that are shown with another."""


def families(summary: Summary) -> list[ExperimentFamily]:
    """All that the summary has, in the order above; what it has beyond that under its own name."""
    topics: dict[str, list[Topic]] = {}
    for topic in _topics(summary):
        family = topic.id.partition(".")[0]
        topics.setdefault(_WITH.get(family, family), []).append(topic)
    order = [name for name in _FAMILIES if name in topics]
    order += [name for name in topics if name not in _FAMILIES]
    return [
        ExperimentFamily(
            id=name,
            title=_FAMILIES[name][0] if name in _FAMILIES else names.clean(name),
            about=_FAMILIES[name][1] if name in _FAMILIES else "",
            topics=tuple(_ordered(topics[name])),
        )
        for name in order
    ]


def _topics(summary: Summary) -> Iterator[Topic]:
    """One for each group, at the place of its first experiment, and one for each experiment that has none."""
    found = words.subjects(summary)
    groups: dict[str, list[tuple[Subject, Sequence[Series]]]] = {}
    for subject, series in found:
        groups.setdefault(subject.group or subject.id, []).append((subject, series))
    for name, members in groups.items():
        yield Topic(
            subjects=tuple(subject for subject, _ in members),
            series=tuple(one for _, series in members for one in series),
            rankings=tuple(ranking for ranking in summary.rankings if ranking.group == name),
        )


def _ordered(topics: Sequence[Topic]) -> Iterator[Topic]:
    """Each square, and after it what does without; works in the order in which one asks for them."""
    by_name: dict[str, list[Topic]] = {}
    for topic in sorted(topics, key=lambda topic: topic.id.partition(".")[0] in _WITH):
        by_name.setdefault(topic.id.partition(".")[2], []).append(topic)
    for alike in sorted(by_name.values(), key=lambda alike: words.work_order(alike[0].id)):
        yield from alike


@dataclass(frozen=True, slots=True)
class Loss:
    """Why some figures are not there, of all series that it is true of."""

    what: str
    """"skipped", or "missing": some samples or sizes."""
    interpreters: tuple[str, ...]
    series: tuple[str, ...]
    """"square.mutex", "square.process-mutex (rr, 1 core)"."""
    reason: str


def losses(family: ExperimentFamily, roster: names.Roster) -> list[Loss]:
    """What is missing of a family and why, each reason once."""
    found: dict[tuple[str, str], tuple[dict[str, None], dict[str, None]]] = {}
    for topic in family.topics:
        for one in topic.series:
            told = [("skipped", one.skipped)] if one.skipped else []
            told += [("missing", failure) for failure in one.failures]
            label = f" ({names.clean(one.label)})" if one.label else ""
            for what, reason in told:
                labels, series = found.setdefault((what, names.clean(reason)), ({}, {}))
                labels[roster.of(one).label] = None
                series[f"{names.clean(one.experiment)}{label}"] = None
    return [
        Loss(what, tuple(labels), tuple(series), reason) for (what, reason), (labels, series) in found.items()
    ]

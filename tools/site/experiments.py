"""A page for each family of the lab's experiments: what each asks, takes and needs, as it declares."""

from __future__ import annotations

from typing import Any

from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import checks, documents, registry
from fairlead.record.sample import Sample
from fairlead.report.common import units
from fairlead.report.summary import sections
from fairlead.report.summary.documents import credit
from fairlead.report.summary.sections import ExperimentFamily, Topic

HOW = (
    "How to read the tables of a run is in [the first run](../../tutorial/first-run.md); "
    "how an experiment is added, in [CONTRIBUTING](../../../CONTRIBUTING.md).\n"
)


def known() -> list[ExperimentFamily]:
    """Every family with all its topics, as a report has them, though nothing is measured."""
    return sections.families(
        summarise(
            Sample(
                experiment=name, params={"policy": "other"}, interpreter={}, environment={}, status="skipped"
            )
            for name in registry.catalogue()
        )
    )


def declared(topic: Topic) -> str:
    """What is known of an experiment, or of a work with all its ways, before it is measured."""
    first = registry.catalogue()[topic.subject.id]
    subject = first.subject
    needs = f", with {' and '.join(first.needs)} installed" if first.needs else ""
    lines = [
        f"## {topic.id}: {topic.title}",
        "",
        f"*{subject.question}*",
        "",
        subject.explanation,
        "",
        f"n counts {subject.size_name}; it runs on Python {first.pythons}{needs}.",
        "",
    ]
    if len(topic.subjects) > 1:
        ways = (f"| `{one.id}` | {one.title} |" for one in topic.subjects)
        lines += ["| id | way |", "|---|---|", *ways, ""]
    parameters = {key: value for key, value in first.parameters.items() if key != "case"}
    if parameters:
        lines += ["| parameter | default | choices | |", "|---|---|---|---|"]
        for key, parameter in parameters.items():
            choices = ", ".join(map(str, parameter.choices))
            lines.append(f"| `{key}` | {parameter.default} | {choices} | {parameter.help} |")
        lines.append("")
    lines += ["| variant | quick | standard | full |", "|---|---|---|---|"]
    variants = {one.label: one for way in topic.subjects for one in registry.catalogue()[way.id].variants}
    for variant in variants.values():
        cells = []
        for mode in checks.MODES:
            table = variant.sizes if mode in variant.sizes else first.sizes
            cells.append(", ".join(map(str, table[mode])) if mode in variant.modes else "")
        lines.append(f"| {variant.label or 'plain'} | {' | '.join(cells)} |")
    lines.append("")
    if figures := [f"*{metric.title}*" for metric in subject.metrics]:
        lines += [f"Figures of its own: {', '.join(figures)}.", ""]
    if subject.references:
        published: dict[Any, list[str]] = {}
        lines += ["| published for | variant | figure | |", "|---|---|---|---|"]
        for one in subject.references:
            which = ", ".join(f"{key} {value}" for key, value in one.variant.items()) or "all"
            published.setdefault((one.label, one.metric, one.unit, one.points), []).append(which)
        for (label, metric, unit, found), variants in published.items():
            points = ", ".join(
                f"{f'n = {n}: ' if n else ''}{units.metric(value, unit)}" for n, value in found
            )
            lines.append(f"| {label} | {' or '.join(variants)} | {metric} | {points} |")
    return "\n".join(lines).rstrip() + "\n"


def page(family: ExperimentFamily) -> str:
    parts = [f"# {family.title}\n", f"{family.about}\n" if family.about else "", HOW]
    if sources := documents.repeated(one.id for topic in family.topics for one in topic.subjects):
        parts.append("Published figures and conclusions are those of\n")
        parts.append("".join(f"- {credit(one)}\n" for one in sources))
    for topic in family.topics:
        parts += [declared(topic), f"```console\n$ fairlead lab run {topic.id}\n```\n"]
    return "\n".join(filter(None, parts))

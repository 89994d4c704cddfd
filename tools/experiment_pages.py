"""Write the pages of docs/reference/experiments/, one for each family, from runs of the lab.

    tools/experiment_pages.py [RUN...]

What an experiment asks, takes and needs is read from its declaration, and what came out from the runs, so
that no figure on these pages is typed in. A part that the runs have no sample of stays as it was, with the
machine that it came from; without a run the declarations alone are written anew. All parts anew, on a quiet
machine, in the ten minutes of the budget and some seconds:

    fairlead lab run square cured gil models party --quick --interpreter 3.14 --budget 10m --out RUN
    tools/experiment_pages.py RUN
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.record.results import read_results, runs_in
from fairlead.record.sample import Sample
from fairlead.record.summary import Summary
from fairlead.report.common import names, units, words
from fairlead.report.summary import claims, sections, text
from fairlead.report.summary.sections import ExperimentFamily, Topic

PAGES = Path(__file__).parents[1] / "docs" / "reference" / "experiments"
FENCE = "```"
NOT_MEASURED = "Not measured on this machine.\n"
WIDTH = 155
HOW = (
    fill(
        "What came out was put here by `tools/experiment_pages.py`. How to read the tables is in "
        "[the first run](../../tutorial/first-run.md); how an experiment is added, in "
        "[CONTRIBUTING](../../../CONTRIBUTING.md).",
        WIDTH,
    )
    + "\n"
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
        fill(subject.explanation, WIDTH),
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
    for variant in first.variants:
        cells = []
        for mode in registry.MODES:
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


def measured(topic: Topic, summary: Summary) -> str | None:
    """What the report says of it, as in the terminal; None if there is no sample of it."""
    ids = {one.id for one in topic.subjects}
    series = tuple(one for one in summary.series if one.experiment in ids and one.cells)
    if not series:
        return None
    part = replace(
        summary,
        subjects=tuple(one for one in summary.subjects if one.id in ids),
        series=series,
        rankings=tuple(one for one in summary.rankings if one.group == topic.group),
        claims=tuple(one for one in summary.claims if one.experiment in {*ids, topic.id}),
        problems=(),
    )
    shown = text.render(part, width=120, detail=2).partition("\n\n")[2]
    shown = shown.partition(f"\n{claims.machine(part)}")[0].partition(f"\n{words.STANDINGS[:40]}")[0]
    # directories of the machine that measured say nothing to a reader
    shown = re.sub(r"/\S*/(bin/)", r".../\1", shown)
    return f"{fill(f'What came out on {machine(part)}:', WIDTH)}\n\n{FENCE}text\n{shown.rstrip()}\n{FENCE}\n"


def before(page: Path) -> dict[str, str]:
    """What came out when the page was last written, by topic."""
    if not page.exists():
        return {}
    sections = re.split(r"^## ([\w.-]+): ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {
        name: block[0]
        for name, body in zip(sections[::2], sections[1::2], strict=True)
        if (block := re.search(r"^What came out on .*?\n```text\n.*?^```\n", body, re.MULTILINE | re.DOTALL))
    }


def page_of(family: ExperimentFamily, summary: Summary, old: dict[str, str]) -> str:
    parts = [f"# {family.title}\n", f"{fill(family.about, WIDTH)}\n" if family.about else "", HOW]
    for topic in family.topics:
        command = (
            f"<!-- not run: takes its time -->\n{FENCE}console\n$ fairlead lab run {topic.id}\n{FENCE}\n"
        )
        parts += [declared(topic), command, measured(topic, summary) or old.get(topic.id, NOT_MEASURED)]
    return "\n".join(filter(None, parts))


def machine(part: Summary) -> str:
    """Where figures come from: "Intel Xeon, 2 cores, Linux 6.18: CPython 3.14.10"."""
    there = part.environment
    who = ", ".join(one.label for one in names.Roster(part.series))
    return (
        f"{names.value(there.get('processor'))}, {there.get('cores')} cores, "
        f"{names.clean(there.get('kernel'))}, {who}"
    )


def main(runs: Iterable[str]) -> None:
    read = [read_results(run) for path in runs for run in runs_in(path)]
    summary = summarise(sample for results in read for sample in results.samples)
    PAGES.mkdir(parents=True, exist_ok=True)
    for family in known():
        page = PAGES / f"{family.id}.md"
        page.write_text(page_of(family, summary, before(page)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

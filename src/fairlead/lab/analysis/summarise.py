"""From samples to a summary: which samples belong together, what each cell says, how each series grows.

A cell holds the samples that measured the same thing: one experiment with one set of parameters on one
interpreter in one environment (``results.FINGERPRINT``). A series is the cells that differ in n alone.
Nothing gets lost silently: samples that are not "ok" become lines of ``failures`` or ``skipped`` (but for a
size that was skipped first and measured when the run was continued), and what was read twice, because a
file was named twice or put together with itself, is counted once and reported.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from fairlead.lab.analysis.again import commands, nearest
from fairlead.lab.analysis.claims import Taken, claims
from fairlead.lab.analysis.conditions import conditions
from fairlead.lab.analysis.fit import fit
from fairlead.lab.analysis.ranking import WRONG, rankings, sped_up
from fairlead.lab.analysis.statistics import describe
from fairlead.lab.catalogue import documents, registry
from fairlead.lab.catalogue.registry import Experiment
from fairlead.record.gil_trace import GilTrace
from fairlead.record.results import FINGERPRINT, PER_SERIES, cell_key
from fairlead.record.sample import SHORTEST, Sample, SampleStatus
from fairlead.record.summary import Cell, Fit, RunRound, Series, Subject, Summary

_WORDS: dict[SampleStatus, str] = {
    "timeout": "timed out",
    "crashed": "crashed",
    "garbage": "printed no result",
    "failed": "failed",
}


def summarise(
    samples: Iterable[Sample],
    problems: Sequence[str] = (),
    catalogue: Mapping[str, Experiment] | None = None,
) -> Summary:
    """Group, describe, fit, and say which claims are settled.

    Args:
        samples: of one run or of several, in any order.
        problems: what the reader had to leave out; passed on.
        catalogue: the experiments known, this version's by default. An experiment that is not among them is
            summarised all the same.
    """
    known = registry.catalogue() if catalogue is None else catalogue
    distinct, twice = _distinct(samples)
    runs: dict[str | None, int] = {}
    groups: dict[str, list[Sample]] = {}
    for sample in distinct:
        runs.setdefault(sample.run, len(runs))
        key = cell_key(sample.experiment, _variant(sample), sample.interpreter, sample.environment)
        groups.setdefault(key, []).append(sample)
    places = Counter(_place(sample) for sample in distinct)
    suffixes = _suffixes([group[0] for group in groups.values()])
    series = [
        _series(group, known.get(group[0].experiment), suffix, runs)
        for group, suffix in zip(groups.values(), suffixes, strict=True)
    ]
    order = {name: index for index, name in enumerate(known)}
    first = {one.experiment: index for index, one in reversed(list(enumerate(series)))}
    taken = {id(one): group for one, group in zip(series, groups.values(), strict=True)}
    series.sort(key=lambda one: (order.get(one.experiment, len(order)), first[one.experiment]))
    groups_in_order = [taken[id(one)] for one in series]
    usual = places.most_common(1)[0][0] if places else None
    if twice:
        problems = [*problems, f"{_samples(twice)} read twice; counted once"]
    started, finished = _span(distinct)
    subjects = tuple(_subject(name, known) for name in dict.fromkeys(one.experiment for one in series))
    series = sped_up(subjects, series)
    by_id = {subject.id: subject for subject in subjects}
    cores: dict[str, int] = {}
    for sample in distinct:
        used = len(sample.environment.get("affinity") or ()) or 1
        cores[_place(sample)] = max(used, cores.get(_place(sample), 1))
    return Summary(
        subjects=subjects,
        series=tuple(series),
        environment=next((one.environment for one in distinct if _place(one) == usual), {}),
        environments=len(places),
        samples=sum(one.status != "skipped" for one in distinct),
        started=started,
        finished=finished,
        rankings=rankings(subjects, series),
        claims=claims(
            {
                subject.group or subject.id: known[subject.id].claims
                for subject in subjects
                if subject.id in known
            },
            [
                Taken(
                    registry.of_machine(by_id[one.experiment], cores[_place(group[0])]),
                    one,
                    _metrics(group, runs),
                    _place(group[0]),
                    str(group[0].environment.get("hostname")),
                )
                for one, group in zip(series, groups_in_order, strict=True)
            ],
        ),
        conditions=conditions(distinct),
        again=commands(subjects, series, known),
        documents=documents.repeated(by_id),
        runs=max(1, len(runs)),
        problems=tuple(problems),
    )


def _metrics(
    samples: Sequence[Sample], runs: Mapping[str | None, int]
) -> dict[str, dict[int, dict[RunRound, float]]]:
    """The values above zero of each metric, n and round."""
    found: dict[str, dict[int, dict[RunRound, float]]] = {}
    for sample in samples:
        metrics = sample.details.get("metrics") if sample.status == "ok" else None
        for name in metrics if isinstance(metrics, dict) else ():
            value = sample.metric(name)
            if value is not None and value >= SHORTEST:
                where = runs[sample.run], sample.round
                found.setdefault(name, {}).setdefault(sample.params["n"], {})[where] = value
    return found


def _distinct(samples: Iterable[Sample]) -> tuple[list[Sample], int]:
    """Each sample once, and how many were there again. Samples without a time of their own are all kept."""
    seen: set[str] = set()
    distinct = []
    twice = 0
    for sample in samples:
        text = json.dumps(sample.to_json(), sort_keys=True)
        if sample.started is not None and text in seen:
            twice += 1
        else:
            distinct.append(sample)
        seen.add(text)
    return distinct, twice


def _variant(sample: Sample) -> dict[str, Any]:
    return {name: value for name, value in sample.params.items() if name != "n"}


def _place(sample: Sample) -> str:
    """The machine a sample was taken on, and what of it does not change from series to series."""
    parts = {name: sample.environment.get(name) for name in FINGERPRINT if name not in PER_SERIES}
    return json.dumps(parts, sort_keys=True)


def _suffixes(leads: Sequence[Sample]) -> list[str]:
    """What to add to each series' label so that those from different machines or cores can be told apart."""

    def differing(samples: Sequence[Sample], names: Iterable[str]) -> list[str]:
        return [name for name in names if len({json.dumps(one.environment.get(name)) for one in samples}) > 1]

    names = differing(leads, [name for name in FINGERPRINT if name not in PER_SERIES])
    if len({json.dumps(one.environment.get("hostname")) for one in leads}) == len(
        {_place(one) for one in leads}
    ):
        names = names and ["hostname"]
    alike: dict[str, list[Sample]] = {}
    for one in leads:
        alike.setdefault(cell_key(one.experiment, _variant(one), one.interpreter, {}), []).append(one)
    suffixes = []
    for one in leads:
        own = differing(
            alike[cell_key(one.experiment, _variant(one), one.interpreter, {})],
            [name for name in PER_SERIES if name not in one.params],
        )
        words = [f"{name} {one.environment.get(name)}" for name in [*names, *own]]
        suffixes.append(", ".join(words))
    return suffixes


def _series(
    samples: Sequence[Sample], experiment: Experiment | None, suffix: str, runs: Mapping[str | None, int]
) -> Series:
    variant = _variant(samples[0])
    by_size: dict[int, list[Sample]] = {}
    for sample in samples:
        if "n" in sample.params:
            by_size.setdefault(sample.params["n"], []).append(sample)
    cells: list[Cell] = []
    for n in sorted(by_size):
        if any(sample.status != "skipped" for sample in by_size[n]):
            base = next((cell.median for cell in cells if cell.median is not None), None)
            cells.append(_cell({**variant, "n": n}, by_size[n], base, experiment, runs))
    labels = [_label(variant, experiment), suffix]
    skipped = None
    if not cells:
        skipped = "; ".join(dict.fromkeys(sample.reason or "no reason given" for sample in samples))
    return Series(
        experiment=samples[0].experiment,
        interpreter=samples[0].interpreter,
        variant=variant,
        label=", ".join(label for label in labels if label),
        cells=tuple(cells),
        fit=_fit(cells, skipped, experiment is None or experiment.subject.growth),
        skipped=skipped,
        failures=() if skipped else (*_failures(samples, by_size), *_wrong(cells)),
        not_measured=_not_measured(samples),
        trace=_trace(by_size),
    )


def _wrong(cells: Sequence[Cell]) -> list[str]:
    """One line per size at which answers were wrong."""
    return [
        f"n={cell.n}: {cell.metrics[WRONG]:.0f} of {cell.n} answers were wrong: no way to do this work"
        for cell in cells
        if cell.metrics.get(WRONG)
    ]


def _not_measured(samples: Sequence[Sample]) -> dict[str, str]:
    """The reasons that the samples give, the last one of each metric's."""
    reasons: dict[str, str] = {}
    for sample in samples:
        told = sample.details.get("not_measured") if sample.status == "ok" else None
        if isinstance(told, dict):
            reasons |= {str(name): str(reason) for name, reason in told.items()}
    return reasons


def _trace(by_size: Mapping[int, Sequence[Sample]]) -> GilTrace | None:
    """The last one of the largest size that has any."""
    for n in sorted(by_size, reverse=True):
        for sample in reversed(by_size[n]):
            if sample.status == "ok" and (trace := GilTrace.from_details(n, sample.details)):
                return trace
    return None


def _fit(cells: Sequence[Cell], skipped: str | None, growth: bool) -> Fit:
    if skipped is None and growth:
        runs = {cell.n: [run for run, _ in cell.rounds] for cell in cells}
        return fit({cell.n: cell.values for cell in cells}, runs)
    note = f"nothing was run: {skipped}" if skipped else None
    return Fit(exponent=None, low=None, high=None, model="undecided", note=note)


def _cell(
    params: dict[str, Any],
    samples: Sequence[Sample],
    base: float | None,
    experiment: Experiment | None,
    runs: Mapping[str | None, int],
) -> Cell:
    """One cell; ``base`` is the median of the series' smallest size, None when this is it."""
    good = [sample for sample in samples if sample.status == "ok"]
    value = experiment.value if experiment else None
    times = [
        (sample.metric(value) if value else sample.wall_s, (runs[sample.run], sample.round))
        for sample in good
    ]
    kept = [(time, where) for time, where in times if time is not None and time >= SHORTEST]
    values = [time for time, _ in kept]
    found = describe(values, [run for _, (run, _) in kept])

    def middle(numbers: Iterable[float | None]) -> float | None:
        present = [number for number in numbers if number is not None]
        return median(present) if present else None

    return Cell(
        params=params,
        n=params["n"],
        values=tuple(values),
        median=found.median,
        low=found.low,
        high=found.high,
        iqr=found.iqr,
        outliers=found.outliers,
        modes=found.modes,
        factor=None if found.median is None else found.median / (base or found.median),
        cpu_s=middle(
            None if one.user_s is None or one.sys_s is None else one.user_s + one.sys_s for one in good
        ),
        cpu_percent=middle(one.cpu_percent for one in good),
        max_rss_kb=middle(one.max_rss_kb for one in good),
        sum_rss_kb=middle(one.sum_rss_kb for one in good),
        ctx_voluntary=middle(one.ctx_voluntary for one in good),
        ctx_involuntary=middle(one.ctx_involuntary for one in good),
        foreign_share=middle(one.foreign_share for one in good),
        rounds=tuple(where for _, where in kept),
        disturbed=middle(one.disturbed for one in good),
        metrics={
            metric.name: number
            for metric in (experiment.subject.metrics if experiment else ())
            if (number := middle(one.metric(metric.name) for one in good)) is not None
        },
    )


def _failures(samples: Sequence[Sample], by_size: Mapping[int, Sequence[Sample]]) -> tuple[str, ...]:
    """One line per size and kind of failure, with the reason of the first, and one per reason to skip.

    A size that was skipped and, in a continued run, measured after all is not skipped.
    """
    kinds: dict[tuple[int, SampleStatus], list[str]] = {}
    skips: dict[str, list[int]] = {}
    for sample in samples:
        reason = sample.reason or "no reason given"
        if sample.status == "skipped":
            n = sample.params.get("n", 0)
            if all(other.status == "skipped" for other in by_size.get(n, [])):
                skips.setdefault(reason, []).append(n)
        elif sample.status != "ok":
            kinds.setdefault((sample.params["n"], sample.status), []).append(reason)
    lines = []
    for (n, status), reasons in sorted(kinds.items(), key=lambda kind: kind[0][0]):
        others = len(set(reasons)) - 1
        more = f" (and other reasons: {others})" if others else ""
        lines.append(
            f"{len(reasons)} of {len(by_size[n])} samples at n={n} {_WORDS[status]}: {reasons[0]}{more}"
        )
    for reason, found in skips.items():
        sizes = ", ".join(f"n={n}" for n in sorted(set(found)) if n) or "the series"
        times = f" ({len(found)} times)" if len(found) > len(set(found)) else ""
        lines.append(f"{sizes} not run{times}: {reason}")
    return tuple(lines)


def _label(variant: Mapping[str, Any], experiment: Experiment | None) -> str:
    """The label of the catalogue's variant that comes nearest, and what differs from it."""
    if experiment is None:
        return ", ".join(f"{name} {value}" for name, value in variant.items())
    found = nearest(variant, experiment)
    other = [f"{name} {value}" for name, value in found.other.items()]
    return ", ".join([found.label, *other] if found.label else other)


def _subject(name: str, known: Mapping[str, Experiment]) -> Subject:
    if name in known:
        return known[name].subject
    return Subject(
        id=name,
        title=name,
        question="",
        explanation="This version of fairlead does not know the experiment, nor does its run hold its file.",
        size_name="n",
    )


def _span(samples: Iterable[Sample]) -> tuple[str | None, str | None]:
    """When the first sample began and the last one ended, UTC."""
    first: datetime | None = None
    last: datetime | None = None
    for sample in samples:
        if sample.started is None:
            continue
        took_s = sample.wall_s if sample.elapsed_s is None else sample.elapsed_s
        try:
            began = datetime.fromisoformat(sample.started)
            began = began.astimezone(UTC) if began.tzinfo else began.replace(tzinfo=UTC)
            ended = began + timedelta(seconds=took_s or 0)
        except OverflowError:
            continue  # a time beyond the calendar's ends
        first = began if first is None else min(first, began)
        last = ended if last is None else max(last, ended)
    return tuple(when and when.isoformat(timespec="seconds") for when in (first, last))  # type: ignore[return-value]


def _samples(count: int) -> str:
    return "1 sample was" if count == 1 else f"{count} samples were"

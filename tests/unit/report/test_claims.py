"""The claims of a run are those of its samples, and stand in every form of its report."""

from __future__ import annotations

import csv as csv_module
import io as io_module
import itertools
import json as json_module
import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import summaries
from samples import planned, sample

from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.declared import Declared
from fairlead.lab.run.questions import Question
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.sample import Sample
from fairlead.record.summary import Claim, Summary
from fairlead.report.common import names, words
from fairlead.report.summary import claims, csv, html, json, sections, text
from fairlead.report.summary.pictures import bar_charts

pytestmark = pytest.mark.ends

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"
HERE = {"hostname": "here", "cores": 2, "affinity": [0, 1], "policy": "other"}
PLAIN = {"policy": "other", "cores": "all"}
WIGGLE = (1.0, 1.01, 0.99, 1.005, 0.995, 1.002)


def samples(
    experiment: str,
    wall_s: float,
    n: int = 1,
    *,
    version: str = "3.13",
    metrics: dict[str, float] | None = None,
    value: str | None = None,
    details: dict[str, Any] | None = None,
    cpu_s: float | None = None,
    **params: Any,
) -> list[Sample]:
    """Six samples about a time, which is that of a metric if one is named."""
    python = summaries.interpreter(
        version, f"{version.removesuffix('t')}.0", free_threaded=version.endswith("t"), gil=True
    )
    return [
        sample(
            experiment, n, 1.0 if value else wall_s * wiggle, params={"n": n, **PLAIN, **params},
            interpreter=python, environment=HERE, started=f"2026-03-02T10:{n % 60:02}:{number:02}+00:00",
            round=number, user_s=wall_s / 2 if cpu_s is None else cpu_s, sys_s=0.0, cpu_percent=100.0,
            sum_rss_kb=20_000, foreign_share=0.0,
            details={
                **(details or {}),
                "metrics": {**(metrics or {}), **({value: wall_s * wiggle} if value else {})},
            },
        )
        for number, wiggle in enumerate(WIGGLE)
    ]  # fmt: skip


def convoy(request_s: float, n: int = 1, **params: Any) -> list[Sample]:
    set_ = {"beside": "nothing", "computing": 1, "seconds": 1, "interval_ms": 5, "scheduler": "off"}
    return samples("gil.convoy", request_s, n, value="request_s", **{**set_, **params})


def io(case: str, wall_s: float, cpu_s: float, version: str = "3.13") -> list[Sample]:
    more = {"case": case, "workers": "default", "delay_ms": 100}
    return samples(f"models.io-{case}", wall_s, 30, version=version, cpu_s=cpu_s, **more)


def party(method: str, wall_s: float, *, version: str = "3.13", **metrics: float) -> list[Sample]:
    more = {"case": "fib", "method": method, "workers": "cores", "task": "whole", "specialisation": "on"}
    reasons = {} if "gil_share" in metrics else {"gil_share": "nothing observes it on this build"}
    return samples(
        "party.fib", wall_s, 16, version=version, metrics=metrics, details={"not_measured": reasons}, **more
    )


@pytest.fixture(scope="module")
def summary() -> Summary:
    taken = [
        *io("sequential", 3.0, 0.02),
        *io("async", 0.11, 0.01),
        *io("threads", 0.11, 0.03),
        *io("async", 0.12, 0.01, "3.14"),
        *io("threads", 0.12, 0.03, "3.14"),
        *party("sequential", 2.0, cpu_share=0.5, peak_kb=10_000, gil_share=1.0, wrong_answers=0),
        *party("threads", 2.1, cpu_share=0.5, peak_kb=11_000, gil_share=1.0, wrong_answers=0),
        *party("processes-fork", 1.0, cpu_share=1.0, peak_kb=30_000, gil_share=0.9, wrong_answers=0),
        *party("futures", 0.5, cpu_share=1.0, peak_kb=30_000, wrong_answers=3),
        *convoy(20e-6),
        *convoy(5e-3, beside="threads"),
        *convoy(25e-6, beside="processes"),
        *convoy(40e-6, beside="threads", scheduler="interactive"),
        *(
            s
            for n in (50, 100, 200)
            for s in samples("square.mutex", 1e-5 * n * n, n, work="sleep0", scheduler="off")
        ),
        *(s for n in (50, 100, 200) for s in samples("cured.mutex", 1e-5 * n, n, work="sleep0")),
    ]
    return summarise(taken)


def test_tally_says_how_many_are_rough_and_how_many_contrary(summary: Summary) -> None:
    curve = summary.series[0]
    three = [
        summaries.ratio_claim(curve),
        summaries.ratio_claim(curve, low=1.2, high=900.0),
        summaries.ratio_claim(curve, verdict="contradicts the source"),
    ]
    assert claims.tally(three) == "3 of 3 claims are settled (1 roughly, 1 against the source)"
    assert claims.tally(three[:1]) == "1 of 1 claims is settled"


def found(summary: Summary) -> dict[str, Claim]:
    return {f"{claim.experiment}: {claim.topic}": claim for claim in summary.claims}


def test_best_way_has_the_least_processor_time_of_those_as_fast_and_right_answers(summary: Summary) -> None:
    ranking = next(one for one in summary.rankings if one.group == "models.io")
    assert {p.case: p.standing for p in ranking.places} == {
        "sequential": "slower",
        "async": "best",
        "threads": "as fast",
    }
    ranking = next(one for one in summary.rankings if one.group == "party.fib")
    standings = {p.case: p.standing for p in ranking.places}
    assert (standings["futures"], standings["processes-fork"]) == ("wrong", "best")


def test_ranking_is_named_by_what_n_counts(summary: Summary) -> None:
    ranking = next(one for one in summary.rankings if one.group == "models.io")
    subject = replace(summary.subjects[0], size_name="round trips")
    named = words.ranking(ranking, subject, names.Roster(summary.series))
    assert named.startswith("models.io, 30 round trips, CPython 3.13")


def test_processes_that_are_as_fast_as_threads_and_dearer_are_two_claims() -> None:
    def way(case: str, user_s: float) -> list[Sample]:
        more = {"case": case, "workers": "default", "delay_ms": 100}
        return samples(f"models.io-{case}", 0.11, 30, metrics={"user_s": user_s, "system_s": 0.0}, **more)

    seen = found(summarise([*way("threads", 0.02), *way("processes", 0.06)]))
    fast, dear = seen["models.io: I/O, processes"], seen["models.io: I/O, processor time"]
    assert (fast.value, dear.value) == (pytest.approx(1.0), pytest.approx(3.0, rel=0.01))
    assert "no longer with a process each" in fast.text
    assert "more user time with a process each" in dear.text
    # two cores, as the machine of the samples: user time of 11.86 s and 0.95 s
    assert [one.value for one in dear.published] == [pytest.approx(11.86 / 0.95)]
    assert [one.value for one in fast.published] == [pytest.approx(5.60 / 2.59)]


def test_convoy_and_its_remedies_are_ratios_with_both_times_and_what_was_published(summary: Summary) -> None:
    convoy = found(summary)["gil.convoy: convoy"]
    assert convoy.value == pytest.approx(250, rel=0.03)
    assert convoy.verdict == "settled"
    assert [(side.what, side.median) for side in convoy.sides] == [
        ("beside threads", pytest.approx(5e-3, rel=0.01)),
        ("beside nothing", pytest.approx(20e-6, rel=0.01)),
    ]
    assert [round(one.value) for one in convoy.published] == [300]
    assert convoy.low < 250 < convoy.high  # type: ignore[operator]
    scheduled = found(summary)["gil.convoy: convoy, GIL scheduled"]
    assert scheduled.value == pytest.approx(125, rel=0.03)
    assert scheduled.published == (), "what was published of the stock GIL is no figure of the scheduled one"
    assert "gil.convoy: convoy, switch 0.5 ms" not in found(summary), "it was not measured"


def test_square_is_the_exponent_of_the_fit_and_its_cure_is_held_against_it_at_the_largest_size(
    summary: Summary,
) -> None:
    claim = found(summary)["square.mutex: passing a lock"]
    series = next(one for one in summary.series if one.experiment == "square.mutex")
    assert (claim.value, claim.low, claim.high) == (series.fit.exponent, series.fit.low, series.fit.high)
    assert (claim.kind, claim.verdict) == ("exponent", "settled")
    assert [one.label for one in claim.published] == ["CPython, 2 cores"]
    claim = found(summary)["cured.mutex: Combiner"]
    assert claim.value == pytest.approx(200, rel=0.03)
    assert claim.text == "200 threads pass a Combiner faster than a Lock"


def test_claims_are_open_contrary_or_none_where_the_samples_say_so() -> None:
    few = summarise([*convoy(20e-6), *convoy(5e-3, beside="threads")[:2]])
    claim = found(few)["gil.convoy: convoy"]
    assert (claim.verdict, claim.low, claim.rounds) == ("open", None, 2)
    assert claims.why_open(claim) == "only 2 runs so far: give a larger --budget"
    more = {"check_interval": 100, "interval_ms": 5, "count": "nothing"}
    (claim,) = summarise(samples("gil.battle", 1.0, 4000, metrics={"series_s": 1.0}, **more)).claims
    assert (claim.verdict, claim.published) == ("settled", ()), "the source is about the GIL before 3.2"
    taken = samples("gil.battle", 1.0, 4000, version="2.7", metrics={"series_s": 1.0}, **more)
    (claim,) = summarise(taken).claims
    assert claim.verdict == "contradicts the source"
    assert claim.text == "2 threads are no slower than the same in series"
    assert [(one.label, round(one.value, 2)) for one in claim.published] == [
        ("CPython 2, 2 cores, OS X", 1.85)
    ]
    more = {"interval_ms": 5, "signals": 20}
    one = samples("gil.signal", 5e-3, 1, value="delay_s", **more)
    assert summarise(one).claims == ()
    (claim,) = summarise([*one, *samples("gil.signal", 2e-2, 4, value="delay_s", **more)]).claims
    assert claim.value == pytest.approx(4, rel=0.02)
    assert [side.what for side in claim.sides] == ["4 threads", "1 thread"]
    assert summarise([]).claims == ()


def test_a_claim_about_what_is_counted_has_counts_for_sides() -> None:
    set_ = {"check_interval": 100, "interval_ms": 5, "count": "system calls"}
    counted = [
        one
        for cores, calls in (("all", 9000.0), ("one", 3000.0))
        for one in samples(
            "gil.battle", 1.0, 4000, metrics={"system_calls": calls}, **{**set_, "cores": cores}
        )
    ]
    claim = found(summarise(counted))["gil.battle: system calls, 1 core"]
    assert (claim.value, claim.verdict) == (pytest.approx(3.0), "settled")
    assert claims.sides(claim) == "9,000 / 3,000"
    assert claims.named_sides(claim) == "9,000 (cores all) against 3,000 (cores one)"


def test_claim_about_a_metric_compares_that_in_its_unit_with_another_way_or_another_metric() -> None:
    claim = Declared(topic="", says="more", otherwise="no more", more_than=2, metric="peak_kb")
    declared = (
        replace(claim, topic="a", of={"method": "threads"}, over={"method": "sequential"}),
        replace(claim, topic="b", of={"method": "threads"}, over_metric="gil_share"),
    )
    known = {"party.fib": replace(registry.catalogue()["party.fib"], claims=declared)}
    taken = [
        *party("sequential", 1.0, peak_kb=10_000, gil_share=20_000),
        *party("threads", 1.0, peak_kb=30_000, gil_share=20_000),
    ]
    first, second = summarise(taken, catalogue=known).claims
    assert (first.value, second.value) == pytest.approx((3.0, 1.5))
    assert [one.text for one in (first, second)] == ["more", "no more, or by less than 100 %"]
    assert claims.sides(first) == "29.3 MiB / 9.77 MiB"
    cells = [
        PlannedCell(planned("party.fib"), 16, {turn: side[turn % 6] for turn in range(12)})
        for side in (taken[:6], taken[6:])
    ]
    for turn in range(12):
        varied = {"metrics": {"peak_kb": 10_000 + 100 * turn}}
        cells[0].samples[turn] = replace(cells[0].samples[turn], details=varied)
    assert Question(tuple(cells), "ratio").width() == 0, "the times wiggle together"
    assert 0 < Question(tuple(cells), "ratio", metric="peak_kb").width() < 1


def test_slow_drift_is_in_both_times_of_a_round_and_not_in_their_ratio() -> None:
    def drifting(taken: list[Sample]) -> list[Sample]:
        return [
            replace(
                one, details={"metrics": {"request_s": one.details["metrics"]["request_s"] * 1.5**one.round}}
            )
            for one in taken
        ]

    found_then = summarise([*drifting(convoy(20e-6)), *drifting(convoy(4e-5, beside="threads"))])
    claim = found(found_then)["gil.convoy: convoy"]
    assert claim.verdict == "settled"
    assert claim.value == pytest.approx(2.0, rel=0.02)
    assert claim.high / claim.low < 1.05  # type: ignore[operator]


def test_every_declared_claim_names_parameters_that_its_experiment_has() -> None:
    files = [registry.load(path) for path in sorted(BENCHMARKS.parent.glob("*/own_*.py"))]
    known = registry.catalogue() | {one.id: one for file in files for one in file.cases.values()}
    for experiment in known.values():
        for declared in experiment.claims:
            for side in (declared.of, declared.over):
                name = side.get("experiment", experiment.id)
                there = known[name]
                case = {"case"} if experiment.subject.group else set()
                assert set(side) - {"n", "experiment", "policy", "cores"} - case <= set(there.parameters)
                for key, value in side.items():
                    if key in there.parameters and key != "case":
                        assert value in there.parameters[key].choices
            assert declared.says != declared.otherwise
            metrics = {metric.name for metric in experiment.subject.metrics}
            assert {declared.over_metric, declared.metric} <= metrics | {""}
        topics = [declared.topic for declared in experiment.claims]
        assert len(topics) == len(set(topics))
        assert all(len(topic) <= 22 for topic in topics), "a claim stands in one line of 80 columns"


def page_of(form: ModuleType, summary: Summary) -> str:
    return " ".join(form.render(summary, **({"detail": 1} if form is text else {})).split())


def test_every_form_has_every_claim_and_every_family(summary: Summary) -> None:
    ordered = claims.ordered(summary)
    assert len(ordered) == 10
    data = json_module.loads(json.render(summary))
    assert [claim["topic"] for claim in data["claims"]] == [claim.topic for claim in ordered]
    assert {one["family"] for one in data["experiments"]} == {"square", "gil", "models", "party"}
    table = csv_module.DictReader(io_module.StringIO(csv.render(summary), newline=""))
    assert [row["text"] for row in table if row["kind"] == "claim"] == list(map(claims.sentence, ordered))
    shown, page = page_of(text, summary), re.sub(r"<sup>([^<]+)</sup>", r"^\1", page_of(html, summary))
    for claim in ordered:
        assert claims.sentence(claim) in shown
        assert claims.said(claim) in page
    for family in sections.families(summary):
        assert family.title.upper() in shown
        assert f"<h2>{family.title}</h2>" in page


def test_families_come_in_order_with_cures_and_published_figures_beside_what_they_are_of(
    summary: Summary,
) -> None:
    shown = sections.families(summary)
    assert [family.id for family in shown] == ["square", "gil", "models", "party"]
    assert [topic.id for topic in shown[0].topics] == ["square.mutex", "cured.mutex"]
    (work,) = shown[2].topics
    assert (work.id, work.title, len(work.subjects)) == ("models.io", "I/O", 3)
    page = text.render(summary, detail=1, width=120)
    assert "not stated" not in page, "a column without content is none"
    assert (
        "published for a: CPython 3.9.1, 10 cores, Ubuntu Linux 18.04; b: CPython 3.9.1, 2 cores"
        in " ".join(page.split())
    )
    table, *_ = re.findall(r"^ +case +figure +a +b +c +ours\n +-+\n((?:    .*\n)+)", page, re.MULTILINE)
    walls = [re.split(r" {2,}", line.strip()) for line in table.splitlines() if " wall " in line]
    assert [wall[0] for wall in walls] == ["sequential", "threads", "async"]
    assert walls[0] == ["sequential", "wall", "14.3 s", "17.2 s", "15.1 s", "3.00 s"]


def test_losses_are_listed_once_for_all_series_that_have_them() -> None:
    reason = "no room"
    skipped = [
        Sample(
            experiment=experiment, params=PLAIN, interpreter={"name": name, "version": name},
            environment=HERE, status="skipped", reason=reason,
        )
        for experiment in ("gil.convoy", "gil.battle") for name in ("3.13", "3.14")
    ]  # fmt: skip
    summary = summarise(skipped)
    (family,) = sections.families(summary)
    (loss,) = sections.losses(family, names.Roster(summary.series))
    assert (loss.what, loss.reason, len(loss.interpreters), len(loss.series)) == ("skipped", reason, 2, 2)


def test_pictures_are_time_cpu_memory_and_gil_with_the_longest_as_measure(summary: Summary) -> None:
    subjects = {subject.id: subject for subject in summary.subjects}
    (ranking,) = (one for one in summary.rankings if one.group == "party.fib")
    pictures = bar_charts.pictures(ranking, subjects)
    assert [one.title for one in pictures] == ["Time", "CPU, all cores", "Memory, all processes", "GIL held"]
    for picture in pictures:
        assert max(bar.width or 0 for bar in picture.bars) <= 100
        assert [bar.case for bar in picture.bars] == [place.case for place in ranking.places]
    held = {bar.case: bar for bar in pictures[3].bars}
    assert (held["sequential"].value, held["sequential"].width) == ("100 %", 100)
    assert (held["futures"].value, held["futures"].width) == ("not measurable here", None)
    assert held["futures"].standing == "wrong"
    assert "nothing observes it on this build" in html.render(summary)


def test_page_of_works_has_headings_in_order_and_names_for_all_that_is_linked(summary: Summary) -> None:
    page = html.render(summary)
    levels = [int(level) for level in re.findall(r"<h([1-6])", page)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))
    names_of = set(re.findall(r' id="([^"]+)"', page))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= names_of
    assert len(names_of) == len(re.findall(r' id="', page))

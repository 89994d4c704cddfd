"""The answers at the head of a report are those of its figures, and stand in every form of it."""

from __future__ import annotations

import csv as csv_module
import io as io_module
import itertools
import json as json_module
import re
from types import ModuleType
from typing import Any

import pytest

from fairlead.record.sample import Sample
from fairlead.record.summary import Summary
from fairlead.report import answers, bars, csv, families, html, json, names, text

pytest.importorskip("numpy")
pytest.importorskip("rich")
pytest.importorskip("jinja2")
pytest.importorskip("plotly")

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
    return [
        Sample(
            experiment=experiment,
            params={"n": n, **PLAIN, **params},
            interpreter={
                "name": version,
                "implementation": "CPython",
                "version": f"{version.removesuffix('t')}.0",
                "free_threaded": version.endswith("t"),
                "path": f"/opt/{version}",
                "executable": f"/opt/{version}",
            },
            environment=HERE,
            status="ok",
            started=f"2026-03-02T10:{n % 60:02}:{number:02}+00:00",
            wall_s=1.0 if value else wall_s * wiggle,
            user_s=wall_s / 2 if cpu_s is None else cpu_s,
            sys_s=0.0,
            cpu_percent=100.0,
            sum_rss_kb=20_000,
            foreign_share=0.0,
            details={
                **(details or {}),
                "metrics": {**(metrics or {}), **({value: wall_s * wiggle} if value else {})},
            },
        )
        for number, wiggle in enumerate(WIGGLE)
    ]


def convoy(request_s: float, n: int = 1, **params: Any) -> list[Sample]:
    set_ = {"beside": "nothing", "computing": 1, "seconds": 1, "interval_ms": 5, "scheduler": "off"}
    return samples("gil.convoy", request_s, n, value="request_s", **{**set_, **params})


def io(case: str, wall_s: float, cpu_s: float, version: str = "3.13") -> list[Sample]:
    more = {"case": case, "workers": "default", "delay_ms": 100}
    return samples(f"models.io-{case}", wall_s, 30, version=version, cpu_s=cpu_s, **more)


def party(method: str, wall_s: float, *, version: str = "3.13", **metrics: float) -> list[Sample]:
    more = {"case": "fib", "method": method, "workers": "cores", "task": "whole"}
    reasons = {} if "gil_share" in metrics else {"gil_share": "nothing observes it on this build"}
    return samples(
        "party.fib", wall_s, 16, version=version, metrics=metrics, details={"not_measured": reasons}, **more
    )


@pytest.fixture(scope="module")
def summary() -> Summary:
    from fairlead.lab.analyse import summarise

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
        *(s for n in (50, 100, 200) for s in samples("square.mutex", 1e-5 * n * n, n, work="sleep0")),
        *(s for n in (50, 100, 200) for s in samples("cured.mutex", 1e-5 * n, n, work="sleep0")),
    ]
    return summarise(taken)


def found(summary: Summary) -> dict[str, answers.Answer]:
    return {answer.experiment: answer for answer in answers.answers(summary)}


def test_best_way_is_the_answer_and_says_how_many_times_faster_it_is(summary: Summary) -> None:
    answer = found(summary)["models.io"]
    assert answer.topic == "I/O"
    assert answer.text.startswith(
        "Best: tasks of an event loop. 30 tasks take 110 ms and 10.0 ms of processor"
    )
    assert answer.figures["best"] == "async"
    assert answer.figures["times_faster_than_sequential"] == pytest.approx(3.0 / 0.11, rel=0.02)
    assert answer.verdict == "stable"
    assert answer.interpreter == "CPython 3.13.0"
    assert answer.others == (("CPython 3.14.0", "async (120 ms)"),)


def test_way_with_wrong_answers_is_never_recommended(summary: Summary) -> None:
    answer = found(summary)["party.fib"]
    assert answer.figures["best"] == "processes-fork"
    assert answer.topic == "a recursive function"


def test_convoy_and_cure_are_ratios_of_the_medians(summary: Summary) -> None:
    convoy = found(summary)["gil.convoy"]
    assert convoy.figures["times"] == pytest.approx(250, rel=0.03)
    assert "20.0 us" in convoy.text
    assert "5.00 ms beside a thread that computes: 250 times" in convoy.text
    assert "with the GIL scheduled by fairlead 40.0 us" in convoy.text
    cure = found(summary)["cured.mutex"]
    assert cure.figures["square.mutex"] == pytest.approx(200, rel=0.03)


def test_square_is_the_exponent_of_the_fit(summary: Summary) -> None:
    answer = found(summary)["square.mutex"]
    assert answer.figures["square.mutex"] == pytest.approx(2.0, abs=0.02)
    assert "passing a lock n^2.00" in answer.text


def test_answer_is_as_sure_as_its_least_sure_figure() -> None:
    from fairlead.lab.analyse import summarise

    few = [*convoy(20e-6), *convoy(5e-3, beside="threads")[:2]]
    (answer,) = answers.answers(summarise(few))
    assert answer.verdict == "undecided"
    ((_, line),) = answers.lines([answer])
    assert "[undecided]" in line


def test_nothing_measured_is_no_answer() -> None:
    from fairlead.lab.analyse import summarise

    assert answers.answers(summarise([])) == ()


@pytest.mark.parametrize("form", [text, html, json, csv])
def test_every_form_has_every_answer_and_every_family(form: ModuleType, summary: Summary) -> None:
    page = form.render(summary)
    said = [answer.text for answer in answers.answers(summary)]
    assert len(said) == 5
    if form is json:
        data = json_module.loads(page)
        assert [answer["text"] for answer in data["answers"]] == said
        assert {one["family"] for one in data["experiments"]} == {"square", "gil", "models", "party"}
    elif form is csv:
        table = list(csv_module.DictReader(io_of(page)))
        assert [row["advice"].startswith(one) for row, one in zip(table, said, strict=False)] == [True] * 5
    else:
        flat = " ".join(re.sub(r"<sup>([^<]+)</sup>", r"^\1", page).split())
        for sentence in said:
            assert sentence in flat
        for family in families.families(summary):
            assert (family.title.upper() if form is text else f"<h2>{family.title}</h2>") in page


def io_of(page: str) -> io_module.StringIO:
    return io_module.StringIO(page, newline="")


def test_families_come_in_order_with_cures_beside_their_squares(summary: Summary) -> None:
    shown = families.families(summary)
    assert [family.id for family in shown] == ["square", "gil", "models", "party"]
    assert [topic.id for topic in shown[0].topics] == ["square.mutex", "cured.mutex"]
    (work,) = shown[2].topics
    assert (work.id, work.title, len(work.subjects)) == ("models.io", "I/O", 3)


def test_losses_are_told_once_for_all_that_they_are_true_of() -> None:
    from fairlead.lab.analyse import summarise

    reason = "no room"
    skipped = [
        Sample(
            experiment=experiment, params=PLAIN, interpreter={"name": name, "version": name},
            environment=HERE, status="skipped", reason=reason,
        )
        for experiment in ("gil.convoy", "gil.battle") for name in ("3.13", "3.14")
    ]  # fmt: skip
    summary = summarise(skipped)
    (family,) = families.families(summary)
    (loss,) = families.losses(family, names.Roster(summary.series))
    assert (loss.what, loss.reason, len(loss.who), len(loss.series)) == ("skipped", reason, 2, 2)


def test_pictures_are_time_cpu_memory_and_gil_with_the_longest_as_measure(summary: Summary) -> None:
    subjects = {subject.id: subject for subject in summary.subjects}
    (ranking,) = (one for one in summary.rankings if one.group == "party.fib")
    pictures = bars.pictures(ranking, subjects)
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

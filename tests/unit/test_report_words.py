"""Numbers, names and sentences of the reports."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
import summaries

from fairlead.lab.registry import catalogue
from fairlead.record.summary import Fit, Reference, Unit
from fairlead.report import names, schedule, units, words
from fairlead.report.headline import headline


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"),
        (0.0, "0 s"),
        (0.0407, "40.7 ms"),
        (0.9994, "999 ms"),
        (0.9999, "1.00 s"),
        (0.00999999, "10.0 ms"),
        (71e-6, "71.0 us"),
        (4.2e-9, "4.20 ns"),
        (10.99, "11.0 s"),
        (4070.0, "4070 s"),
    ],
)
def test_seconds_have_three_digits_and_a_fitting_unit(value: float | None, shown: str) -> None:
    assert units.seconds(value) == shown


def test_interval_is_in_the_unit_of_its_median() -> None:
    assert units.interval(0.0399, 1.2, 0.0407) == "[39.9, 1200]"
    assert units.interval(None, 1.2, 0.0407) == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", "\ufffd[31mred"),
        ("a\u202eb", "a\ufffdb"),
        ("two\nlines\tand  more", "two lines and more"),
        ("half \udc80", "half \ufffd"),
        ("äöü 日本", "äöü 日本"),
    ],
)
def test_clean_leaves_only_what_can_be_seen(text: str, shown: str) -> None:
    assert names.clean(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-03-02T12:14:05.25+02:00", "2026-03-02 10:14 UTC"),
        ("2026-03-02T10:14:05Z", "2026-03-02 10:14 UTC"),
        ("yester\u202eday", "yester\ufffdday"),
    ],
)
def test_moment_is_told_in_utc(text: str, shown: str) -> None:
    assert names.moment(text) == shown


def test_labels_are_told_apart_when_version_and_name_are_the_same() -> None:
    rng = random.Random(1)
    twins = [summaries.interpreter(path=f"/opt/{i}/python") for i in range(2)]
    twins += [summaries.interpreter("3.13#2"), summaries.interpreter(build={"debug": True})]
    roster = names.Roster([summaries.series(rng, python=p) for p in twins])
    labels = [who.label for who in roster]
    assert len(set(labels)) == len(labels) == 4
    assert "CPython 3.13.0 (3.13#2)" in labels
    assert "CPython 3.13.0 (3.13) (/opt/1/python)" in labels


def test_label_names_a_free_threaded_build_and_its_gil() -> None:
    rng = random.Random(1)
    with_gil = summaries.interpreter("3.13t", "3.13.1", free_threaded=True, gil=True)
    roster = names.Roster([summaries.series(rng, python=p) for p in (summaries.PYTHONS[3], with_gil)])
    assert [w.label for w in roster] == [
        "CPython 3.13.1 free-threaded",
        "CPython 3.13.1 free-threaded with GIL",
    ]


def test_fit_line_names_exponent_interval_model_and_verdict() -> None:
    fit = Fit(exponent=2.05, low=1.98, high=2.11, model="n^2", verdict="stable", advice=None)
    assert words.fit(fit) == "grows as n^2.05 [1.98, 2.11] -> n^2, stable"
    assert words.fit(replace(fit, model="undecided", verdict="undecided")).endswith("-> undecided")
    assert words.fit(replace(fit, exponent=None, verdict="bimodal")) == "no exponent, bimodal"


def test_reference_is_placed_against_the_interval() -> None:
    fit = Fit(exponent=2.05, low=1.98, high=2.11, model="n^2", verdict="stable", advice=None)
    published = Reference(label="there", points=((100, 0.1), (1000, 10.0)), exponent=None)
    assert words.reference_exponent(published) == pytest.approx(2.0)
    assert words.reference(published, fit) == (
        "there: n^2.00, n = 100: 100 ms, n = 1000: 10.0 s (x100); inside the interval"
    )
    assert words.reference(replace(published, exponent=1.2), fit).endswith("flatter than here")
    assert words.reference(replace(published, exponent=2.5), fit).endswith("steeper than here")


def test_references_belong_to_variant_and_implementation() -> None:
    rng = random.Random(1)
    mutex, semaphore, _ = summaries.SUBJECTS
    on = {p["name"]: summaries.series(rng, python=p) for p in summaries.PYTHONS}
    assert [r.label for r in words.references(mutex, on["3.13"])] == ["CPython, 2 cores"]
    assert [r.label for r in words.references(mutex, on["pypy3.11"])] == ["PyPy, 2 cores"]
    assert words.references(semaphore, replace(on["3.13"], variant={"how": "event"})) == ()
    assert len(words.references(semaphore, replace(on["3.13"], variant={"how": "release"}))) == 1


def test_warnings_gather_sizes_and_end_with_what_to_do() -> None:
    rng = random.Random(1)
    curve = summaries.series(rng)
    noisy = tuple(replace(c, verdict="noisy", advice="Close the browser.") for c in curve.cells[1:3])
    odd = replace(curve.cells[3], verdict="bimodal", modes=(0.0625, 4.1), advice=None)
    lines = list(words.warnings(replace(curve, cells=(curve.cells[0], *noisy, odd))))
    assert lines == [
        "n = 100, 200 noisy: Close the browser.",
        f"n = 400 bimodal (62.5 ms and 4.10 s): {words.VERDICTS['bimodal'][1]}",
    ]
    assert list(words.warnings(curve)) == []


def test_headline_names_the_first_stable_experiment() -> None:
    rng = random.Random(1)
    shaky = summaries.series(rng, "square.mutex", fit_verdict="undecided")
    firm = summaries.series(rng, "square.process-start", sizes=(10, 20, 40))
    text = str(headline(summaries.summary(shaky, firm)))
    assert text.startswith(
        "On this machine, on CPython 3.13.0, starting n processes costs n^2.0: ten times the "
    )
    assert "processes take about 110 times as long" in text


def test_headline_counts_interpreters_and_machines_beyond_two() -> None:
    rng = random.Random(1)
    curves = [summaries.series(rng, python=p) for p in summaries.PYTHONS]
    text = str(headline(summaries.summary(*curves, environments=2)))
    assert text.startswith("On these machines, on CPython 3.13.0 and 4 other interpreters, ")


def test_headline_of_a_constant_time_says_that_it_does_not_grow() -> None:
    flat = summaries.series(random.Random(1), exponent=0.01)
    flat = replace(flat, fit=replace(flat.fit, model="1"))
    assert "does not grow with the number of threads" in str(headline(summaries.summary(flat)))


@pytest.mark.parametrize(
    ("curves", "part"),
    [
        ((), "holds no sample"),
        ((summaries.skipped("square.mutex"),), "everything was skipped or failed"),
        ((summaries.series(random.Random(1), fit_verdict="bimodal"),), "no exponent is sure yet"),
    ],
)
def test_headline_without_a_stable_exponent_names_no_figure(curves: tuple, part: str) -> None:
    told = headline(summaries.summary(*curves))
    assert part in str(told)
    assert told.power == ""


def test_headline_of_noise_comes_after_what_is_stable_and_sounds_less_sure() -> None:
    rng = random.Random(1)
    noisy = summaries.series(rng, fit_verdict="noisy")
    alone = str(headline(summaries.summary(noisy)))
    assert "passing a lock through n threads seems to cost n^2.0: " in alone
    firm = summaries.series(rng, "square.process-start", sizes=(10, 20, 40))
    assert "starting n processes costs n^2.0: " in str(headline(summaries.summary(noisy, firm)))


def test_exponent_a_little_below_zero_has_no_sign() -> None:
    assert words.power(-0.001) == "n^0.00"
    assert words.bounds(-0.004, 0.02) == "[0.00, 0.02]"


def test_experiments_without_a_subject_come_last_under_their_id() -> None:
    rng = random.Random(1)
    found = words.subjects(summaries.summary(summaries.series(rng, "new.one"), summaries.series(rng)))
    assert [subject.id for subject, _ in found] == ["square.mutex", "new.one"]
    assert found[1][0].title == "new.one"


@pytest.mark.parametrize("experiment", catalogue().values(), ids=lambda e: e.id)
def test_every_subject_of_the_catalogue_can_be_shown(experiment) -> None:  # type: ignore[no-untyped-def]
    subject = experiment.subject
    assert subject.schedule in {"", "start", "pass"}
    assert all(words.reference(r) for r in subject.references)
    assert bool(schedule.svg(subject.schedule, 6, subject.size_name)) == bool(subject.schedule)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (8.1e-6, "s", "8.10 us"),
        (1536, "KiB", "1.50 MiB"),
        (0.98, "share", "98 %"),
        (1.8, "ratio", "x1.80"),
        (20_412.4, "per s", "20,412/s"),
        (0.5, "per s", "0.50/s"),
        (12, "count", "12"),
        (1.5, "count", "1.50"),
        (12_403.2, "count", "12,403"),
        (None, "count", "-"),
        (None, "per s", "-"),
        (None, "s", "-"),
    ],
)
def test_metric_is_told_in_its_unit(value: float | None, unit: Unit, shown: str) -> None:
    assert units.metric(value, unit) == shown

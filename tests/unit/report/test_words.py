"""Numbers, names and sentences of the reports."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
import summaries

from fairlead.lab.catalogue.registry import catalogue
from fairlead.record.summary import Conditions, Fit, Reference, Unit
from fairlead.report.common import names, units, words
from fairlead.report.summary import claims
from fairlead.report.summary.pictures import schedule

pytestmark = pytest.mark.ends


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "-"), (0.0, "0 s"), (0.0407, "40.7 ms"), (0.9994, "999 ms"), (0.9999, "1.00 s"),
        (0.00999999, "10.0 ms"), (71e-6, "71.0 us"), (4.2e-9, "4.20 ns"), (10.99, "11.0 s"),
        (4070.0, "4070 s"),
    ],
)  # fmt: skip
def test_seconds_have_three_digits_and_a_fitting_unit(value: float | None, shown: str) -> None:
    assert units.seconds(value) == shown


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
def test_moment_is_shown_in_utc(text: str, shown: str) -> None:
    assert names.moment(text) == shown


def test_labels_differ_when_version_and_name_are_the_same_and_name_a_build_without_a_gil() -> None:
    rng = random.Random(1)
    twins = [summaries.interpreter(path=f"/opt/{i}/python") for i in range(2)]
    twins += [summaries.interpreter("3.13#2"), summaries.interpreter(build={"debug": True})]
    roster = names.Roster([summaries.series(rng, python=p) for p in twins])
    labels = [who.label for who in roster]
    assert len(set(labels)) == len(labels) == 4
    assert "CPython 3.13.0 (3.13#2)" in labels
    assert "CPython 3.13.0 (3.13) (/opt/1/python)" in labels
    rng = random.Random(1)
    with_gil = summaries.interpreter("3.13t", "3.13.1", free_threaded=True, gil=True)
    roster = names.Roster([summaries.series(rng, python=p) for p in (summaries.PYTHONS[3], with_gil)])
    assert [w.label for w in roster] == [
        "CPython 3.13.1 free-threaded",
        "CPython 3.13.1 free-threaded with GIL",
    ]


def test_fit_cell_and_exponent_are_a_few_words() -> None:
    fit = Fit(exponent=2.05, low=1.98, high=2.11, model="n^2")
    assert words.fit(fit) == "grows as n^2.05 [1.98, 2.11] -> n^2"
    assert words.fit(replace(fit, model="undecided")).endswith("-> undecided")
    assert words.fit(replace(fit, exponent=None)) == "no exponent"
    cell = summaries.series(random.Random(1)).cells[0]
    plain = replace(cell, median=0.344, low=0.3, high=0.433, modes=(0.344,))
    assert words.cell(plain) == "344 ms ± 26 %"
    assert words.cell(replace(plain, low=0.3435, high=0.3445)) == "344 ms ± 0.1 %"
    assert words.cell(replace(plain, modes=(0.19, 4.1))) == "190 ms or 4.10 s"
    assert words.power(-0.001) == "n^0.00"
    assert words.bounds(-0.004, 0.02) == "[0.00, 0.02]"


def test_references_stand_against_the_interval_and_belong_to_variant_and_implementation() -> None:
    published = Reference(label="there", points=((10, 0.1), (100, 1.0), (1000, 1000.0)))
    assert words.reference(published) == "there: n = 10: 100 ms, n = 1000: 1000 s (x10000)"

    def place(*sizes: int) -> str | None:
        return words.reference_place(published, summaries.series(random.Random(1), sizes=sizes))

    assert place(100, 200, 400) == "n^3.00 at n = 100 to 400, steeper than here"
    assert place(10, 20, 40) == "n^1.00 at n = 10 to 40, flatter than here"
    assert place(50, 100, 200) == "n^2.00 at n = 50 to 200, inside the interval"
    assert place(5, 10, 100) == "n^1.00 at n = 10 to 100", "of other sizes than ours"
    assert place(1, 2, 10) is None
    rng = random.Random(1)
    mutex, semaphore, _ = summaries.SUBJECTS
    on = {p["name"]: summaries.series(rng, python=p) for p in summaries.PYTHONS}
    assert [r.label for r in words.references(mutex, on["3.13"])] == ["CPython, 2 cores"]
    assert [r.label for r in words.references(mutex, on["pypy3.11"])] == ["PyPy, 2 cores"]
    assert words.references(semaphore, replace(on["3.13"], variant={"how": "event"})) == ()
    assert len(words.references(semaphore, replace(on["3.13"], variant={"how": "release"}))) == 1


def test_notes_are_two_populations_and_what_the_fit_says() -> None:
    curve = summaries.series(random.Random(1), note="the curve bends")
    odd = replace(curve.cells[3], modes=(0.0625, 4.1))
    assert list(words.notes(replace(curve, cells=(*curve.cells[:3], odd)))) == [
        "n = 400: two populations, 62.5 ms and 4.10 s; the median says little",
        "the curve bends",
    ]
    assert list(words.notes(summaries.series(random.Random(1)))) == []
    rng = random.Random(1)
    found = words.subjects(summaries.summary(summaries.series(rng, "new.one"), summaries.series(rng)))
    assert [subject.id for subject, _ in found] == ["square.mutex", "new.one"]
    assert found[1][0].title == "new.one"


def test_headline_is_the_news_of_the_convoy_or_of_the_first_settled_claim() -> None:
    curve = summaries.series(random.Random(1))
    still, firm = summaries.exponent_claim(curve, verdict="open"), summaries.ratio_claim(curve)
    convoy = summaries.ratio_claim(curve, topic="convoy", text="a request takes longer")
    told = claims.headline(summaries.summary(curve, claims=(still, firm)))
    assert told == "Many threads take longer than few: x42.0"
    told = claims.headline(summaries.summary(curve, claims=(firm, convoy)))
    assert told == "A request takes longer: x42.0"
    assert "Nothing is settled yet" in claims.headline(summaries.summary(curve, claims=(still,)))


@pytest.mark.parametrize(
    ("curves", "part"),
    [
        ((), "holds no sample"),
        ((summaries.skipped("square.mutex"),), "Nothing could be measured"),
        ((summaries.series(random.Random(1)),), "see the tables"),
    ],
)
def test_headline_without_a_claim_names_no_figure(curves: tuple, part: str) -> None:
    assert part in claims.headline(summaries.summary(*curves))


def test_a_busy_machine_is_called_one_and_each_disturbance_is_named() -> None:
    curve = summaries.series(random.Random(1))
    found = Conditions(
        other_load=0.2,
        highest_load=0.5,
        stolen=0.12,
        throttled_s=1.5,
        speed_varied=0.01,
        rejected=2,
        warm_up=("PyPy 3.11.13",),
    )
    assert claims.conditions(summaries.summary(curve, conditions=found)) == (
        "busy: load 20 % (5 % of samples above 50 %), core speed ± 1 %, stolen 12 %, "
        "throttled 1.50 s; 28 samples, 2 rejected; "
        "PyPy 3.11.13: each sample includes the JIT's warm-up"
    )
    assert claims.conditions(summaries.summary(curve)) == "28 samples"


@pytest.mark.parametrize("experiment", catalogue().values(), ids=lambda e: e.id)
def test_every_subject_of_the_catalogue_can_be_shown(experiment) -> None:  # type: ignore[no-untyped-def]
    subject = experiment.subject
    assert subject.schedule in {"", "start", "pass"}
    assert all(words.reference(r) for r in subject.references)
    assert bool(schedule.svg(subject.schedule, 6, subject.size_name)) == bool(subject.schedule)


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (8.1e-6, "s", "8.10 us"), (1536, "KiB", "1.50 MiB"), (0.98, "share", "98 %"),
        (1.8, "ratio", "x1.80"), (2_412.4, "per s", "2,412/s"), (20_412.4, "per s", "20.4 k/s"),
        (49_123_456.0, "per s", "49.1 M/s"), (0.5, "per s", "0.50/s"), (12, "count", "12"),
        (1.5, "count", "1.50"), (12_403.2, "count", "12,403"), (None, "count", "-"), (None, "per s", "-"),
        (None, "s", "-"),
    ],
)  # fmt: skip
def test_metric_is_shown_in_its_unit(value: float | None, unit: Unit, shown: str) -> None:
    assert units.metric(value, unit) == shown


def test_units_stay_with_their_numbers_and_intervals_in_that_of_the_median() -> None:
    bound = units.bound("load 89 % (5 % of samples above 96 %), core speed ± 22 %, 3 cores, 1.5 ms, 2 of 3")
    assert bound.split(" ") == [
        "load", "89\u00a0%", "(5\u00a0%", "of", "samples", "above", "96\u00a0%),", "core", "speed",
        "±\u00a022\u00a0%,", "3\u00a0cores,", "1.5\u00a0ms,", "2", "of", "3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (9.27, 9.6, "[9.27, 9.60]"), (0.0039, 0.012, "[0.0039, 0.012]"), (5.53, 553, "[5.53, 553]"),
        (5.52, 553, "[unknown]"), (0.0, 11971793.0, "[unknown]"), (0.0, 0.0, "[0.00, 0.00]"),
        (None, 1.2, ""), (1.2, None, ""),
    ],
)  # fmt: skip
def test_interval_of_a_ratio_is_unknown_where_its_ends_are_100_times_apart(
    low: float | None, high: float | None, shown: str
) -> None:
    assert units.interval(low, high) == shown


def test_small_ratios_keep_their_digits() -> None:
    assert [units.factor(ratio) for ratio in (0.1, 0.0996, 0.0994, 0.00467, 2.2e-05)] == [
        "x0.10", "x0.10", "x0.099", "x0.0047", "x0.000022",
    ]  # fmt: skip
    assert units.spread(1e-6, 0.2, 0.1) == "± unknown"


@pytest.mark.parametrize(
    ("kind", "low", "high", "verdict", "said"),
    [
        ("ratio", 9.27, 9.60, "settled", "settled"), ("ratio", 3.03, 553, "settled", "rough"),
        ("ratio", 1.2, 2.4, "settled", "settled"), ("ratio", 1.2, 2.5, "settled", "rough"),
        ("ratio", 3.03, 553, "open", "open"), ("ratio", None, None, "open", "open"),
        ("ratio", 3.03, 553, "contradicts the source", "contrary"),
        ("exponent", 1.85, 2.12, "settled", "settled"), ("exponent", 1.6, 2.12, "settled", "rough"),
    ],
)  # fmt: skip
def test_settled_claim_of_unknown_size_is_rough(
    kind: Any, low: float | None, high: float | None, verdict: Any, said: str
) -> None:
    curve = summaries.series(random.Random(1))
    claim = summaries.ratio_claim(curve, kind=kind, low=low, high=high, verdict=verdict)
    assert claims.sign(claim) == said
    wide = claims.ours(replace(claim, low=0.0, high=1e6, value=3.46))
    assert wide == {"ratio": "x3.46 [unknown]", "exponent": "n^3.46 [unknown]"}[kind]

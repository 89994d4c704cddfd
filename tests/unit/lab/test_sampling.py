"""The order and the calibration of a run, by a clock that only the samples move."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable

import pytest
from interpreters import made
from samples import planned, sample

from fairlead.lab.run.plan import PlannedSeries, RunOptions, make_plan
from fairlead.lab.run.questions import questions
from fairlead.lab.run.sampling import AT_MOST, ENOUGH, PlannedSample, SampleOrder
from fairlead.record.sample import SampleStatus

pytestmark = pytest.mark.ends

Cost = Callable[[PlannedSeries, int], float]


def series(
    interpreter: str = "3.13", sizes: tuple[int, ...] = (10, 20, 40), skipped: str | None = None
) -> PlannedSeries:
    return planned(sizes=sizes, interpreter=interpreter, skipped=skipped)


class Drive:
    """Runs an order with made-up costs and statuses, and keeps what happened."""

    def __init__(
        self,
        lines: tuple[PlannedSeries, ...],
        budget_s: float,
        cost: Cost = lambda _series, n: n * n / 10_000,
        status: Callable[[PlannedSeries, int, int], SampleStatus] = lambda _series, _n, _round: "ok",
        noise: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.planned: list[PlannedSample] = []
        self.order = SampleOrder(lines, budget_s, lambda: self.now)
        self.cost = cost
        self.status = status
        self.noise = noise
        self.random = random.Random(1)

    def go(self, at_most: int = 10_000) -> Drive:
        for one in self.order.planned():
            if len(self.planned) == at_most:
                break
            self.planned.append(one)
            if one.round not in one.cell.samples:
                self.take(one)
        return self

    def take(self, taken: PlannedSample) -> None:
        one, n = taken.cell.series, taken.cell.n
        cost = 0.0 if taken.skip else self.cost(one, n)
        self.now += cost
        taken.cell.samples[taken.round] = sample(
            one.experiment, n, cost * math.exp(self.random.gauss(0, self.noise)) or None,
            status="skipped" if taken.skip else self.status(one, n, taken.round),
            reason=taken.skip, elapsed_s=cost,
        )  # fmt: skip

    def seen(self, round_: int) -> list[tuple[str, int]]:
        return [
            (t.cell.series.interpreter, t.cell.n) for t in self.planned if t.round == round_ and not t.skip
        ]

    def skips(self) -> dict[tuple[str, int], str]:
        return {(t.cell.series.interpreter, t.cell.n): t.skip for t in self.planned if t.skip}


def test_order_with_time_enough_are_interleaved_and_alternate_in_direction() -> None:
    drive = Drive((series("a"), series("b")), 1e6).go()
    forward = [(name, n) for n in (10, 20, 40) for name in "ab"]
    assert drive.seen(0) == forward
    assert drive.seen(1) == forward[::-1]
    assert drive.seen(2) == forward
    assert len(drive.planned) == ENOUGH * len(forward), "nothing varies: no interval is left to narrow"


def test_order_of_the_budget_are_kept_and_the_outlook_stays_within() -> None:
    drive = Drive((series("a"), series("b")), 10.0, noise=0.3).go()
    assert 9 < drive.now <= 10
    assert all(len(cell.samples) >= ENOUGH for sizes in drive.order.series for cell in sizes)
    drive = Drive((series("a"), series("b")), 10.0, noise=0.2)
    for one in drive.order.planned():
        to_come, left_s = drive.order.outlook()
        assert 0 <= left_s <= 10.0 - drive.now + 1e-9
        assert one.round == 0 or to_come > 0
        drive.take(one)


def test_order_drops_sizes_that_do_not_fit_and_gives_the_kept_ones_enough() -> None:
    drive = Drive((series(sizes=(10, 100, 1000, 2000)),), 1.0).go()
    assert drive.skips().keys() == {("3.13", 1000), ("3.13", 2000)} | drive.skips().keys() & {("3.13", 100)}
    assert all("--budget" in reason for reason in drive.skips().values())
    assert drive.now <= 1.0
    drive = Drive((series("a", (10, 20, 40, 80, 160)), series("b", (10, 20, 40, 80, 160))), 1.5).go()
    assert drive.skips()
    for sizes in drive.order.series:
        for cell in sizes:
            if cell.samples[0].status == "ok":
                assert len(cell.samples) >= ENOUGH
    small = Drive((series("a", (10, 40)), *(series(f"b{k}", (1, 2)) for k in range(3))), 2.0).go()
    assert ("a", 40) in small.seen(0)


def test_order_what_was_put_off_is_taken_up_when_others_leave_the_time() -> None:
    dear = series("a", (10, 40, 80))
    cheap = tuple(series(f"b{k}", (10, 11, 12, 13, 14)) for k in range(4))
    drive = Drive((dear, *cheap), 8.0).go()
    order = drive.seen(0)
    assert order.index(("a", 80)) > order.index(("b3", 14))
    assert not drive.skips()
    # the first is expected to grow with the square, which speaks for nearly all of the budget, and does not
    drive = Drive((series("3.13"), series("3.14", sizes=(10,))), 107, cost=lambda _series, _n: 1.0).go()
    taken = [planned for planned in drive.planned if planned.cell.series.interpreter == "3.14"]
    assert ENOUGH <= len(taken) <= AT_MOST
    assert drive.now <= 107


def test_order_says_the_time_or_the_budget_that_it_would_take() -> None:
    skips = Drive((series("a", (10, 20, 1000)),), 5.0).go().skips()
    said = rf"{ENOUGH} samples of n=1000 take about [\d.]+ s, more than the budget leaves; try --budget \d+s"
    assert re.fullmatch(said, skips["a", 1000] or "")
    lines = tuple(planned(sizes=(10,), params={"policy": "other", "cores": "all", "k": k}) for k in range(30))
    refused = [planned.skip for planned in Drive(lines, 60, lambda *_: 1.0).go().planned if planned.skip]
    (more,) = {found[1] for text in refused if (found := re.search(r"a --budget of (\d+)s may", text))}
    again = Drive(lines, int(more), lambda *_: 1.0).go()
    assert len(refused) > 10
    assert [planned.skip for planned in again.planned if planned.skip] == []


def models(budget_s: float, *interpreters: str) -> Drive:
    """A quick run of two families whose samples take a second or so, as on a quiet machine."""
    pythons = [made(f"{name}.0", name=name) for name in interpreters]
    options = RunOptions(ids=("models.io", "models.cpu"), mode="quick")
    lines = make_plan(options, pythons, {"affinity": [0, 1]}, None).series
    return Drive(
        lines,
        budget_s,
        cost=lambda one, _n: 1.2 if one.experiment.endswith("-sequential") else 0.6,
        noise=0.1,
    )


def test_budget_is_spent_claim_by_claim_over_all_interpreters() -> None:
    names = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
    drive = models(90.0, *names).go()
    taken = Counter(
        (t.cell.series.experiment, t.cell.series.interpreter) for t in drive.planned if not t.skip
    )
    # main claims come first, and the first of them is settled everywhere before others get a second look
    for way in ("sequential", "async"):
        assert all(taken[f"models.io-{way}", name] >= ENOUGH for name in names)
    assert drive.seen(0)[: 2 * len(names)] == [(name, 10) for name in names for _ in range(2)]
    assert drive.now <= 90.0
    said = drive.order.shortfall() or ""
    assert re.match(
        r"90 s are too few for \d+ of \d+ claims, --budget \d+s would do: fewer than 5 samples of", said
    )
    (more,) = re.findall(r"--budget (\d+)s", said)
    whole = models(float(more), *names).go()
    assert whole.order.shortfall() is None
    assert not whole.skips()


def quiet_s(one: PlannedSeries, n: int) -> float:
    """What a sample of models takes on two quiet cores: one task after another 0.1 s of waiting, or 0.15 s of
    computing, the most that is chosen; and 0.25 s to start an interpreter and a server, 0.1 s for a pool."""
    work, _, way = one.experiment.removeprefix("models.").partition("-")
    pool_s, whole_s = 0.1 * ("p" in way.partition("async-")[2] or "pool" in way), 0.15 * n
    if work in ("io", "blocking"):
        one_by_one = way in ("sequential", "async-one-by-one") or (work, way) == ("blocking", "async")
        calls = n if work == "io" else n // 2
        return 0.25 + pool_s + 0.1 * (calls if one_by_one else 1 + 4 * way.endswith("process-pool"))
    processes = any(word in way for word in ("process", "interpreter", "loops"))
    return 0.25 + pool_s + whole_s / (2 if processes and one.params["cores"] == "all" else 1)


@pytest.mark.parametrize("names", [("3.13",), ("3.11", "3.13", "3.14")])
def test_a_quick_run_of_models_has_enough_samples_of_the_sources_conclusions(names: tuple[str, ...]) -> None:
    pythons = [made(f"{name}.0", name=name) for name in names]
    plan = make_plan(RunOptions(ids=("models",), mode="quick"), pythons, {"affinity": [0, 1]}, None)
    drive = Drive(plan.series, plan.budget_s, cost=quiet_s, noise=0.05).go()
    assert drive.now <= plan.budget_s == 60 * len(names)
    cells = [cell for sizes in drive.order.series for cell in sizes]
    asked = questions(drive.order.series, cells)
    conclusions = {
        ("models.io-sequential", "models.io-async"),
        ("models.io-sequential", "models.io-threads"),
        ("models.cpu-sequential", "models.cpu-process-pool"),
        ("models.cpu-sequential", "models.cpu-threads"),
        ("models.mixed-async", "models.mixed-async-process-pool"),
        ("models.blocking-async", "models.blocking-async-thread-pool"),
    }
    rounds = {
        (sides, question.cells[0].series.interpreter): question.rounds
        for question in asked
        if (sides := tuple(cell.series.experiment for cell in question.cells)) in conclusions
        and question.cells[0].series.params["cores"] == "all"
    }
    assert len(rounds) == len(conclusions) * len(names)
    assert [sides for sides, count in rounds.items() if count < ENOUGH] == []


def test_a_budget_too_small_for_one_claim_is_shared_by_all_interpreters() -> None:
    names = ("3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
    drive = models(30.0, *names).go()
    taken = Counter(t.cell.series.interpreter for t in drive.planned if not t.skip)
    assert taken.keys() == set(names)
    assert max(taken.values()) - min(taken.values()) <= 2, "one round of the claim's two sides"
    assert "30 s are too few for 72 of 72 claims" in (drive.order.shortfall() or "")
    nothing = models(0.0, *names).go()
    assert nothing.now == 0


def test_of_a_claim_all_sides_are_measured_or_none() -> None:
    for budget_s in range(20, 90, 5):
        drive = models(budget_s, "3.12", "3.13").go()
        rounds = Counter(t.cell.series.experiment for t in drive.planned if not t.skip and t.round)
        for one, other in (
            ("models.cpu-process-pool", "models.cpu-sequential"),
            ("models.io-async", "models.io-sequential"),
        ):
            assert not rounds[one] or rounds[other]


def test_order_measures_nothing_of_a_skipped_series_or_without_a_budget() -> None:
    drive = Drive((series("a", skipped="too old"), series("b")), 100.0).go()
    assert drive.skips() == {("a", 10): "too old"}
    assert ("a", 20) not in drive.seen(0)
    drive = Drive((series(),), 0.0).go()
    assert drive.seen(0) == []
    assert "--budget" in drive.skips()[("3.13", 10)]


def test_order_leaves_out_what_fails_and_goes_on_with_what_fails_now_and_then() -> None:
    drive = Drive(
        (series("a"), series("b")),
        100.0,
        status=lambda s, n, _: "timeout" if (s.interpreter, n) == ("a", 20) else "ok",
    ).go()
    assert drive.skips() == {("a", 40): "the size before it, 20, ended as timeout"}
    assert ("a", 20) not in drive.seen(1)
    assert ("a", 10) in drive.seen(1)
    broken = Drive(
        tuple(series(name) for name in "aaab"),
        100.0,
        status=lambda s, *_: "crashed" if s.interpreter == "a" else "ok",
    ).go()
    assert broken.seen(0).count(("a", 10)) == 2
    assert {n for name, n in broken.seen(4)} == {10, 20, 40}
    drive = Drive((series(),), 1e6, status=lambda _s, n, r: "crashed" if (n, r) == (20, 3) else "ok").go()
    assert drive.seen(ENOUGH - 1)[::-1] == [("3.13", 40), ("3.13", 20), ("3.13", 10)]
    drive = Drive((series(),), 100.0, status=lambda *_: "skipped").go()
    assert drive.seen(0) == [("3.13", 10)]
    assert drive.skips().keys() == {("3.13", 20), ("3.13", 40)}
    assert drive.seen(1) == []


def test_order_continued_after_any_sample_repeat_nothing_and_end_the_same() -> None:
    lines = (series("a", (10, 20, 40, 400)), series("b"))
    whole = Drive(lines, 3.0).go()
    for cut in range(len(whole.planned)):
        first = Drive(lines, 3.0).go(at_most=cut)
        second = Drive(lines, 3.0)
        second.now = first.now
        for sizes, other in zip(first.order.series, second.order.series, strict=True):
            for before, cell in zip(sizes, other, strict=True):
                cell.samples.update(before.samples)
        taken = first.now
        second.go()
        assert second.now >= taken
        measured = {(t.cell.series.interpreter, t.cell.n, t.round) for t in second.planned}
        assert {(t.cell.series.interpreter, t.cell.n, t.round) for t in first.planned} <= measured
        assert second.now <= 3.0

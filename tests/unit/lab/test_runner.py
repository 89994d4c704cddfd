"""The runner with a made-up measurement, clock and machine: retries, resumption, stopping."""

from __future__ import annotations

import os
import re
import signal
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from interpreters import PYTHON
from programs import living
from samples import planned, sample

from fairlead.errors import OutputError, RecordError, RunInterruptedError, UsageError
from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.isolation.other_load import Meter, Reading
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import runner
from fairlead.lab.run.plan import Plan
from fairlead.lab.run.runner import RunProgress, RunTotals
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.results import read_results
from fairlead.record.sample import Sample

pytestmark = pytest.mark.ends

ENVIRONMENT = {"hostname": "here", "affinity": [0, 1], "cores": 2, "load": 0.5}


SAYS = {name: value for name, value in PYTHON.as_record().items() if name not in ("name", "path")}


def continued(directory: Path, environment: dict[str, Any], says: dict[str, Any] = SAYS) -> Plan:
    with Stop() as stop:
        return runner.continued(directory, environment, stop, lambda _path, _stop: says)


class Bench:
    """A machine whose time passes only while it measures, and whose noise is decided by ``foreign``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 0.0
        self.measured: list[int] = []
        self.foreign: Callable[[int], float] = lambda _number: 0.0
        self.noise_s = 0.0
        self.at: dict[int, Callable[[], object]] = {}
        self.told: list[RunProgress] = []
        self.plan = Plan(
            run="0123",
            created="2026-01-01T00:00:00+00:00",
            budget_s=60.0,
            interpreters=(PYTHON,),
            environment=ENVIRONMENT,
            series=(planned(params={"policy": "other", "cores": "one"}),),
        )

    def read(self, cpus: frozenset[int]) -> Reading:
        """Idle throughout, apart from the noise so far."""
        return Reading(self.now, self.now * len(cpus) - self.noise_s, 0.0)

    def measure(
        self, cell: PlannedCell, interpreter: Interpreter, environment: dict[str, Any], mark: str, stop: Stop
    ) -> Sample | None:
        number = len(self.measured)
        assert mark.startswith((self.plan.run, *self.plan.later))
        self.at.get(number, lambda: None)()
        if stop.signum is not None:
            return None
        self.measured.append(cell.n)
        self.now += 1.0
        self.noise_s += self.foreign(number) * len(os.sched_getaffinity(0))
        return sample(
            cell.series.experiment, cell.n, 0.1 + 0.01 * (7 * number % 11), elapsed_s=1.0,
            params={"n": cell.n, **cell.series.params}, interpreter=interpreter.as_record(),
            environment=environment, details={"number": number},
        )  # fmt: skip

    def run(self) -> RunTotals:
        meter = Meter(self.read, lambda: 0.005)
        meter.wait_for_quiet = lambda *_: None  # type: ignore[method-assign]
        with Stop() as stop:
            return runner.run(
                self.plan,
                self.directory,
                stop=stop,
                report=self.told.append,
                measure=self.measure,
                meter=meter,
                clock=lambda: self.now,
            )

    def samples(self) -> tuple[Sample, ...]:
        return read_results(self.directory).samples


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path / "run")
    runner.begin(made.plan, made.directory)
    yield made
    keys = [(s.run, str(s.params), s.round, s.status) for s in made.samples()]
    assert len(keys) == len(set(keys)), "a sample was taken twice"


def test_run_quiet_machine_keeps_to_the_budget_and_records_everything(bench: Bench) -> None:
    tally = bench.run()
    assert tally.samples == len(bench.samples()) == len(bench.measured) == 60
    assert {s.environment["policy"] for s in bench.samples()} == {"other"}
    assert {tuple(s.environment["affinity"]) for s in bench.samples()} == {(0,)}
    assert {s.foreign_share for s in bench.samples()} == {0.0}
    assert bench.told[-1].left_s <= 1.0


@pytest.mark.parametrize(
    ("noise", "attempt", "number"),
    [({3: 0.5, 4: 0.2, 5: 0.3}, 2, 3), ({3: 0.5, 4: 0.6}, 2, 5), ({3: 0.5}, 1, 4)],
    ids=["never quiet", "at last", "at once"],
)
def test_run_noisy_sample_is_tried_again_and_replaced_by_a_quiet_one_alone(
    bench: Bench, noise: dict[int, float], attempt: int, number: int
) -> None:
    """The least noisy of the noisy ones would be the outcome of a probe that leaves others least."""
    bench.foreign = lambda number: noise.get(number, 0.0)
    bench.run()
    (kept,) = [s for s in bench.samples() if s.attempt]
    share = pytest.approx(noise.get(number, 0.0))
    assert (kept.details["number"], kept.attempt, kept.foreign_share) == (number, attempt, share)


def test_run_machine_that_is_never_quiet_spends_a_fifth_of_the_budget_on_trying_again(bench: Bench) -> None:
    bench.foreign = lambda _number: 0.9
    bench.run()
    samples = bench.samples()
    assert 10 <= sum(s.attempt for s in samples) <= 12
    assert all(s.foreign_share == pytest.approx(0.9) for s in samples)
    assert bench.now <= 60


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_stopped_and_continued_loses_and_repeats_nothing(bench: Bench, number: int) -> None:
    bench.at[7] = lambda: os.kill(os.getpid(), number)
    with pytest.raises(RunInterruptedError, match=r"stopped: 7 samples kept in .*--resume --out") as caught:
        bench.run()
    assert caught.value.signum == number
    before = bench.samples()
    bench.at.clear()
    bench.plan = continued(bench.directory, ENVIRONMENT)
    tally = bench.run()
    assert bench.samples()[:7] == before
    assert tally.samples == 60


def test_run_stopped_while_trying_again_keeps_the_noisy_sample(bench: Bench) -> None:
    bench.foreign = lambda number: 0.5 if number == 2 else 0.0
    bench.at[3] = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(RunInterruptedError, match="3 samples kept"):
        bench.run()
    assert bench.samples()[-1].foreign_share == pytest.approx(0.5)


def test_run_finished_and_continued_measures_nothing_more_but_with_a_larger_budget(bench: Bench) -> None:
    bench.plan = replace(bench.plan, budget_s=20.0)
    bench.run()
    assert len(bench.samples()) == 20
    bench.plan = replace(bench.plan, budget_s=30.0)
    bench.run()
    assert len(bench.samples()) == 30
    bench.run()
    bench.measured.clear()
    assert bench.run().samples == 30
    assert bench.measured == []


def test_run_continued_with_a_larger_budget_measures_sizes_that_did_not_fit(bench: Bench) -> None:
    bench.plan = replace(bench.plan, budget_s=4.0)
    bench.run()
    (dropped,) = [s for s in bench.samples() if s.status == "skipped"]
    assert dropped.params["n"] == 20
    before = bench.samples()
    assert bench.run().samples == len(before) - 1, "what was skipped is no sample"
    assert bench.samples() == before
    bench.plan = replace(bench.plan, budget_s=60.0)
    bench.run()
    assert {s.params["n"] for s in bench.samples() if s.status == "ok"} == {10, 20}
    (series,) = summarise(bench.samples()).series
    assert series.failures == ()


def test_run_series_that_cannot_run_is_recorded_once_with_its_reason(bench: Bench) -> None:
    (one,) = bench.plan.series
    bench.plan = replace(bench.plan, series=(replace(one, skipped="refused here"),))
    bench.run()
    assert bench.run().samples == 0
    (sample,) = bench.samples()
    assert (sample.status, sample.reason, "n" in sample.params) == ("skipped", "refused here", False)


def test_runs_follow_one_another_each_with_its_own_budget_and_name(bench: Bench) -> None:
    bench.plan = replace(bench.plan, budget_s=20.0, later=("4567", "89ab"))
    bench.plan.save(bench.directory)
    assert bench.run().samples == 60
    assert [s.run for s in bench.samples()] == [name for name in ("0123", "4567", "89ab") for _ in range(20)]
    assert [p.said for p in bench.told if p.said.startswith("run ")] == [f"run {k} of 3" for k in (1, 2, 3)]


def test_runs_stopped_in_the_second_are_continued_there(bench: Bench) -> None:
    bench.plan = replace(bench.plan, budget_s=20.0, later=("4567",))
    bench.plan.save(bench.directory)
    bench.at[30] = lambda: os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(RunInterruptedError, match="30 samples kept"):
        bench.run()
    bench.at.clear()
    bench.plan = continued(bench.directory, ENVIRONMENT)
    assert bench.run().samples == 40
    assert Counter(s.run for s in bench.samples()) == {"0123": 20, "4567": 20}


def test_run_that_is_continued_says_what_it_had_left_and_when_that_is_too_little(bench: Bench) -> None:
    bench.plan = replace(bench.plan, budget_s=20.0)
    bench.run()
    assert [p.said for p in bench.told if p.said] == []
    bench.run()
    used, nothing = [p.said for p in bench.told if p.said]
    assert used == "20 s of the budget of 20 s were used, 0 s are left"
    assert nothing == "nothing was measured: 0 s do not suffice; give a larger --budget"
    bench.told.clear()
    bench.plan = replace(bench.plan, budget_s=30.0)
    bench.run()
    assert [p.said for p in bench.told if p.said] == ["20 s of the budget of 30 s were used, 10 s are left"]


def test_run_says_what_the_budget_leaves_open_before_it_goes_on(bench: Bench) -> None:
    (one,) = bench.plan.series
    others = [replace(one, params=one.params | {"work": work}) for work in ("sleep0", "yield", "spin")]
    bench.plan = replace(bench.plan, budget_s=14.0, series=tuple(others))
    bench.run()
    (said,) = [index for index, p in enumerate(bench.told) if p.said]
    assert re.match(r"in 14 s \d of 3 ", bench.told[said].said)
    assert all(p.round == 0 for p in bench.told[:said])
    assert all(p.round > 0 for p in bench.told[said + 1 :])


def test_run_into_a_directory_of_another_run_is_refused(bench: Bench) -> None:
    def intrude() -> None:
        with pytest.raises(OutputError, match="another run"):
            bench.run()

    bench.at[1] = intrude
    assert bench.run().samples == 60
    bench.run()
    with pytest.raises(UsageError, match="--resume"):
        runner.begin(bench.plan, bench.directory)


def test_continued_on_another_machine_or_with_another_interpreter_is_refused(bench: Bench) -> None:
    bench.run()
    with pytest.raises(UsageError, match="begun with hostname here, here it is there"):
        continued(bench.directory, {**ENVIRONMENT, "hostname": "there"})
    assert continued(bench.directory, {**ENVIRONMENT, "load": 9.0}) == bench.plan
    bench.run()
    with pytest.raises(UsageError, match="/opt/python has changed since"):
        continued(bench.directory, ENVIRONMENT, {**SAYS, "version": "3.13.1"})


def test_run_beside_busy_processes_has_them_for_each_sample_and_when_it_is_continued(bench: Bench) -> None:
    series = replace(bench.plan.series[0], cpus=tuple(os.sched_getaffinity(0)))
    bench.plan = replace(
        bench.plan, run=uuid.uuid4().hex, environment={**ENVIRONMENT, "beside": 2}, series=(series,)
    )
    bench.plan.save(bench.directory)
    seen: list[int] = []

    def look() -> None:
        seen.append(len(living(bench.plan.run)))

    bench.at = dict.fromkeys(range(3), look)
    bench.at[3] = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(RunInterruptedError):
        bench.run()
    assert seen == [2, 2, 2]
    assert living(bench.plan.run) == []
    assert continued(bench.directory, ENVIRONMENT) == bench.plan
    (cell, *_) = read_results(bench.directory).samples
    assert cell.environment["beside"] == 2


def test_continued_with_a_damaged_plan_says_so(tmp_path: Path) -> None:
    for text in ("{", "[]", '{"schema": 1}', '{"schema": 99}', '{"schema": "1"}'):
        (tmp_path / "plan.json").write_text(text)
        with pytest.raises(RecordError, match="newer version" if "99" in text else "damaged"):
            continued(tmp_path, ENVIRONMENT)

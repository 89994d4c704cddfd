"""What is measured before a run: how large a task has to be here, and sizes that do not fit the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from interpreters import PYTHON, made
from samples import sample

from fairlead.errors import UsageError
from fairlead.lab.catalogue.interpreters import Interpreter, running
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.environment import environment
from fairlead.lab.run.measure import measure as really
from fairlead.lab.run.pilots import calibrated, check_sizes
from fairlead.lab.run.plan import Plan, RunOptions, make_plan
from fairlead.lab.run.sampling import PlannedCell
from fairlead.record.sample import Sample, SampleStatus

pytestmark = pytest.mark.ends


def pilots(
    experiment: str,
    size: int,
    budget_s: float,
    takes_s: Callable[[int], float],
    fails: Callable[[int], bool] = lambda _n: False,
) -> list[int]:
    """The sizes of the pilots that are measured, where a sample takes ``takes_s(n)``."""
    asked = []

    def measure(cell: PlannedCell, *_: Any) -> Sample:
        asked.append(cell.n)
        took_s = takes_s(cell.n)
        late = took_s > cell.series.timeout_s
        status: SampleStatus = "failed" if fails(cell.n) else "timeout" if late else "ok"
        return sample(
            cell.series.experiment, cell.n, status=status, elapsed_s=min(took_s, cell.series.timeout_s),
            reason=None if status == "ok" else "can't start new thread; to see for yourself: python probe.py",
        )  # fmt: skip

    options = RunOptions(ids=(experiment,), mode="standard", sizes=(size,), budget_s=budget_s)
    plan = make_plan(options, [PYTHON], {"affinity": [0, 1]}, None)
    with Stop() as stop:
        check_sizes(plan, measure, stop)
    return asked


@pytest.mark.parametrize("experiment", ["gil.convoy", "gil.thread-cost", "models.io-threads", "square.mutex"])
def test_a_size_whose_estimate_is_beyond_the_budget_is_refused(experiment: str) -> None:
    with pytest.raises(UsageError, match=r"n=1000000 takes \d+ s or more \(n=\d+ took [\d.]+ s\)"):
        pilots(experiment, 1_000_000, 5.0, lambda n: 1.0 + 0.001 * n)


def test_pilots_are_no_more_than_it_takes_to_know() -> None:
    sizes = pilots("gil.convoy", 100, 5.0, lambda _n: 1.2)
    assert sizes == [1, 8, 64], "n=64 settles it: 1.2 s would be 1.9 s if all of it grew with n"
    assert pilots("gil.convoy", 100, 300.0, lambda _n: 0.3) == [1]
    assert pilots("gil.convoy", 4, 1.0, lambda _n: 9.0) == []
    assert pilots("gil.convoy", 1_000_000, 5.0, lambda _n: 1.2, lambda _n: True) == [1]


def test_refusals_say_what_would_do() -> None:
    with pytest.raises(UsageError, match=r"takes \d+ s or more \(n=64 took 5 s\), and is ended after 60 s"):
        pilots("gil.convoy", 1_000_000, 5.0, lambda n: 1.2 if n < 64 else 1e9)
    with pytest.raises(UsageError) as refused:
        pilots("gil.convoy", 1_000_000, 5.0, lambda n: 1.0 + 0.001 * n)
    assert "--budget" not in str(refused.value)
    with pytest.raises(UsageError, match=r"or --budget 4\ds or more"):
        pilots("gil.convoy", 20_000, 5.0, lambda n: 1.0 + 0.001 * n)
    with pytest.raises(UsageError, match=r"nor with n=64 \(can't start new thread\): give smaller --sizes"):
        pilots("gil.convoy", 1_000_000, 5.0, lambda _n: 1.2, lambda n: n >= 64)
    with pytest.raises(UsageError, match=r"not done within 3 s with n=1 either: give a larger --budget"):
        pilots("gil.convoy", 1_000_000, 3.0, lambda _n: 3.5)


def sized(*ids: str, each_s: float, given: set[str] = frozenset()) -> tuple[Plan, list[str]]:  # type: ignore[assignment]
    """The plan where a unit of work takes so long, beside 0.03 s that any sample takes; what was measured."""
    asked = []

    def measure(cell: PlannedCell, interpreter: Interpreter, *_: Any) -> Sample:
        asked.append(f"{cell.series.experiment} on {interpreter.name}")
        work = next(cell.series.params[name] for name in ("repeat", "steps") if name in cell.series.params)
        used_s = 0.03 + cell.n * work * each_s
        return sample(
            cell.series.experiment, cell.n, used_s, user_s=used_s - 0.01, sys_s=0.01, elapsed_s=used_s
        )

    options = RunOptions(ids=ids, mode="full")
    plan = make_plan(options, [OLD, PYTHON, NEW], {"affinity": [0, 1]}, None)
    with Stop() as stop:
        return calibrated(plan, measure, stop, given), asked


OLD, NEW = made("2.7.18"), made("3.14.0")


def work(plan: Plan) -> dict[str, set[Any]]:
    found: dict[str, set[Any]] = {}
    for one in plan.series:
        if not one.skipped:
            found.setdefault(one.experiment, set()).update(
                one.params[name] for name in ("repeat", "steps") if name in one.params
            )
    return found


def test_tasks_take_a_tenth_of_a_second_or_half_as_much_again_on_any_machine() -> None:
    for per_task_s in (0.0005, 0.00372, 0.0099, 0.03):
        plan, asked = sized("models.cpu", "models.mixed", each_s=per_task_s)
        (repeat,) = set.union(*work(plan).values())
        assert 0.1 <= repeat * per_task_s < 0.15
        assert set(asked) == {"models.cpu-sequential on 3.13"}, "the first that can, for all others"
    plan, _ = sized("party.nbody", "party.nbody-unshared", each_s=4e-6)
    assert work(plan) == {"party.nbody": {32000}, "party.nbody-unshared": {32000}}


def test_work_that_was_given_or_needs_no_measure_stays_as_it_is() -> None:
    plan, asked = sized("models.cpu", each_s=0.001, given={"repeat"})
    assert (work(plan)["models.cpu-threads"], asked) == ({32}, [])
    assert sized("models.io", "party.fib", each_s=0.001)[1] == []


def test_work_is_sized_on_a_real_interpreter() -> None:
    options = RunOptions(ids=("models.cpu-threads",), mode="quick")
    plan = make_plan(options, [running()], environment(), None)
    with Stop() as stop:
        found = calibrated(plan, really, stop, set())
        (series,) = found.series
        assert {one.params["repeat"] for one in calibrated(found, really, stop, {"repeat"}).series} == {
            series.params["repeat"]
        }
        cell = PlannedCell(series, series.sizes[0])
        taken = really(cell, plan.interpreters[0], plan.environment, plan.run, stop)
    assert taken is not None
    assert taken.status == "ok"
    assert (taken.user_s or 0) + (taken.sys_s or 0) > 0.5

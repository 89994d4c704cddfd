"""Named sizes that do not fit the budget: refused from pilots whose time is made up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from interpreters import PYTHON
from samples import sample

from fairlead.errors import UsageError
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run.estimate import check_sizes
from fairlead.lab.run.plan import RunOptions, make_plan
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

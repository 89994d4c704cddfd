"""Two runs side by side against a known truth: how often a cell is called what it is, and how wide intervals
are."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields

import numpy as np
import pytest
from examples import first

from fairlead.lab.analysis.compare import MARGINS, compare
from fairlead.measure.ratio import contrast
from fairlead.record.comparison import CellChange, Comparison
from fairlead.record.summary import Cell, Conditions, Series, Subject, Summary

pytestmark = pytest.mark.once

SEEDS = 100
CELLS = 25
"""As a default run has them."""
SAMPLES = 5
SPREADS = (0.02, 0.05, 0.12)


def run(
    random: np.random.Generator,
    factors: list[float],
    spread: float,
    *,
    samples: int = SAMPLES,
    speed: float = 1.0,
    repeats: int = 1,
    between: float = 0.0,
) -> Summary:
    """So many runs of so many cells; each time is ``speed`` times as long, as those of a slower machine, and
    each cell has a level of its own in each run, with ``between`` as standard deviation."""
    unknown = dict.fromkeys(field.name for field in fields(Cell) if field.default is MISSING)
    series, subjects = [], []
    for number, factor in enumerate(factors):
        levels = np.exp(random.normal(0, between, (repeats, 1)))
        values = factor * speed * levels * random.lognormal(0, spread, (repeats, samples))
        where = tuple((run, round_) for run in range(repeats) for round_ in range(samples))
        cell = Cell(**{**unknown, "n": 10, "modes": (), "values": tuple(values.ravel()), "rounds": where})
        name = f"made.up-{number}"
        subjects.append(Subject(id=name, title="", question="", explanation="", size_name=""))
        series.append(
            Series(experiment=name, variant={}, label="", interpreter={"name": "3.13"}, cells=(cell,))
        )
    return Summary(
        subjects=tuple(subjects), series=tuple(series), environment={"hostname": "here"}, environments=1,
        samples=samples * len(factors), started=None, finished=None,
        conditions=Conditions(spin_s=0.002 * speed * float(random.lognormal(0, 0.01))),
    )  # fmt: skip


def compared(seed: int, factors: list[float], spread: float, speed: float = 1.0, **more: float) -> Comparison:
    random = np.random.default_rng((seed, round(100 * spread), round(1000 * factors[0])))
    base = run(random, [1.0] * len(factors), spread, **more)  # type: ignore[arg-type]
    return compare([("one", base), ("other", run(random, factors, spread, speed=speed, **more))])  # type: ignore[arg-type]


def cells(found: Comparison) -> list[CellChange]:
    return [cell for series in found.series for cell in series.cells]


@pytest.mark.parametrize(
    ("between", "samples", "repeats"),
    first(
        [(0.0, 5, 1), (0.05, 20, 1), (0.02, 20, 5)],
        [(between, n, runs) for between in (0.0, 0.02, 0.05) for n in (5, 20) for runs in (1, 2, 3, 5)],
    ),
)
def test_runs_of_the_same_thing_have_a_changed_cell_in_five_of_100_comparisons_at_most(
    between: float, samples: int, repeats: int
) -> None:
    def differs(seed: int) -> bool:
        more = {"between": between, "samples": samples, "repeats": repeats}
        found = cells(compared(seed, [1.0] * CELLS, 0.05, **more))
        return any(cell.change in ("faster", "slower") for cell in found)

    changed = sum(map(differs, range(SEEDS)))
    # 5 are expected at most; 11 is where chance alone ends, at three standard deviations
    assert changed <= 11


@pytest.mark.parametrize(("true", "spread"), first([(1.5, 0.05), (0.5, 0.12)], [(2.0, 0.12), (20.0, 0.25)]))
def test_a_change_among_a_default_runs_cells_is_called_rightly_in_95_of_100(
    true: float, spread: float
) -> None:
    word = "slower" if true > 1 else "faster"
    found = [cells(compared(seed, [true] + [1.0] * (CELLS - 1), spread))[0].change for seed in range(SEEDS)]
    assert found.count(word) >= 95
    assert set(found) <= {word, "undecided"}


@pytest.mark.parametrize(("spread", "margin"), [(0.02, 1.1), (0.05, 1.25), (0.12, 1.5)])
def test_equal_cells_are_within_the_margin_that_their_spread_allows(spread: float, margin: float) -> None:
    found = [cell for seed in range(20) for cell in cells(compared(seed, [1.0] * CELLS, spread, repeats=3))]
    right = sum(cell.within is not None and cell.within <= margin for cell in found)
    assert right / len(found) >= 0.95


@pytest.mark.parametrize(
    ("margin", "spread"),
    first(
        list(zip(MARGINS, (0.02, 0.05, 0.12), strict=False)),
        [(m, s) for m in MARGINS for s in (0.02, 0.05, 0.12)],
    ),
)
def test_a_cell_at_a_margin_is_called_within_it_in_one_of_forty_at_most(margin: float, spread: float) -> None:
    found = [
        cell for seed in range(20) for cell in cells(compared(seed, [margin] * CELLS, spread, repeats=3))
    ]
    wrong = sum(cell.within is not None and cell.within <= margin for cell in found)
    # 2.5 % and three standard deviations of chance
    assert wrong / len(found) <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / len(found))


@pytest.mark.parametrize("speed", [1.15, 0.85])
def test_a_machine_that_ran_slower_or_faster_changes_no_cell(speed: float) -> None:
    found = [compared(seed, [1.0] * CELLS, 0.01, speed) for seed in range(20)]
    changed = sum(cell.change in ("faster", "slower") for one in found for cell in cells(one))
    assert changed / (20 * CELLS) <= 0.05
    for one in found:
        (whole,) = one.wholes
        assert whole.speed == pytest.approx(speed, rel=0.05)
        assert whole.ratio == pytest.approx(speed, rel=0.05)
    assert cells(compared(0, [2.0], 0.01, 1.15))[0].change == "slower", "by more than the machine"


@pytest.mark.parametrize(
    ("base", "other", "second"),
    first(
        [(3, 3, 0.25), (5, 12, 0.05)],
        [(*sizes, spread) for sizes in ((3, 3), (5, 5), (5, 12), (60, 6)) for spread in (0.05, 0.25)],
    ),
)
def test_the_interval_holds_the_true_ratio_in_95_of_100_cases(base: int, other: int, second: float) -> None:
    random = np.random.default_rng((base, other, round(100 * second)))
    trials = held = 0
    for _ in range(1500):
        found = contrast(
            random.lognormal(0, 0.05, base).tolist(), (2 * random.lognormal(0, second, other)).tolist()
        )
        assert found is not None
        trials += 1
        held += found.low <= 2.0 <= found.high
        assert (found.p <= 0.05) == (not found.low <= 1.0 <= found.high)
    # three standard deviations of chance are 1.7 %; rounding the degrees of freedom down makes it wider
    assert 0.933 <= held / trials <= 0.99


@pytest.mark.long
def test_the_whole_of_two_runs_holds_the_true_ratio_in_95_of_100_cases() -> None:
    held = 0
    for seed in range(SEEDS):
        (whole,) = compared(seed, [1.2] * CELLS, 0.12).wholes
        held += whole.low <= 1.2 <= whole.high
    assert held >= 88

"""How often the lab is right: claims of known truth through its plan, order, questions, summary and report.

    python tools/lab_truth.py              4,000 claims and 300 comparisons, in some five minutes
    python tools/lab_truth.py modes rare   some of the scenarios
    python tools/lab_truth.py --readings 4 fewer readings of each

Nothing is measured: the times are drawn, and the clock is what they add up to. So this is a tool that judges
our code and no benchmark, and says the same on every machine. For each scenario it prints what share of the
printed intervals holds the truth, how many claims are settled, and how many of these wrongly. It ends with
exit status 1 where a share lies outside of ``COVERED``, or more than one settled claim in a hundred is wrong,
by more than chance explains. tests/property/test_claims_truth.py tries a part of it.

What an interval has to hold: of one run what that run was like, of several what runs are like. Of a convoy
that is fast now and then there is no such thing: a claim has to show two modes and no interval, and its
verdict has to be true of both; or it says that a mode so rare may be unseen, and is held against the other.
Else its interval has to hold the mean.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fairlead.lab.analysis.compare import compare
from fairlead.lab.analysis.summarise import summarise
from fairlead.lab.catalogue import registry
from fairlead.lab.catalogue.declared import Declared
from fairlead.lab.catalogue.interpreters import Interpreter
from fairlead.lab.run.plan import RunOptions, make_plan
from fairlead.lab.run.sampling import PlannedCell, SampleOrder
from fairlead.record.sample import Sample
from fairlead.record.summary import Summary
from fairlead.report.summary import json as as_json
from fairlead.report.summary import text as as_text

COVERED = (0.93, 0.995)
"""The share of intervals that holds the truth, of those at 95 and at 99 %."""
WRONG = 0.01
"""The share of settled claims that may be wrong."""
READINGS = 60
EXPERIMENTS = ("gil.convoy", "gil.countdown", "square.mutex", "cured.mutex")
NOISE = 0.10
FAST = math.log(60)
"""What the fast mode of a convoy is faster by."""

PYTHON = Interpreter(
    name="3.13", path="/made/up", executable="/made/up", implementation="CPython", version="3.13.0",
    free_threaded=False, gil=True, jit=False, build={},
)  # fmt: skip
HERE = {"hostname": "here", "cores": 2, "affinity": [0, 1], "policy": "other", "quota": None}


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What the times of a reading are like; a reading is what one report is made of."""

    runs: int = 1
    budget_s: float = 60.0
    noise: float = NOISE
    between: float = 0.0
    """Standard deviation of the level that a cell has in each run."""
    outliers: float = 0.0
    """The share of samples that take up to three times as long."""
    drift: float = 0.0
    """Standard deviation of a step of the machine's speed from one sample to the next."""
    fast: float = 0.0
    """The share of convoys that are fast."""
    foreign: float = 0.01
    """The share of the time that others take."""
    fixed_s: float = 0.0
    """What the squares take besides."""


SCENARIOS = {
    "lognormal": Scenario(),
    "wide": Scenario(noise=0.3),
    "outliers": Scenario(outliers=0.1),
    "drift": Scenario(drift=0.1),
    "few": Scenario(budget_s=25.0),
    "modes": Scenario(fast=0.3),
    "rare": Scenario(fast=0.15),
    "one run": Scenario(between=0.05),
    "two runs": Scenario(between=0.05, runs=2, budget_s=30.0),
    "five runs": Scenario(between=0.05, runs=5, budget_s=25.0),
    "fixed cost": Scenario(fixed_s=0.02),
    "load": Scenario(foreign=0.3),
}


@dataclass(frozen=True)
class World:
    """The truth behind a reading: the median of each cell, as a logarithm."""

    scenario: Scenario
    ratios: Mapping[str, float]
    power: float

    def log(self, experiment: str, params: Mapping[str, Any], n: int) -> float:
        match experiment:
            case "gil.convoy":
                return math.log(50e-6) + self._convoy(params)
            case "gil.countdown":
                return math.log(0.08) + (self.ratios["threads that compute"] if n == 1 else 0)
            case "square.mutex":
                return math.log(self.scenario.fixed_s + 0.01 * (n / 100) ** self.power)
            case _:
                return math.log(0.01 * 1.6**self.power) - self.ratios["Combiner"] + math.log(n / 160)

    def _convoy(self, params: Mapping[str, Any]) -> float:
        convoy = self.ratios["convoy"]
        if params["beside"] == "processes":
            return convoy - self.ratios["convoy vs a process"]
        if params["beside"] == "threads" and params["scheduler"] == "interactive":
            return convoy - self.ratios["convoy, GIL scheduled"]
        if params["beside"] == "threads" and params["interval_ms"] == 0.5:
            return convoy - self.ratios["convoy, switch 0.5 ms"]
        return convoy if params["beside"] == "threads" else 0.0

    def bimodal(self, experiment: str, params: Mapping[str, Any]) -> bool:
        return (
            self.scenario.fast > 0
            and experiment == "gil.convoy"
            and params["beside"] == "threads"
            and params["scheduler"] == "off"
            and params["interval_ms"] == 5
        )


def world(scenario: Scenario, random: np.random.Generator) -> World:
    """Ratios from far below the threshold to far above it, one in six at the threshold itself."""
    ratios = {}
    for name in ("convoy", "convoy vs a process", "convoy, GIL scheduled", "convoy, switch 0.5 ms",
                 "threads that compute", "Combiner"):  # fmt: skip
        ratios[name] = math.log(float(random.choice([0.8, 1.0, 1.1, 1.3, 2.0, 60.0])))
    return World(scenario, ratios, 2.0 if scenario.fixed_s else float(random.choice([1.0, 1.5, 2.0])))


@dataclass
class Reading:
    """A report, and what each of its figures should be."""

    world: World
    summary: Summary
    levels: list[dict[tuple[str, str, int], float]]
    """Of each run: by how much its cells are off the truth, as a logarithm."""

    def true(
        self, experiment: str, params: Mapping[str, Any], n: int, runs: Sequence[int] | None = None
    ) -> float:
        """The mean logarithm of a cell: in its run if there is one, else over all runs that might be."""
        runs = range(len(self.levels)) if runs is None else runs
        whole = self.world.log(experiment, params, n)
        if self.world.bimodal(experiment, params):
            whole -= self.world.scenario.fast * FAST
        return whole + (self.levels[runs[0]].get(key(experiment, params, n), 0.0) if len(runs) == 1 else 0.0)


def key(experiment: str, params: Mapping[str, Any], n: int) -> tuple[str, str, int]:
    return experiment, json.dumps({k: v for k, v in params.items() if k != "n"}, sort_keys=True), n


def read(scenario: Scenario, true: World, random: np.random.Generator) -> Reading:
    """As many runs as a scenario has, measured by the lab's own order, and what they say together."""
    options = RunOptions(ids=EXPERIMENTS, mode="quick", budget_s=scenario.budget_s)
    samples: list[Sample] = []
    levels = []
    for _ in range(scenario.runs):
        plan = make_plan(options, [PYTHON], HERE, None)
        own: dict[tuple[str, str, int], float] = {}
        speeds: list[float] = []
        now, speed = 0.0, 0.0
        order = SampleOrder(plan.series, scenario.budget_s, lambda: now)  # noqa: B023  # used in this turn only
        for planned in order.planned():
            cell = planned.cell
            where = key(cell.series.experiment, cell.series.params, cell.n)
            level = own.setdefault(where, float(random.normal(0, scenario.between)))
            speed = 0.9 * speed + float(random.normal(0, scenario.drift)) if scenario.drift else 0.0
            speeds.append(speed)
            made = draw(cell, true, level + speed, planned.skip, random)
            made = replace(
                made, run=plan.run, round=planned.round, started=f"2026-11-26T00:00:00.{len(samples):06}"
            )
            now += made.elapsed_s or 0.0
            cell.samples[planned.round] = made
            samples.append(made)
        levels.append({where: level + sum(speeds) / len(speeds) for where, level in own.items()})
    return Reading(true, summarise(samples), levels)


def draw(
    cell: PlannedCell, true: World, level: float, skip: str | None, random: np.random.Generator
) -> Sample:
    """A sample of a cell."""
    series, scenario = cell.series, true.scenario
    base = Sample(
        experiment=series.experiment, params={"n": cell.n, **series.params}, interpreter=PYTHON.as_record(),
        environment={**HERE, "policy": series.policy, "affinity": list(series.cpus)}, status="skipped",
        reason=skip,
    )  # fmt: skip
    if skip:
        return base
    log = true.log(series.experiment, series.params, cell.n) + level + float(random.normal(0, scenario.noise))
    if random.uniform() < scenario.outliers:
        log += math.log(random.uniform(1.2, 3))
    if true.bimodal(series.experiment, series.params) and random.uniform() < scenario.fast:
        log -= FAST
    log += scenario.foreign * float(random.uniform(0, 2)) if scenario.foreign > 0.1 else 0.0
    convoy = series.experiment == "gil.convoy"
    wall_s = 0.2 if convoy else math.exp(log)
    return replace(
        base, status="ok", wall_s=wall_s, elapsed_s=wall_s + (0.5 if convoy else 0.15), stolen_share=0.0,
        throttled_s=0.0, foreign_share=scenario.foreign, spin_s=0.002,
        details={"metrics": {"request_s": math.exp(log)} if convoy else {}},
    )  # fmt: skip


@dataclass
class Tally:
    """What was found of a scenario."""

    held: Counter[str] = field(default_factory=Counter)
    printed: Counter[str] = field(default_factory=Counter)
    claims: int = 0
    settled: int = 0
    wrong: int = 0
    two: int = 0
    """Claims that show two modes."""
    unseen: int = 0
    """Claims that do not, and say that one so rare may be unseen."""

    def interval(self, level: str, held: bool) -> None:
        self.printed[level] += 1
        self.held[level] += held

    def faults(self) -> Iterator[str]:
        """What is out of bounds by more than three standard deviations of chance."""
        for level, count in self.printed.items():
            share = self.held[level] / count
            low, high = (
                end + off * math.sqrt(end * (1 - end) / count)
                for end, off in zip(COVERED, (-3, 3), strict=True)
            )
            if not low <= share <= high:
                yield f"{level}: {share:.3f} of {count} intervals hold the truth"
        if self.wrong > WRONG * self.settled + 3 * math.sqrt(WRONG * self.settled):
            yield f"{self.wrong} of {self.settled} settled claims are wrong"

    def shares(self) -> str:
        """ "ratio 99 % 0.991 of 312, ..."."""
        return ", ".join(f"{name} {self.held[name] / n:.3f} of {n}" for name, n in self.printed.items())

    def __str__(self) -> str:
        settled = f"{self.claims} claims, {self.settled} settled, {self.wrong} of them wrongly"
        modes = f", {self.two} show two modes, {self.unseen} say that one may be unseen" if self.two else ""
        return f"{settled}{modes}; {self.shares()}"


def judge(reading: Reading, tally: Tally) -> None:
    """Hold what the report prints against the truth."""
    as_text.render(reading.summary, detail=2)
    data = json.loads(as_json.render(reading.summary))
    scenario = reading.world.scenario
    for cell in data["results"]:
        runs = sorted({run for run, _ in cell["rounds"]})
        true = math.exp(reading.true(cell["experiment"], cell["params"], cell["n"], runs))
        plain = scenario.outliers == 0 and scenario.foreign < 0.1
        if (
            cell["low"] is not None
            and plain
            and not reading.world.bimodal(cell["experiment"], cell["params"])
        ):
            tally.interval("median 95 %", cell["low"] <= true <= cell["high"])
    for claim in data["claims"]:
        declared = next(
            one for one in registry.catalogue()[claim["experiment"]].claims if one.topic == claim["topic"]
        )
        tally.claims += 1
        true, laws = truth(reading, claim, declared, data["results"])
        says = len(laws) > 1 and (bool(claim["modes"]) or (claim["unseen"] or 0) >= scenario.fast)
        tally.two += bool(claim["modes"])
        tally.unseen += says and not claim["modes"]
        if len(laws) > 1:
            laws = laws if claim["modes"] else laws[:1] if says else (true,)
        if claim["low"] is not None and scenario.foreign < 0.1:
            level = "exponent 95 %" if claim["kind"] == "exponent" else "ratio 99 %"
            tally.interval(level, says or claim["low"] <= true <= claim["high"])
        if claim["verdict"] != "open":
            tally.settled += 1
            above = claim["text"] == declared.said(
                True, None, claim["sides"][0]["n"] if claim["sides"] else 0
            )
            right = all(law > claim["threshold"] if above else law < claim["threshold"] for law in laws)
            tally.wrong += not right or scenario.foreign > 0.1


def truth(
    reading: Reading, claim: Mapping[str, Any], declared: Declared, results: Sequence[Mapping[str, Any]]
) -> tuple[float, tuple[float, ...]]:
    """What the interval of a claim has to hold, and what its verdict is about: of two modes both, the usual
    one first."""
    own = [one for one in results if one["experiment"] == claim["experiment"]]
    if claim["kind"] == "exponent":
        cells = [one for one in own if one["values"]]
        if len(cells) < 2:
            return math.nan, (math.nan,)
        x = np.log([one["n"] for one in cells])
        y = [reading.true(one["experiment"], one["params"], one["n"]) for one in cells]
        slope = float(np.polyfit(x, y, 1)[0])
        return slope, (reading.world.power if reading.world.scenario.fixed_s else slope,)

    def params(wanted: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
        name = wanted.get("experiment", claim["experiment"])
        named = {k: v for k, v in wanted.items() if k not in ("n", "experiment")}
        return name, next(
            one["params"] for one in results
            if one["experiment"] == name and named.items() <= one["params"].items()
            and one["params"].get("scheduler", "off") == named.get("scheduler", "off")
        )  # fmt: skip

    if not claim["sides"]:
        return math.nan, (math.nan,)
    sides = [params(declared.of), params(declared.over)]
    first, second = (reading.true(*one, side["n"]) for one, side in zip(sides, claim["sides"], strict=True))
    mean = first - second
    if not reading.world.bimodal(*sides[0]):
        return math.exp(mean), (math.exp(mean),)
    slow = mean + reading.world.scenario.fast * FAST
    return math.exp(mean), (math.exp(slow), math.exp(slow - FAST))


def simulate(name: str, readings: int) -> Tally:
    """A scenario, so many times."""
    scenario, tally = SCENARIOS[name], Tally()
    for seed in range(readings):
        random = np.random.default_rng((list(SCENARIOS).index(name), seed))
        judge(read(scenario, world(scenario, random), random), tally)
    return tally


def compared(runs: int, between: float, pairs: int) -> Tally:
    """A run of the same thing, so many times, beside another: of ``runs`` repetitions each."""
    tally = Tally()
    scenario = Scenario(runs=runs, between=between, budget_s=30.0)
    for seed in range(pairs):
        random = np.random.default_rng((runs, round(100 * between), seed))
        true = world(scenario, random)
        a, b = read(scenario, true, random), read(scenario, true, random)
        found = [(s, c) for s in compare([("a", a.summary), ("b", b.summary)]).series for c in s.cells]
        for series, cell in found:
            where = series.subject.id, series.variant, cell.n
            if cell.low is not None and cell.high is not None:
                off = b.true(*where) - a.true(*where)
                tally.interval("ratio 95 %", math.log(cell.low) <= off <= math.log(cell.high))
        tally.claims += 1
        tally.settled += 1
        tally.wrong += any(cell.change in ("faster", "slower") for _, cell in found)
    return tally


PAIRS: dict[str, Callable[[int], Tally]] = {
    f"same thing, {runs} run{'s' * (runs > 1)} a side, {between:.0%} between runs".replace("%", " %"): (
        lambda pairs, runs=runs, between=between: compared(runs, between, pairs)  # type: ignore[misc]
    )
    for runs in (1, 3)
    for between in (0.02, 0.05)
}
ALARMS = 0.05
"""The share of comparisons of the same thing in which a cell may be called faster or slower."""


def main() -> int:
    """Print each scenario's figures; 1 if something is out of bounds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join([*SCENARIOS, "compare"]))
    parser.add_argument("--readings", type=int, default=READINGS)
    options = parser.parse_args()
    faults = []
    total = Tally()
    for name in options.scenarios or [*SCENARIOS, "compare"]:
        if name == "compare":
            for what, made in PAIRS.items():
                tally = made(options.readings)
                told = f"{what}: {tally.wrong} of {tally.claims} comparisons find a change"
                print(f"{told}; {tally.shares()}", flush=True)
                if tally.wrong > ALARMS * tally.claims + 3 * math.sqrt(ALARMS * tally.claims):
                    faults.append(told)
                tally.wrong = 0
                faults += [f"{what}: {fault}" for fault in tally.faults()]
            continue
        tally = simulate(name, options.readings)
        print(f"{name}: {tally}", flush=True)
        faults += [f"{name}: {fault}" for fault in tally.faults()]
        total.claims += tally.claims
        total.settled += tally.settled
        total.wrong += tally.wrong
    print(f"{total.claims} claims: {total.settled} settled, {total.wrong} of them wrongly")
    print("\n".join(f"OUT OF BOUNDS: {fault}" for fault in faults) or "all within bounds")
    return bool(faults)


if __name__ == "__main__":
    raise SystemExit(main())

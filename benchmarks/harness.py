"""What the benchmarks share: samples taken in rounds, medians with spread, targets and their verdicts.

A benchmark has *rows* (what is measured) and *modes* (the peers: stock, scheduled, ...). One round takes one
sample of every row in every mode, each in processes of its own; rounds follow one another, so that a change
of the machine's mood meets all modes alike. Ratios are taken within rounds. A sample during which other
processes took more than a tenth of the machine is noisy, and a row of which a third is noisy says so.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

from processes import (  # noqa: F401
    FIGURES,
    STOCK,
    SUBJECTS,
    MachineShares,
    Way,
    answer,
    cpu_bound_process,
    load,
    program,
    request_cpu_seconds,
    scheduled,
    subject,
    ways,
    work_seconds,
)

from fairlead.lab.isolation import other_load
from fairlead.lab.run.environment import processor
from fairlead.measure.ratio import LEVEL, paired
from fairlead.record.sample import DISTURBED

METER = other_load.Meter()


@dataclass(frozen=True)
class Sample:
    round: int
    row: str
    mode: str
    figures: FIGURES
    foreign: float | None


@dataclass(frozen=True)
class Target:
    """What the figure of one mode must be, by itself or as a multiple of another mode's (within a round).

    With several modes in ``of``, of whichever ``which`` picks: ``min`` or ``max``. ``plus`` is a further
    figure of the mode, which is added. ``how`` says what must keep to it: the typical round, as far as the
    rounds tell, or every one.
    """

    figure: str
    mode: str
    at_least: float = -math.inf
    at_most: float = math.inf
    of: str | tuple[str, ...] | None = None
    plus: str | None = None
    which: Callable[[Iterable[float]], float] = min
    how: str = "median"

    def values(self, samples: Iterable[Sample]) -> list[float]:
        rounds: dict[int, dict[str, float]] = {}
        added: dict[int, float] = {}
        for sample in samples:
            if self.figure in sample.figures:
                rounds.setdefault(sample.round, {})[sample.mode] = sample.figures[self.figure]
            if sample.mode == self.mode and self.plus:
                added[sample.round] = sample.figures[self.plus]
        if self.of is None:
            return [modes[self.mode] for modes in rounds.values() if self.mode in modes]
        others = (self.of,) if isinstance(self.of, str) else self.of
        pairs = [
            (m[self.mode], self.which(m[other] for other in others), added.get(number, 0))
            for number, m in rounds.items()
            if m.keys() >= {self.mode, *others}
        ]
        return [mine / other + more if other else math.inf for mine, other, more in pairs]

    def verdict(self, values: Sequence[float]) -> str:
        """ "met" or "MISSED" where the interval over rounds lies on one side of the bound; else "open".

        Where every round must keep to the bound there is no interval to take: one that does not misses it.
        """
        if self.how == "every":
            return "met" if all(map(self._within, values)) else "MISSED"
        if all(value > 0 and math.isfinite(value) for value in values):
            found = paired(values, LEVEL)
            if found is None:
                return "open"
            if self._within(found.low) and self._within(found.high):
                return "met"
            return "MISSED" if found.high < self.at_least or found.low > self.at_most else "open"
        # a figure that was nothing in some round has no geometric mean
        return "met" if self._within(median(values)) else "MISSED"

    def _within(self, value: float) -> bool:
        return self.at_least <= value <= self.at_most

    def reference(self) -> str:
        if self.of is None or isinstance(self.of, str):
            return (f", x {self.of}" if self.of else "") + (f" + {self.plus}" if self.plus else "")
        return f", x the {'lower' if self.which is min else 'higher'} of {' and '.join(self.of)}"

    def __str__(self) -> str:
        bound = f">= {show(self.at_least)}" if self.at_least > -math.inf else f"<= {show(self.at_most)}"
        if self.at_least > -math.inf and self.at_most < math.inf:
            bound = f"{show(self.at_least)} to {show(self.at_most)}"
        return f"{bound}{' in every round' if self.how == 'every' else ''}"


@dataclass
class Row:
    name: str
    take: Callable[[str], FIGURES]
    """Takes one sample in the mode that it is given."""
    modes: Sequence[str]
    targets: Sequence[Target] = ()
    rounds: dict[str, int] = field(default_factory=dict)
    """Modes of which other numbers of rounds are taken than `--rounds` says."""


def arguments(doc: str, *, rounds: int) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=doc.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--foreign", type=int, default=0, help="busy processes beside, on the same cores")
    parser.add_argument("--quick", action="store_true", help="a smoke run: figures mean nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all samples there")
    return parser


def server_arguments(doc: str, *, rounds: int) -> argparse.ArgumentParser:
    """Of a benchmark that has the modes of ``instead``, too."""
    parser = arguments(doc, rounds=rounds)
    parser.add_argument("--free-threaded", metavar="PYTHON", help="also: this interpreter")
    return parser


def origin() -> str:
    """What a kept result begins with: machine, kernel, date, the commit that was measured, interpreter."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent, capture_output=True, text=True, check=False,
    )  # fmt: skip
    commit = described.stdout.strip() or "unknown"
    machine = f"{os.cpu_count()} cores of {processor()}"
    where = f"{machine}; {platform.system()} {platform.release()}; {date.today()}; commit {commit}"
    return f"{where}; {platform.python_implementation()} {platform.python_version()}"


def run(question: str, rows: Sequence[Row], options: argparse.Namespace, **facts: Any) -> list[Sample]:
    """Takes all samples, or as many as there is time for until SIGINT or SIGTERM; prints the tables, writes
    the raw results, and with them further facts."""
    samples: list[Sample] = []
    rounds = 1 if options.quick else options.rounds
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for number in range(max([rounds, *(most for row in rows for most in row.rounds.values())])):
            for row in rows:
                order = [mode for mode in row.modes if number < row.rounds.get(mode, rounds)]
                first = number % len(order) if order else 0
                for mode in order[first:] + order[:first]:
                    with cpu_bound_process(options.foreign):
                        samples.append(_take(number, row, mode))  # what there is counts if stopped
    except KeyboardInterrupt:
        print("stopped before the end; this is what was measured until then")
    if options.json:
        options.json.write_text(
            json.dumps(
                {
                    "origin": origin(),
                    "question": question,
                    "python": sys.version,
                    "cores": os.cpu_count(),
                    **facts,
                    "samples": [asdict(sample) for sample in samples],
                }
            )
        )
    print(f"{origin()}\n{question}")
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, rounds: {rounds}{_beside(options)}")
    for row in rows:
        found = [sample for sample in samples if sample.row == row.name]
        if found:
            _report(row, found)
    return samples


def _take(number: int, row: Row, mode: str) -> Sample:
    METER.begin()
    figures = row.take(mode)
    foreign = METER.end()
    return Sample(number, row.name, mode, figures, foreign)


def show(value: float) -> str:
    if value == 0 or not math.isfinite(value):
        return str(value)
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def spread(values: Sequence[float]) -> str:
    text = show(median(values))
    return text if len(values) == 1 else f"{text} [{show(min(values))}..{show(max(values))}]"


def _remark(foreign: Sequence[float | None]) -> str:
    """Of the foreign loads of all samples: what there is to say."""
    noisy = sum(each > DISTURBED for each in foreign if each is not None)
    verdict = ", NOISY" if noisy > len(foreign) / 3 else ""
    return f"; foreign load in {noisy} of {len(foreign)} samples{verdict}" if noisy else ""


def _beside(options: argparse.Namespace) -> str:
    return f", beside {options.foreign} busy processes" if options.foreign else ""


def _report(row: Row, samples: list[Sample]) -> None:
    print(f"\n{row.name}{_remark([sample.foreign for sample in samples])}")
    for figure in dict.fromkeys(figure for sample in samples for figure in sample.figures):
        cells = []
        for mode in row.modes:
            values = [s.figures[figure] for s in samples if s.mode == mode and figure in s.figures]
            if values:
                cells.append(f"{mode} {spread(values)}")
        print(f"    {figure:<22} {'   '.join(cells)}")
    for target in row.targets:
        values = target.values(samples)
        if values:
            what = f"{target.mode}: {target.figure}" + target.reference()
            print(f"  {target.verdict(values):<6} {what:<40} {spread(values)}   must be {target}")

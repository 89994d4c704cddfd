"""How true is what ``fairlead.gil.observe()`` and ``fairlead record`` say? Programs with known answers.

    python benchmarks/observe_truth.py [--seconds 3] [--rounds 3] [--programs spinners,c-call]

For every program of ``truth_programs.py`` and every figure: what is known, what the program's own clocks
say, what counting and recording say (medians over the rounds), and their errors: in per cent of the
interval, for the longest hold of itself. The target is 2 % on a quiet machine. A run in which other
processes took more than a tenth of the cores is repeated, at most twice. Figures among which one was still
not quiet have a star, and do not count: then a core was taken away from a thread, with the GIL or without,
and what is known of a program is no longer so. Only what was held on the CPU is known even then, by the
thread's own clock.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import median
from typing import Any

from truth_programs import NAMES, figures_of

from fairlead.gil.analysis.analyse import analyse
from fairlead.lab.isolation.other_load import Meter
from fairlead.record.recording import Recording
from fairlead.record.sample import DISTURBED

PROGRAM = str(Path(__file__).with_name("truth_programs.py"))
TARGET = 0.02
ATTEMPTS = 3


def printed(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def observed(name: str, seconds: float) -> dict[str, Any]:
    return printed(sys.executable, PROGRAM, name, str(seconds), "--observe")


def recorded(name: str, seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "truth.flrec"
        command = (
            sys.executable,
            "-c",
            "from fairlead.cli import main; main()",
            "record",
            "-o",
            str(path),
            "--",
        )
        result = printed(*command, sys.executable, PROGRAM, name, str(seconds))
        summary = analyse(Recording(path))
        if not summary.trust.complete:
            sys.exit(f"the recording does not trust itself: {summary.trust.statement} {summary.problems}")
        result["seen"] = figures_of((thread.as_record() for thread in summary.threads), result["seconds"])
    return result


WAYS = {"counted": observed, "recorded": recorded}


def quietest(meter: Meter, name: str, seconds: float, way: str) -> tuple[float, dict[str, Any]]:
    """(foreign share, result) of the first quiet run, or of the quietest."""
    best: tuple[float, dict[str, Any]] | None = None
    for _ in range(ATTEMPTS):
        meter.begin()
        result = WAYS[way](name, seconds)
        foreign = meter.end() or 0.0
        if best is None or foreign < best[0]:
            best = (foreign, result)
        if foreign <= DISTURBED:
            break
    assert best is not None
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--programs", default=",".join(NAMES))
    options = parser.parse_args()
    heads = ("known", "own", "counted", "error", "recorded", "error")
    print(f"CPython {platform.python_version()}, {options.rounds} rounds of {options.seconds:g} s\n")
    print(f"{'program':10} {'figure':20}" + "".join(f" {head:>8}" for head in heads))
    meter, worst, judged, foreign = Meter(), 0.0, 0, []
    for name in options.programs.split(","):
        found: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        errors: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
        noisy = False
        for _ in range(options.rounds):
            for way in WAYS:
                share, result = quietest(meter, name, options.seconds, way)
                foreign.append(share)
                noisy = noisy or share > DISTURBED
                for figure, known in result["known"].items():
                    seen = result["seen"].get(figure, 0.0)
                    scale = known if figure.startswith("longest") else 1.0
                    found[figure, "known"].append(known)
                    if figure in result["own"]:
                        found[figure, "own"].append(result["own"][figure])
                    found[figure, way].append(seen)
                    errors[figure, way].append((seen - known) / scale)
        for figure in dict.fromkeys(figure for figure, _ in found):
            row = [median(found[figure, "known"])]
            row += [median(found[figure, "own"])] if (figure, "own") in found else [float("nan")]
            cells = "".join(f" {value:8.4f}" for value in row)
            for way in WAYS:
                error = median(errors[figure, way])
                if not noisy or figure.startswith("on CPU"):
                    worst = max(worst, abs(error))
                    judged += 1
                cells += f" {median(found[figure, way]):8.4f} {error:+8.2%}"
            print(f"{name:10} {figure:20}{cells}{' *' if noisy else ''}", flush=True)
    verdict = "within" if worst <= TARGET else "over"
    print(f"\nworst error of {judged} {worst:.2%}, {verdict} the target of {TARGET:.0%};", end=" ")
    print(f"other processes took {median(foreign):.1%} of the cores, at most {max(foreign):.1%}")


if __name__ == "__main__":
    main()

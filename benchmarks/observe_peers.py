"""What do fairlead and its peers say of programs whose use of the GIL is known, and what does asking cost?

    python benchmarks/observe_peers.py [--seconds 3] [--rounds 3] [--pythons python3.11,python3.15]

For each interpreter (fairlead must be installed in it) the programs of ``truth_programs.py`` are run in
turn under every tool that works there: fairlead counting and recording; ``py-spy record --gil``; the
sampling profiler of the standard library (3.15 on), whose Gecko form has markers for holding and for
waiting; and gilknocker. The samplers run at their own default rates, gilknocker with two polling intervals.
A tool that is missing is named (``pip install --group bench`` brings those that are packages). Prints a
table in Markdown: for each program and figure what the tool said (the median over the rounds; of two
threads the one with the greater error) and its error in per cent of the interval, in the last two columns,
from the two spinners, the CPU time that the tool took, in per cent of one core, and how much less work the
program did than without a tool. gilknocker tells one number for all threads, which stands under "held".
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from truth_programs import figures_of

from fairlead.gil.analysis.analyse import analyse
from fairlead.lab.isolation.other_load import Meter
from fairlead.record.recording import Recording
from fairlead.record.sample import DISTURBED

PROGRAM = str(Path(__file__).with_name("truth_programs.py"))
COLUMNS = (
    ("spinners", "held"), ("spinners", "waited"), ("c-call", "held"), ("c-call", "waited"),
    ("c-call", "longest hold"), ("half-busy", "held"), ("hashing", "held"),
)  # fmt: skip
PY_SPY_HZ = 100
ATTEMPTS = 3
FAIRLEAD = ("-c", "from fairlead.cli import main; main()")

Tool = Callable[[str, str, float, Path], dict[str, Any]]
"""(interpreter, program, seconds, a directory of its own) -> what the program printed, with ``seen``."""


def printed(*command: str) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return json.loads(line)
    raise RuntimeError(f"{' '.join(command)} ended with status {done.returncode}\n{done.stderr}")


def nothing(python: str, name: str, seconds: float, _: Path) -> dict[str, Any]:
    return {**printed(python, PROGRAM, name, str(seconds)), "seen": {}}


def counting(python: str, name: str, seconds: float, _: Path) -> dict[str, Any]:
    return printed(python, PROGRAM, name, str(seconds), "--observe")


def recording(python: str, name: str, seconds: float, directory: Path) -> dict[str, Any]:
    path = directory / "peers.flrec"
    run = (python, *FAIRLEAD, "record", "-o", str(path), "--", python, PROGRAM, name, str(seconds))
    result = printed(*run)
    threads = analyse(Recording(path)).threads
    return {**result, "seen": figures_of((thread.as_record() for thread in threads), result["seconds"])}


def py_spy(python: str, name: str, seconds: float, directory: Path) -> dict[str, Any]:
    path = directory / "py-spy.txt"
    options = ("--gil", "--threads", "--rate", str(PY_SPY_HZ), "--format", "raw", "--output", str(path))
    result = printed("py-spy", "record", *options, "--", python, PROGRAM, name, str(seconds))
    samples: defaultdict[str, int] = defaultdict(int)
    for line in path.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        samples[stack.partition(";")[0].rpartition(": ")[2]] += int(count)
    threads = result["native_ids"].values()
    return {
        **result,
        "seen": {f"held {name}": samples[name] / PY_SPY_HZ / result["seconds"] for name in threads},
    }


def sampler(python: str, name: str, seconds: float, directory: Path) -> dict[str, Any]:
    path = directory / "gecko.json"
    options = ("run", "--all-threads", "--gecko", "--output", str(path))
    result = printed(python, "-m", "profiling.sampling", *options, PROGRAM, name, str(seconds))
    profile = json.loads(path.read_text())
    texts, seen = profile["shared"]["stringArray"], {}
    for thread in profile["threads"]:
        label = result["native_ids"].get(str(thread["tid"]))
        for figure, marker in (("held", "Has GIL"), ("waited", "Waiting for GIL")):
            rows = thread["markers"]
            spans = zip(rows["name"], rows["startTime"], rows["endTime"], strict=True)
            ms = sum(end - start for text, start, end in spans if texts[text] == marker and end is not None)
            seen[f"{figure} {label}"] = ms / 1e3 / result["seconds"]
    return {**result, "seen": seen}


def knocker(poll_ms: float) -> Tool:
    def tool(python: str, name: str, seconds: float, _: Path) -> dict[str, Any]:
        result = printed(python, PROGRAM, name, str(seconds), "--knock", str(poll_ms))
        known = sum(value for figure, value in result["known"].items() if figure.startswith("held "))
        return {**result, "known": {"held (all)": known}, "seen": {"held (all)": result["contention"]}}

    return tool


def tools(python: str) -> tuple[dict[str, Tool], list[str]]:
    """Those that work with an interpreter, and why others do not."""
    found: dict[str, Tool] = {"(none)": nothing, "fairlead, counting": counting, "fairlead record": recording}
    missing = []
    if shutil.which("py-spy"):
        found[f"py-spy record --gil ({PY_SPY_HZ} Hz)"] = py_spy
    else:
        missing.append("py-spy: not on PATH")
    for module, added in (
        ("profiling.sampling", {"profiling.sampling (1 kHz)": sampler}),
        ("gilknocker", {f"gilknocker, polling every {ms} ms": knocker(ms) for ms in (1, 10)}),
    ):
        done = subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False)
        if done.returncode == 0:
            found |= added
        else:
            missing.append(f"{module}: {version_of(python)} cannot import it")
    return found, missing


def quietest(meter: Meter, run: Tool, python: str, name: str, seconds: float) -> tuple[float, dict[str, Any]]:
    """(share of the cores that other processes took, result) of the first quiet run, or of the quietest."""
    runs = []
    while len(runs) < ATTEMPTS:
        with tempfile.TemporaryDirectory() as directory:
            meter.begin()
            result = run(python, name, seconds, Path(directory))
            runs.append((meter.end() or 0.0, result))
        if runs[-1][0] <= DISTURBED:
            break
    return min(runs, key=lambda pair: pair[0])


def worst(found: list[tuple[str, float, float]]) -> str:
    """A cell: value and error of the figure that is furthest off, of (figure, known, seen) of all rounds."""
    by_figure: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for figure, known, seen in found:
        by_figure[figure].append((seen, seen - known))
    medians = [(median(s for s, _ in rows), median(e for _, e in rows)) for rows in by_figure.values()]
    if not medians:
        return "-"
    seen, error = max(medians, key=lambda pair: abs(pair[1]))
    if found[0][0].startswith("longest"):
        return f"{seen * 1e3:.1f} ms ({error * 1e3:+.1f})"
    return f"{seen:.1%} ({error * 100:+.1f})"


def compare(python: str, seconds: float, rounds: int) -> None:
    found, missing = tools(python)
    cells: defaultdict[tuple[str, str, str], list[tuple[str, float, float]]] = defaultdict(list)
    spent: defaultdict[str, list[float]] = defaultdict(list)
    turns: defaultdict[str, list[float]] = defaultdict(list)
    meter, foreign = Meter(), []
    for number in range(rounds):
        for name in dict.fromkeys(program for program, _ in COLUMNS):
            order = list(found.items())
            for tool, run in order if number % 2 == 0 else reversed(order):
                try:
                    share, result = quietest(meter, run, python, name, seconds)
                except (RuntimeError, OSError) as error:
                    missing.append(f"{tool} failed on {name}: {str(error).strip().splitlines()[-1]}")
                    continue
                foreign.append(share)
                for figure, known in result["known"].items():
                    if figure in result["seen"]:
                        what = figure.rpartition(" ")[0]
                        cells[tool, name, what].append((figure, known, result["seen"][figure]))
                if name == "spinners":
                    spent[tool].append(result["cpu_s"] + result["parents_cpu_s"])
                    turns[tool].append(result["turns"])
    print(
        f"\n{version_of(python)}, {rounds} rounds of {seconds:g} s; other processes took"
        f" {median(foreign):.0%} of the cores:\n"
    )
    heads = [f"{name}: {what}" for name, what in COLUMNS]
    print("| tool | " + " | ".join(heads) + " | its CPU time | less work |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for tool in found:
        if tool == "(none)" or not spent[tool]:
            continue
        row = [worst(cells[tool, name, what]) for name, what in COLUMNS]
        cost = median(spent[tool]) - median(spent["(none)"])
        less = 1 - median(turns[tool]) / median(turns["(none)"])
        print(f"| {tool} | " + " | ".join(row) + f" | {max(0.0, cost / seconds):.1%} | {less:.1%} |")
    for line in dict.fromkeys(missing):
        print(f"\nNot compared: {line}.")


def version_of(python: str) -> str:
    return "C" + subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pythons", default=sys.executable)
    options = parser.parse_args()
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    print(", ".join(map(version_of, options.pythons.split(","))))
    for python in options.pythons.split(","):
        compare(python, options.seconds, options.rounds)


if __name__ == "__main__":
    main()

"""Does ``fairlead report`` name the true cause first, in the user's own line?

    python benchmarks/judge.py [--only NAME,...] [--beside 2] [--keep DIRECTORY]

Each program of benchmarks/planted/ has one trouble, whose seconds it measures by its own clock, or none. It
is recorded as a user would record it, and the first finding of the report is compared with what was
planted: right, or wrong; and the line that makes the trouble, where there is one, is in the finding or is
not. A program that has none must have no finding but not-the-gil. ``--beside`` adds busy processes to the
machine. ``--keep`` keeps the recordings; those that are there already are judged anew."""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from processes import cpu_bound_process

PLANTED = Path(__file__).parent / "planted"
LEAST_LOST = 0.05
"""Seconds of SECONDS: a program that lost less had no trouble this time."""


class Planted(NamedTuple):
    """One program of the corpus."""

    file: Path
    name: str
    causes: tuple[str, ...]
    lines: tuple[int, ...]
    """Those that end in "# here", of this program or of what it shares."""


class Verdict(NamedTuple):
    """What was said of it."""

    program: Planted
    kind: str
    title: str
    right: bool
    line: bool | None
    """None: there is none to name."""
    shown: bool
    """It had the trouble, by its own clock."""


def corpus() -> list[Planted]:
    """All programs, in the order in which they stand."""
    found = []
    for file in sorted(PLANTED.glob("*.py")):
        text = file.read_text().splitlines()
        marks = [number for number, line in enumerate(text, start=1) if line.endswith("# here")]
        heads = [number for number, line in enumerate(text, start=1) if line.startswith(("def ", "@"))]
        for number, line in enumerate(text, start=1):
            decorated = re.fullmatch(r"@(?:planted\((.*)\)|healthy)(?:  # from 3\.(\d+) on)?", line)
            if not decorated or int(decorated.group(2) or 0) > sys.version_info.minor:
                continue
            name = re.match(r"def (\w+)", text[number]).group(1)  # type: ignore[union-attr]
            end = next((head for head in heads if head > number + 1), len(text) + 1)
            own = [mark for mark in marks if number < mark < end]
            before = [mark for mark in marks if mark < min([*heads, number]) or _shared(text, mark)]
            causes = tuple(re.findall(r'"([\w-]+)"', decorated.group(1) or ""))
            has_line = causes and causes[0] != "no-core"
            found.append(Planted(file, name, causes, tuple(own or (before if has_line else ()))))
    return found


def _shared(text: list[str], mark: int) -> bool:
    """Whether the marked line is of a function that the programs share."""
    head = max(number for number in range(1, mark) if text[number - 1].startswith("def "))
    return not text[head - 2].startswith("@")


def examine(program: Planted, directory: Path) -> Verdict:
    """Record it, if that is not done yet, and compare the report with the truth."""
    out, printed = directory / f"{program.name}.flrec", directory / f"{program.name}.txt"
    if not printed.exists():
        command = [
            "fairlead",
            "record",
            "-o",
            str(out),
            "--",
            sys.executable,
            str(program.file),
            program.name,
        ]
        done = subprocess.run(
            [sys.executable, "-m", *command], capture_output=True, text=True, check=False, timeout=120
        )
        if done.returncode:
            sys.exit(f"{program.name}: {done.stderr}")
        printed.write_text(done.stdout)
    (lost,) = (
        json.loads(line)["lost"] for line in printed.read_text().splitlines() if line.startswith('{"lost"')
    )
    report = subprocess.run(
        [sys.executable, "-m", "fairlead", "report", str(out), "--format", "json"],
        capture_output=True,
        check=True,
        timeout=300,
    )
    findings = json.loads(report.stdout)["findings"]
    first = findings[0] if findings else {"kind": "none", "title": "", "evidence": {}}
    right = first["kind"] in (program.causes or ("not-the-gil", "none"))
    line = names_line(first["title"], program) if program.lines else None
    shown = not program.causes or (lost or 0.0) >= LEAST_LOST
    return Verdict(program, first["kind"], first["title"], right, line, shown)


def names_line(title: str, program: Planted) -> bool:
    """Whether the title has a marked line, or one of a function of the program's that the line calls."""
    text = program.file.read_text().splitlines()
    wanted = [rf"\({program.file.name}:{line}\)" for line in program.lines]
    wanted += [
        rf"(^|[ .]){helper} \("
        for helper in ("count", "circle")
        if any(f"{helper}(" in text[line - 1] for line in program.lines)
    ]
    return any(re.search(one, title) for one in wanted)


def main() -> None:
    """Print a line a program, and the sums."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--beside", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name]
    programs = [one for one in corpus() if not names or one.name in names or one.file.stem in names]
    verdicts: list[Verdict] = []
    print(f"CPython {platform.python_version()}, {options.beside} busy processes beside it")
    with contextlib.ExitStack() as stack:
        directory = options.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        directory.mkdir(exist_ok=True)
        stack.enter_context(cpu_bound_process(options.beside))
        for program in programs:
            verdicts.append(examine(program, directory))
            print(_row(verdicts[-1]), flush=True)
    _sums(verdicts)


def _row(verdict: Verdict) -> str:
    word = "right" if verdict.right else "WRONG"
    line = {None: "", True: "line", False: "no line"}[verdict.line]
    shown = "" if verdict.shown else "not shown "
    truth = verdict.program.causes[0] if verdict.program.causes else "healthy"
    return f"{word:6}{line:8}{truth:16}{verdict.program.name:36}{shown}{verdict.kind}: {verdict.title}"


def _sums(verdicts: list[Verdict]) -> None:
    ill = [one for one in verdicts if one.program.causes and one.shown]
    lines = [one for one in ill if one.line is not None]
    healthy = [one for one in verdicts if not one.program.causes]
    print(f"\nfirst finding right   {sum(one.right for one in ill)} of {len(ill)}")
    print(f"the user's own line   {sum(bool(one.line) for one in lines)} of {len(lines)}")
    print(f"false alarms          {sum(not one.right for one in healthy)} of {len(healthy)} healthy programs")
    causes = Counter(one.program.causes[0] for one in ill)
    for cause, count in sorted(causes.items()):
        right = sum(one.right for one in ill if one.program.causes[0] == cause)
        print(f"    {cause:18}{right} of {count}")


if __name__ == "__main__":
    main()

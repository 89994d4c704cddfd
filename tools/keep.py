"""Runs a command and keeps what it prints in benchmarks/results, below where, when and of what commit.

    python tools/keep.py NAME COMMAND ...

The first line of the kept file is machine, kernel, date, commit and interpreters, the second the command.
Nothing is kept of a command that fails.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import sys
from datetime import date
from pathlib import Path

from fairlead.lab.run.environment import processor

ROOT = Path(__file__).resolve().parents[1]
INTERPRETER = re.compile(r"\b(?:CPython|PyPy) \d+\.\d+\.\d+\w*(?: free-threaded)?")

MEASURED = ("native", "src", "examples", "benchmarks", ":!benchmarks/results")
"""What a figure depends on."""


def git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)


def origin(printed: str) -> str:
    """Machine, repository, and the interpreters that the output names."""
    commit = git("describe", "--always").stdout.strip() or "unknown"
    changed = git("diff", "--quiet", "HEAD", "--", *MEASURED).returncode == 1
    machine = f"{os.cpu_count()} cores of {processor()}; {platform.system()} {platform.release()}"
    own = f"{platform.python_implementation()} {platform.python_version()}"
    pythons = list(dict.fromkeys(INTERPRETER.findall(printed))) or [own]
    return f"{machine}; {date.today()}; commit {commit}{'-dirty' * changed}; {', '.join(pythons)}"


def main() -> None:
    name, *command = sys.argv[1:]
    kept = ROOT / "benchmarks" / "results" / f"{name}.txt"
    # one's own commands, under their own names wherever the environment is
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    sys.stdout.write(done.stdout)
    if done.returncode:
        sys.exit(f"keep.py: {shlex.join(command)} failed with {done.returncode}: nothing is kept")
    # neither the report nor the clone is where it was on another machine
    shown = re.sub(r"^Report: .*\n", "", done.stdout, flags=re.MULTILINE).replace(f"{ROOT}/", "")
    kept.write_text(f"{origin(shown)}\n$ {shlex.join(command)}\n\n{shown}", encoding="utf-8")


if __name__ == "__main__":
    main()

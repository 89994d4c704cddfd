"""Counts the instructions that programs of one thread take on each variant; writes instructions.json.

    python upstream/instructions.py [--quick]

A cost of a thousandth is lost in the noise of times, but not in a count: valgrind's hardly varies. What the
interpreter needs to start and end is taken off, by counting two lengths of each program. What a switch of
threads costs is not in it: these programs have none.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from variants import FIXED_ADDRESSES, ROOT, SERIES, arguments, digests, python_of, results

BENCHMARKS = ROOT / "benchmarks"
WORK = ("nbody", "fannkuch", "json", "pickle", "regex", "objects", "generators", "files")
LENGTHS = (0.1, 0.3)
RUNS = 2
"""The lower count is taken: a run that finds a module's bytecode outdated compiles it."""


def count(python: Path, work: str, scale: float) -> int:
    settings = {"work": work, "threads": 1, "scale": scale, "runs": 1}
    done = subprocess.run(
        [
            *FIXED_ADDRESSES,
            *("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"),
            *(python, BENCHMARKS / "subjects" / "compute.py", json.dumps(settings)),
        ],
        env={**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
    )
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    assert found is not None
    return int(found[1].replace(",", ""))


def main() -> None:
    options = arguments(__doc__ or "").parse_args()
    where = results(quick=options.quick) / "instructions.json"
    builds = digests()
    if where.exists() and json.loads(where.read_text())["builds"] == builds:
        print("instructions: counted already")
        return
    if not shutil.which("valgrind"):
        print("instructions: left out, valgrind is missing")
        return
    found: dict[str, dict[str, int]] = {}
    for work in WORK[: 1 if options.quick else None]:
        found[work] = {}
        for variant in SERIES:
            short, long = (
                min(count(python_of(variant), work, scale) for _ in range(RUNS)) for scale in LENGTHS
            )
            found[work][variant] = long - short
        print(work, found[work], flush=True)
    where.write_text(json.dumps({"builds": builds, "instructions": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()

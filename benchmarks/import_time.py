"""What it costs to import fairlead and to start its command, against the standard library, in one run.

    python benchmarks/import_time.py [--rounds 15] [--json FILE]

fairlead is first installed into a directory of its own, as from a wheel: an editable install looks for
changed files at each start. A sample is the CPU time (user and system) of a fresh interpreter less that of a
bare one in the same round. Printed are the median, and the lowest and highest. What fairlead takes in a
program that it starts is what the rows of ``fairlead run`` differ by, less what those of ``exec`` do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[1]
BARE = ["-c", "pass"]
STARTED = [str(getattr(sys, "_base_executable", sys.executable)), *BARE]
RUN = ["-m", "fairlead", "run", "--children", "--"]
PROGRAMS = {
    "import fairlead": ["-c", "import fairlead"],
    "import fairlead.sync": ["-c", "import fairlead.sync"],
    "import fairlead.pools": ["-c", "import fairlead.pools"],
    "ThreadPool": ["-c", "from fairlead.pools import ThreadPool"],
    "import fairlead.gil": ["-c", "import fairlead.gil"],
    "fairlead --help": ["-m", "fairlead", "--help"],
    "fairlead run --help": ["-m", "fairlead", "run", "--help"],
    "exec true": ["-c", "import os; os.execvp('true', ['true'])"],
    "exec python -c pass": ["-c", f"import os; os.execv({STARTED[0]!r}, {STARTED!r})"],
    "fairlead run -- true": [*RUN, "true"],
    "fairlead run -- python -c pass": [*RUN, *STARTED],
    "import threading": ["-c", "import threading"],
    "ThreadPoolExecutor": ["-c", "from concurrent.futures import ThreadPoolExecutor"],
    "import asyncio": ["-c", "import asyncio"],
    "import click": ["-c", "import click"],
}


def install(directory: str) -> None:
    """fairlead itself, without what it depends on, as pip puts it there."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    # the build's tools are beside the interpreter
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run([*pip, "--target", directory, ROOT], check=True, env={**os.environ, "PATH": path})


def cpu_ms(program: list[str], directory: str) -> float:
    """CPU time of one interpreter that does this, with the modules of the directory and of its own."""
    libraries = os.pathsep.join(
        [directory, *(place for place in sys.path if place.endswith("site-packages"))]
    )
    # -S: the .pth files of the environment are not fairlead's cost
    process = subprocess.Popen(
        [sys.executable, "-S", *program],
        env={**os.environ, "PYTHONPATH": libraries},
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(program)}: exit status {process.returncode}")
    return 1e3 * (usage.ru_utime + usage.ru_stime)


def measure(rounds: int) -> dict[str, list[float]]:
    samples: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    with tempfile.TemporaryDirectory() as directory:
        install(directory)
        for program in PROGRAMS.values():
            cpu_ms(program, directory)  # writes the byte code
        for _ in range(rounds):
            bare = cpu_ms(BARE, directory)
            for name, program in PROGRAMS.items():
                samples[name].append(cpu_ms(program, directory) - bare)
    return samples


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    samples = measure(options.rounds)
    print(f"CPU ms more than a bare interpreter's, median (lowest to highest) of {options.rounds} rounds")
    for name, values in samples.items():
        print(f"{name:31} {median(values):6.1f}   ({min(values):.1f} to {max(values):.1f})")
    if options.json:
        options.json.write_text(json.dumps({"samples": samples}))


if __name__ == "__main__":
    main()

"""Run what `make test` runs of Python under duress, to find tests that judge the machine.

    tools/shake.py [--seed N] [RUN...]

The runs are called quiet, busy (beside two processes that compute), background (busy, and as a shell's
background job, which ignores Ctrl-C) and one-core; without a name: quiet, busy, busy, background, one-core.
Each has its own random order of the files. A line for each says what came of it, and a line for each test
that failed; the exit status is 1 if one did.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from test_all import BY_FILE, CLONE, run_tests

RUNS = ("quiet", "busy", "busy", "background", "one-core")
COMPUTES = "while True: pass"


@contextmanager
def duress(kind: str) -> Iterator[None]:
    """The machine as a run of this kind finds it; what it starts inherits the mask and the ignored signal."""
    cores = os.sched_getaffinity(0)
    count = 2 if kind in ("busy", "background") else 0
    others = [subprocess.Popen([sys.executable, "-c", COMPUTES]) for _ in range(count)]
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN) if kind == "background" else None
    if kind == "one-core":
        os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        if interrupt is not None:
            signal.signal(signal.SIGINT, interrupt)
        for other in others:
            other.kill()
            other.wait()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("runs", nargs="*", metavar="RUN", help=", ".join(dict.fromkeys(RUNS)))
    parser.add_argument("--seed", type=int, default=random.randrange(2**32), help="of the first run's order")
    options = parser.parse_args()
    if unknown := set(options.runs) - set(RUNS):
        parser.error(f"there is no run {', '.join(unknown)}; there are {', '.join(dict.fromkeys(RUNS))}")
    lines, statuses = [], []
    for seed, kind in enumerate(options.runs or RUNS, options.seed):
        files = [str(path.relative_to(CLONE)) for path in sorted((CLONE / "tests").rglob("test_*.py"))]
        random.Random(seed).shuffle(files)
        began = time.monotonic()
        with duress(kind):
            status, closing, bad = run_tests(Path(sys.executable), [*BY_FILE, *files], {})
        statuses.append(status)
        lines += [f"{kind} --seed {seed}: {closing}, {time.monotonic() - began:.0f} s in all"]
        lines += [f"    {line}" for line in bad]
    print("", *lines, sep="\n")
    return int(any(statuses))


if __name__ == "__main__":
    sys.exit(main())

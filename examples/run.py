"""The programs of own_programs.py: installs them, lists the versions of their packages, and records one.

    python examples/run.py --install [NAME ...]
    python examples/run.py --list
    python examples/run.py --record NAME [--seconds 4]

`fairlead lab run ./examples/own_programs.py` measures them.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from environment import Environment
from programs import PROGRAMS
from sample import START_S, OneRun, Way


def record(name: str, seconds: float) -> str:
    """What `fairlead record` and `fairlead report` say of the program under its load."""
    fairlead = str(Path(sys.executable).with_name("fairlead"))
    with tempfile.TemporaryDirectory(prefix="fairlead-example-") as directory:
        way = Way((fairlead, "record", "-o", str(Path(directory) / f"{name}.flrec"), "--"))
        one = OneRun(name, way, Path(directory), seconds=seconds, seed=1)
        with one.companions(), one.started() as process:
            one.seen(process)
            end(process)
        recordings = sorted(Path(directory).glob("*.flrec*"))  # one of each process
        shown = subprocess.run([fairlead, "report", *recordings], capture_output=True, text=True, check=True)
        return shown.stdout


def end(process: subprocess.Popen[str]) -> None:
    """As a terminal does; a Jupyter kernel takes Ctrl-C for the end of a cell."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(timeout=START_S / 4)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(timeout=START_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="all of them")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--install", action="store_true", help="install the programs' packages")
    what.add_argument("--list", action="store_true", help="say which versions are installed")
    what.add_argument("--record", action="store_true", help="say what `fairlead record` finds")
    parser.add_argument("--seconds", type=float, default=4.0, help="of load, when recorded")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in PROGRAMS]:
        parser.error(f"no such program: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    environment = Environment()
    for name in options.names or PROGRAMS:
        packages = PROGRAMS[name].packages
        if options.list:
            there = environment.versions(packages) if environment.has(packages) else {}
            shown = ", ".join(f"{package} {version}" for package, version in there.items())
            print(f"{name:<22} {shown or 'not installed'}")
            continue
        environment.install(packages)
        if options.record:
            print(record(name, options.seconds))


if __name__ == "__main__":
    main()

"""Does scheduling cost programs of one thread anything? A part of pyperformance, stock and `fairlead run`.

    python benchmarks/gil_pyperformance.py [--only nbody,json_dumps] [--values 5]

The programs are those of the package pyperformance (dependency group `bench`) that need nothing else. Each
sample is a process of its own, and its figure the quickest of its values: what slows a single thread down
now and then is the machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path

from harness import FIGURES, STOCK, Row, Target, Way, arguments, run, scheduled

PROGRAMS = {  # loops of one value, some tenths of a second; and what else the program wants to be told
    "nbody": (2, ()),
    "richards": (3, ()),
    "deltablue": (30, ()),
    "float": (2, ()),
    "hexiom": (20, ()),
    "raytrace": (1, ()),
    "pyflate": (1, ()),
    "json_dumps": (10, ()),
    "json_loads": (4000, ()),
    "regex_compile": (1, ()),
    "pickle": (2000, ("pickle",)),
    "generators": (4, ()),
    "coroutines": (4, ()),
    "logging": (10000, ("simple",)),
    "pathlib": (4, ()),
    "sqlite_synth": (50000, ()),
}


def installed(packages: Path | None = None) -> Path | None:
    """Where pyperformance's programs are: this interpreter's, or those of a directory of packages."""
    places = None if packages is None else [str(packages)]
    spec = PathFinder.find_spec("pyperformance", places)
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "data-files" / "benchmarks"


def measure(name: str, programs: Path, way: Way, *, values: int, loops: int | None = None) -> FIGURES:
    """The quickest of so many values of a program, each of so many loops, in a process of its own."""
    usual, told = PROGRAMS[name]
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "values.json"
        program = [*way.command, way.python, programs / f"bm_{name}" / "run_benchmark.py", *told]
        counts = {"--warmups": 1, "--values": values, "--loops": loops or usual}
        subprocess.run(
            [*program, "--worker", *(str(word) for pair in counts.items() for word in pair), "-o", out],
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != "FAIRLEAD_GIL"},
            timeout=300,
            check=True,
        )
        [benchmark] = json.loads(out.read_text())["benchmarks"]
    return {"seconds": min(benchmark["runs"][0]["values"])}


def row(name: str, programs: Path, options: argparse.Namespace) -> Row:
    ways = {"stock": STOCK, "fairlead": scheduled()}
    loops = 1 if options.quick else None

    def take(mode: str) -> FIGURES:
        return measure(name, programs, ways[mode], values=options.values, loops=loops)

    return Row(name, take, list(ways), [Target("seconds", "fairlead", of="stock", at_most=1.02)])


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--values", type=int, default=5)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    programs = installed()
    if programs is None:
        parser.error("pyperformance is not installed: pip install --group bench")
    if options.quick:
        options.values = 1
    rows = [row(name, programs, options) for name in names]
    run("Does scheduling cost programs of one thread anything?", rows, options)


if __name__ == "__main__":
    main()

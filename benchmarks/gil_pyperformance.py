"""Does scheduling cost programs of one thread anything? A part of pyperformance, stock and `fairlead run`.

    python benchmarks/gil_pyperformance.py [--only nbody,json_dumps] [--values 5]

The programs are those of the package pyperformance (dependency group `bench`) that need nothing else. Each
sample is a process of its own, and its figure the quickest of its values: what slows a single thread down
now and then is the machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from harness import FIGURES, Row, Target, arguments, run, scheduled

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


def row(name: str, programs: Path, values: int, loops: int) -> Row:
    _, told = PROGRAMS[name]
    program = [sys.executable, str(programs / f"bm_{name}" / "run_benchmark.py"), *told]

    def take(mode: str) -> FIGURES:
        with tempfile.TemporaryDirectory() as directory:
            out = Path(directory) / "values.json"
            options = [
                "--worker",
                "--warmups",
                "1",
                "--values",
                str(values),
                "--loops",
                str(loops),
                "-o",
                str(out),
            ]
            subprocess.run(
                [*(scheduled().command if mode == "fairlead" else ()), *program, *options],
                stdout=subprocess.DEVNULL,
                env={name: value for name, value in os.environ.items() if name != "FAIRLEAD_GIL"},
                timeout=300,
                check=True,
            )
            [benchmark] = json.loads(out.read_text())["benchmarks"]
        return {"seconds": min(benchmark["runs"][0]["values"])}

    return Row(name, take, ["stock", "fairlead"], [Target("seconds", "fairlead", of="stock", at_most=1.02)])


def main() -> None:
    parser = arguments(__doc__ or "", rounds=5)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--values", type=int, default=5)
    options = parser.parse_args()
    names = options.only.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        parser.error(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    spec = find_spec("pyperformance")
    if spec is None or spec.origin is None:
        parser.error("pyperformance is not installed: pip install --group bench")
    programs = Path(spec.origin).parent / "data-files" / "benchmarks"
    if options.quick:
        options.values = 1
    rows = [row(name, programs, options.values, 1 if options.quick else PROGRAMS[name][0]) for name in names]
    run("Does scheduling cost programs of one thread anything?", rows, options)


if __name__ == "__main__":
    main()

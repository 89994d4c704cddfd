"""Does scheduling cost programs of one thread anything? A part of pyperformance, stock and `fairlead run`.

    fairlead lab run benchmarks/own_pyperformance.py --quick --budget 2m -v
    fairlead lab run benchmarks/own_pyperformance.py:sqlite_synth --budget 30s -v

The programs are those of the package pyperformance (dependency group `bench`) that need nothing else.
"""

EXPERIMENT = {
    "id": "own.pyperformance",
    "question": "Does scheduling cost a program of one thread anything?",
    "explanation": (
        "The time of one loop of the program, the quickest of n values: what slows a single thread down now "
        "and then is the machine."
    ),
    "size_name": "values",
    "smallest": 1,
    "growth": False,
    "ways": "by",
    "base": "stock",
    "value": "loop_s",
    "metrics": [{"name": "loop_s", "title": "a loop", "unit": "s"}],
    "parameters": {
        "by": {
            "default": "stock",
            "choices": ["stock", "fairlead"],
            "help": "how threads get the GIL: by CPython or by fairlead run",
        },
    },
    "claims": [
        {"topic": "{case}", "of": {"by": "fairlead"}, "over": {"by": "stock"}, "more_than": 1.02,
         "says": "{case} takes longer under fairlead than under stock CPython",
         "otherwise": "{case} takes no longer under fairlead than under stock CPython"},
    ],
    "cases": {
        "sqlite_synth": "calls of SQLite, a few in each 2 us",
        "richards": "a simulation of an operating system",
        "nbody": "planets",
        "pathlib": "paths and system calls",
        "deltablue": "constraints",
        "float": "points of floats",
        "hexiom": "a puzzle",
        "raytrace": "a picture",
        "pyflate": "bzip2 in Python",
        "json_dumps": "JSON out",
        "json_loads": "JSON in",
        "regex_compile": "regular expressions",
        "pickle": "pickles",
        "generators": "generators",
        "coroutines": "coroutines",
        "logging": "lines of a log",
    },
    "sizes": {"quick": [1], "standard": [3], "full": [5]},
    "timeout_s": 300,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import json  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import tempfile  # noqa: E402
from functools import partial  # noqa: E402
from importlib.machinery import PathFinder  # noqa: E402
from pathlib import Path  # noqa: E402

import own  # noqa: E402

LOOPS = {
    "nbody": 2, "richards": 3, "deltablue": 30, "float": 2, "hexiom": 20, "raytrace": 1, "pyflate": 1,
    "json_dumps": 10, "json_loads": 4000, "regex_compile": 1, "pickle": 2000, "generators": 4,
    "coroutines": 4, "logging": 10000, "pathlib": 4, "sqlite_synth": 50000,
}  # fmt: skip
"""Of one value, some tenths of a second."""
ARGUMENTS = {"pickle": ["pickle"], "logging": ["simple"]}


def installed(packages=None):
    """Where pyperformance's programs are: this interpreter's, or those of a directory of packages."""
    spec = PathFinder.find_spec("pyperformance", packages and [str(packages)])
    return Path(spec.origin).parent / "data-files" / "benchmarks"


def quickest(name, programs, way, values, loops=None):
    """Seconds of one loop: the quickest of so many values of a program, in a process of its own."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "values.json"
        program = [*way.command, way.python, programs / f"bm_{name}" / "run_benchmark.py"]
        counts = ["--warmups", "1", "--values", str(values), "--loops", str(loops or LOOPS[name])]
        subprocess.run(
            [*program, *ARGUMENTS.get(name, []), "--worker", *counts, "-o", out],
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != "FAIRLEAD_GIL"},
            timeout=300,
            check=True,
        )
        [benchmark] = json.loads(out.read_text())["benchmarks"]
    return min(benchmark["runs"][0]["values"])


def loop(name, by, n):
    way = own.way(by, "pyperformance")
    return {"loop_s": quickest(name, installed(), way, n)}


if __name__ == "__main__":
    own.main(EXPERIMENT, {case: partial(loop, case) for case in EXPERIMENT["cases"]})

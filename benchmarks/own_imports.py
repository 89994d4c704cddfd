"""What it costs to import fairlead and to start its command, against the standard library.

fairlead lab run benchmarks/own_imports.py --quick
"""

EXPERIMENT = {
    "id": "own.imports",
    "title": "Imports and starts",
    "question": "What CPU time does a fresh interpreter take for this, and how much more than for nothing?",
    "explanation": (
        "An interpreter is started that does this and ends. Each starts after one that does nothing, and "
        "what it takes more than that is what the claims are about. fairlead is found in a directory of "
        "links, as an install from a wheel: an editable install looks for changed files at each start. "
        "What fairlead takes in a program that it starts is what `fairlead run` takes more than exec."
    ),
    "size_name": "starts",
    "growth": False,
    "smallest": 1,
    "ways": "program",
    "value": "cpu_s",
    "metrics": [
        {"name": "cpu_s", "title": "CPU", "unit": "s"},
        {"name": "more_s", "title": "more", "unit": "s"},
        {"name": "bare_s", "title": "bare", "unit": "s"},
    ],
    "parameters": {
        "program": {
            "default": "import fairlead",
            "choices": [
                "import fairlead", "import fairlead.sync", "import fairlead.pools", "ThreadPool",
                "import fairlead.gil", "fairlead --help", "fairlead run --help", "exec true", "exec python",
                "fairlead run true", "fairlead run python", "import threading", "ThreadPoolExecutor",
                "import asyncio", "import click",
            ],
            "help": "what it does",
        },
    },
    "claims": [
        {"topic": "ThreadPool's import", "metric": "more_s", "of": {"program": "ThreadPool"},
         "over": {"program": "ThreadPoolExecutor"}, "more_than": 1.5,
         "says": "the import of ThreadPool takes more than 1.5 times as long as ThreadPoolExecutor's",
         "otherwise": "the import of ThreadPool takes no longer than ThreadPoolExecutor's"},
        {"topic": "import of sync", "metric": "more_s", "of": {"program": "import fairlead.sync"},
         "over": {"program": "import asyncio"}, "more_than": 0.5,
         "says": "the import of fairlead.sync takes more than half the time of that of asyncio",
         "otherwise": "the import of fairlead.sync takes less than half the time of that of asyncio"},
        {"topic": "fairlead --help", "metric": "more_s", "of": {"program": "fairlead --help"},
         "over": {"program": "import click"}, "more_than": 2,
         "says": "fairlead --help takes more than twice as long as the import of click",
         "otherwise": "fairlead --help takes no longer than the import of click"},
        {"topic": "start of a program", "metric": "more_s",
         "of": {"program": "fairlead run python"}, "over": {"program": "exec python"}, "more_than": 2,
         "says": "a program takes more than twice as long to start with fairlead run",
         "otherwise": "a program takes no longer to start with fairlead run"},
    ],
    "sizes": {"quick": [3], "standard": [5], "full": [10]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}  # fmt: skip

import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
from pathlib import Path  # noqa: E402

import probe  # noqa: E402

BARE = ["-c", "pass"]
STARTED = [str(getattr(sys, "_base_executable", sys.executable)), *BARE]
RUN = ["-m", "fairlead", "run", "--children", "--"]
PROGRAMS = {
    "ThreadPool": ["-c", "from fairlead.pools import ThreadPool"],
    "ThreadPoolExecutor": ["-c", "from concurrent.futures import ThreadPoolExecutor"],
    "fairlead --help": ["-m", "fairlead", "--help"],
    "fairlead run --help": ["-m", "fairlead", "run", "--help"],
    "exec true": ["-c", "import os; os.execvp('true', ['true'])"],
    "exec python": ["-c", f"import os; os.execv({STARTED[0]!r}, {STARTED!r})"],
    "fairlead run true": [*RUN, "true"],
    "fairlead run python": [*RUN, *STARTED],
}


def measure(params):
    program = PROGRAMS.get(params["program"], ["-c", params["program"]])
    region = probe.Region()
    with tempfile.TemporaryDirectory() as directory:
        link(Path(directory, "fairlead"))
        cpu_s(program, directory)  # writes the byte code
        region.begin()
        taken = [(cpu_s(BARE, directory), cpu_s(program, directory)) for _ in range(params["n"])]
        region.end()
    answer = region.result({})
    bare, used = (sum(column) / params["n"] for column in zip(*taken, strict=True))
    answer["details"]["metrics"] = {"cpu_s": used, "more_s": used - bare, "bare_s": bare}
    return answer


def link(package):
    """Links to all that the package is made of: an editable install has its extensions elsewhere."""
    try:
        import fairlead._native
    except ImportError:
        raise probe.no_fairlead() from None
    package.mkdir()
    for place in {Path(fairlead.__file__).parent, Path(fairlead._native.__file__).parent}:
        for entry in place.iterdir():
            if entry.suffix == ".so" or place == Path(fairlead.__file__).parent:
                (package / entry.name).symlink_to(entry)


def cpu_s(program, directory):
    """CPU time of one interpreter that does this, with the modules of the directory and of its own."""
    libraries = [directory, *(place for place in sys.path if place.endswith("site-packages"))]
    own = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # -S: the .pth files of the environment are not fairlead's cost
    process = subprocess.Popen(
        [sys.executable, "-S", *program],
        env={**own, "PYTHONPATH": os.pathsep.join(libraries)},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise probe.Failed(f"{' '.join(program)}: exit status {process.returncode}")
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)

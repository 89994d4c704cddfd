"""Run the Python tests on every CPython from 3.11 on that this machine has, and a part of them on PyPy.

Each interpreter gets an environment of its own under build/envs, with a wheel that was built
for it. The one that make test runs on has its environment, and gets the tests that are marked
long, which that left out; named on the command line, it gets a wheel like the others.

    tools/test_all.py [NAME...] [-- PYTEST ARGUMENTS...]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from fairlead.lab.catalogue.interpreters import Interpreter, discover

CLONE = Path(__file__).parents[1]
ENVIRONMENTS = CLONE / "build" / "envs"
SUPPORTED = ("3.11", "3.12", "3.13", "3.13t", "3.14", "3.15", "pypy3.11")
ONCE = (
    # pages drawn by a browser
    "tests/e2e/test_gil_browser.py",
    "tests/e2e/test_report_browser.py",
    "tests/e2e/test_advise_browser.py",
    # experiments, which are run on every interpreter whichever runs the tests
    "tests/interp/test_experiments.py",
    "tests/interp/test_identify.py",
    "tests/interp/test_lab_subjects.py",
    "tests/lifecycle/test_discovery.py",
    "tests/lifecycle/test_probes_end.py",
    # the benchmarks' own working, and that of the examples, whose packages one interpreter has
    "tests/e2e/test_benchmarks.py",
    "tests/e2e/test_examples.py",
    "tests/e2e/test_load_generator.py",
    # the dashboard's expressions, in a real Prometheus
    "tests/e2e/test_dashboard.py",
    # servers, profilers and other tools beside fairlead, which one interpreter has
    "tests/e2e/test_companions.py",
    "tests/e2e/test_pools_sklearn.py",
    "tests/e2e/test_recipes.py",
    # how the tests themselves are run
    "tests/e2e/test_watchdog.py",
    # programs of which something is found
    "tests/e2e/test_gil_findings.py",
    # what the documents say to type, and the command of the lab
    "tests/e2e/test_contributing.py",
    "tests/e2e/test_docs.py",
    "tests/e2e/test_command.py",
    # runs of the lab with programs that end in every way there is, and with disks that are full
    "tests/lifecycle/test_lab_run.py",
    "tests/lifecycle/test_results_survive.py",
    # servers that are measured, which are programs of their own
    "tests/e2e/test_advise_server.py",
    # the tests of an interpreter, which tools/regrtest.py runs on every one
    "tests/lifecycle/test_gil_survives_regrtest.py",
    # pools under random failures
    "tests/stress/test_pools_conservation.py",
    # clusters, which are the same library's on every interpreter
    "tests/lifecycle/test_pools_dask.py",
    "tests/lifecycle/test_lab_cluster.py",
    # processes that are killed while they hold what is in shared memory: C that calls no interpreter
    "tests/lifecycle/test_shared_stress.py",
    # laws of arithmetic
    "tests/property",
    # the standard library's tests of pools, which make peers runs on others
    "tests/lifecycle/test_stdlib_suites.py",
    # the text of the sources and documents: who imports whom, the style of the C, what the guarantees name
    "tests/arch/test_c_style.py",
    "tests/arch/test_compared.py",
    "tests/arch/test_compatibility.py",
    "tests/arch/test_contributing.py",
    "tests/arch/test_cross_compile.py",
    "tests/arch/test_errors.py",
    "tests/arch/test_examples.py",
    "tests/arch/test_layers.py",
    "tests/arch/test_peers.py",
    "tests/arch/test_release.py",
    "tests/arch/test_site.py",
    "tests/arch/test_sync_guarantees.py",
    "tests/arch/test_words.py",
    "tests/unit/test_upstream.py",
)
"""Tests whose outcome does not depend on the interpreter that runs them: the one that make test has run on
runs them, once."""

ENDS = (
    # the lab, its reports, advice, the commands, and what begins a program: Python that asks nothing of an
    # interpreter's insides
    "tests/e2e/test_advise.py",
    "tests/lifecycle/test_advise_ends.py",
    "tests/lifecycle/test_isolation.py",
    "tests/e2e/test_gil_recording.py",
    "tests/e2e/test_run_hook.py",
    "tests/lifecycle/test_launchers.py",
    "tests/unit/advice",
    "tests/unit/lab",
    "tests/unit/report",
    *(
        f"tests/unit/test_{name}.py"
        for name in ("demo", "explain", "machine", "pytest_plugin", "results", "run_command", "words")
    ),
    # the simulator, which is C that calls no interpreter, and what is made of a recording
    *(
        f"tests/unit/gil/test_{name}.py"
        for name in ("gil_intervals", "gil_simulation", "gil_trace", "recording_reader")
    ),
)
"""Tests that the oldest interpreter runs, which is that of make test, and the newest."""

ENDS_AND_FREE = (
    *(f"tests/unit/pools/test_pools_{name}.py" for name in ("hooks", "mishaps", "stream_mishaps", "streams")),
    *(
        f"tests/unit/sync/test_sync_{name}.py"
        for name in (
            "barrier",
            "bounded_queue",
            "channels",
            "combining",
            "counter",
            "countdown",
            "exchanger",
            "phaser",
            "priority_queue",
            "queue",
            "queue_ends",
            "rate",
            "rendezvous",
            "rwlock",
            "select",
            "stamped",
            "startgate",
        )
    ),
)
"""Tests that these two run and the one without a GIL: primitives whose waits are those of others, and what
pools make of the tasks that other tests send through them, which every interpreter runs. So it is with all
that is marked long."""

BY_HAND = (
    # clusters: of a library that the environments here never had
    "tests/lifecycle/test_pools_dask.py",
    "tests/lifecycle/test_lab_cluster.py",
    "tests/stress/test_pools_conservation.py::test_every_future_ends_once_and_nothing_is_left[dask-100]",
    # the site, which make test-site builds and looks at
    "tests/e2e/test_site_browser.py",
    # a build of its own, in what stands for an image of docker: make companions runs it
    "tests/e2e/test_recipes.py::test_docker_and_process_1_is_scheduled_and_takes_orders",
    # another, for systems of which the native tests have the platform file
    "tests/platform/test_build.py::test_extension_with_the_portable_platform_says_what_it_cannot",
)
"""Long tests that are left to who changes what they are about: pytest -m long FILE, in the environment of
make test."""

ON_PYPY = (
    *(f"tests/unit/sync/test_sync_{name}.py" for name in ("lock", "event", "semaphore", "queue")),
    "tests/unit/pools/test_pools.py",
    *(f"tests/unit/pools/test_pools_{name}.py" for name in ("async", "futures", "interface", "stopping")),
    "--timeout=30",
)
"""What PyPy runs. A test of these files that cannot hold there says so itself."""
SILENCE_ON_PYPY_S = "45"
"""A run in which no test begins or ends for so long is ended: see tests/support/watchdog.py."""

BY_FILE = ("--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder")
"""In the order of collection, so that the last files are quick ones and no process is left alone. One more
than the cores of the machine of .ci/run: tests wait for programs that start and end."""

GROUPS = ("--group", "test")
COMPARED_WITH = ("--group", "oracle", "--group", "browser")
"""Libraries for tests of ONCE and ENDS, of which an interpreter in the middle runs none unless it is asked:
they are more than half of what there would be to unpack and to compile."""
GUESTS = ("--group", "guests")
"""Libraries that the scheduler must get on with: for interpreters that it schedules."""


class Failure(Exception):
    """A step of the preparation ended badly; the message is its last line."""


def quietly(*command: str | Path) -> None:
    done = subprocess.run(
        command,
        cwd=CLONE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        print(done.stdout)
        raise Failure(
            (done.stdout.strip() or f"{command[0]}: exit status {done.returncode}").splitlines()[-1]
        )


def prepare(interpreter: Interpreter, complete: bool = True) -> Path:
    """The program of an environment with fairlead, built now, and what its tests need: all, or only what
    those of the middle run."""
    environment = ENVIRONMENTS / interpreter.name
    python = environment / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet")
    made_for = environment / "made-for"
    project = (CLONE / "pyproject.toml").read_text()
    keys = [
        f"{interpreter.executable} {interpreter.version} {all_of_it}\n{project}"
        for all_of_it in (complete, True)
    ]
    if not made_for.exists() or made_for.read_text() not in keys:
        shutil.rmtree(environment, ignore_errors=True)
        quietly(interpreter.path, "-m", "venv", "--without-pip", environment)
        # no library is built from source: the newest release with a wheel for this interpreter is taken
        groups = (
            *GROUPS,
            *(() if interpreter.free_threaded or on_pypy(interpreter) else GUESTS),
            *(COMPARED_WITH if complete else ()),
        )
        quietly(*pip, "install", "--only-binary=:all:", *groups, *dependencies(lab=not on_pypy(interpreter)))
        made_for.write_text(keys[0])
    wheels = environment / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    quietly(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, CLONE)
    quietly(*pip, "install", "--no-deps", "--force-reinstall", next(wheels.glob("*.whl")))
    return python


def in_advance(
    interpreters: list[Interpreter], own: Interpreter | None, complete: bool
) -> Iterator[tuple[Interpreter, Future[Path]]]:
    """Each with its environment, which is prepared while the one before it is tested: that is mostly
    waiting for downloads and for a compiler that has one core. That of `own` is the one that runs this."""
    with ThreadPoolExecutor(1) as ahead:
        coming: deque[tuple[Interpreter, Future[Path]]] = deque()
        for interpreter in interpreters:
            if interpreter == own:
                coming.append((interpreter, ahead.submit(Path, sys.executable)))
            else:
                all_of_it = (complete or interpreter == interpreters[-1]) and not on_pypy(interpreter)
                coming.append((interpreter, ahead.submit(prepare, interpreter, all_of_it)))
            if len(coming) > 1:
                yield coming.popleft()
        yield from coming


def on_pypy(interpreter: Interpreter) -> bool:
    return interpreter.implementation == "PyPy"


def dependencies(lab: bool) -> list[str]:
    """What fairlead needs, and perhaps its extra for the lab."""
    project = tomllib.loads((CLONE / "pyproject.toml").read_text())["project"]
    return [*project["dependencies"], *(project["optional-dependencies"]["lab"] if lab else ())]


def choice(interpreter: Interpreter, own: Interpreter, newest: bool) -> list[str]:
    """Pytest's arguments: on the interpreter of make test what that left out, else what is not for once."""
    if interpreter == own:
        left_out = [f"--deselect={name}" for name in BY_HAND]
        return ["-m", "long", "--numprocesses", "4", "--dist", "worksteal", *left_out]  # most are in one file
    if on_pypy(interpreter):
        return [*BY_FILE, *ON_PYPY]
    left_out = [*ONCE]
    if not newest:
        left_out += ENDS
    if newest or interpreter.free_threaded:
        return [*BY_FILE, *(f"--ignore={name}" for name in left_out)]
    return [*BY_FILE, "-m", "not long", *(f"--ignore={name}" for name in [*left_out, *ENDS_AND_FREE])]


def run_tests(python: Path, arguments: list[str], environment: dict[str, str]) -> tuple[int, str, list[str]]:
    """(exit status, closing line, a line for each test that failed) of pytest, whose output is passed on as
    it comes. Skipped tests are counted and not listed: what an interpreter lacks would hide what failed."""
    command = [python, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", *arguments]
    last = ""
    bad: list[str] = []
    with subprocess.Popen(
        command,
        cwd=CLONE,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line.strip(" =\n") or last
            if line.startswith(("FAILED ", "ERROR ")):
                bad.append(line.strip())
    return process.returncode, last, bad


def main(arguments: list[str]) -> int:
    split = arguments.index("--") if "--" in arguments else len(arguments)
    wanted, pytest_arguments = arguments[:split], arguments[split + 1 :]
    discovery = discover()
    found = [
        one
        for one in discovery.interpreters
        if one.implementation in ("CPython", "PyPy")
        and one.version_key >= (3, 11)
        and (not wanted or one.name in wanted)
    ]
    found.sort(key=lambda one: one.version_key)  # the newest, which runs more, is the last
    for name in (*ONCE, *ENDS, *ENDS_AND_FREE, *BY_HAND, *ON_PYPY[:-1]):
        if not (CLONE / name.partition("::")[0]).exists():
            sys.exit(f"tools/test_all.py: there is no {name} any more; correct the lists of tests")
    results: dict[str, str] = {}
    totals: Counter[str] = Counter()
    failures: list[str] = []
    if not wanted:
        for one in [one for one in found if "#" in one.name]:
            results[one.name] = f"left out, {one.path} is one more of its kind"
            found.remove(one)
    own = None if wanted or pytest_arguments else discovery.running
    for interpreter, prepared in in_advance(found, own, complete=bool(pytest_arguments)):
        print(f"\n== {interpreter.name}: {interpreter.version}, {interpreter.path}", flush=True)
        started = time.monotonic()
        try:
            python = prepared.result()
        except Failure as failure:
            results[interpreter.name] = f"FAILED before the tests: {failure}"
            totals["failed"] += 1
            continue
        chosen = (
            [*BY_FILE, *pytest_arguments]
            if pytest_arguments
            else choice(interpreter, discovery.running, interpreter == found[-1])
        )
        environment = {"FAIRLEAD_TESTS_SILENCE_S": SILENCE_ON_PYPY_S} if on_pypy(interpreter) else {}
        status, closing, bad = run_tests(python, chosen, environment)
        failures += [f"{interpreter.name:8} {line}" for line in bad]
        counts = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|errors?)", closing)}
        totals["passed"] += counts.get("passed", 0)
        totals["failed"] += sum(number for word, number in counts.items() if word != "passed") or bool(status)
        results[interpreter.name] = f"{closing}; {time.monotonic() - started:.0f} s in all"
    for name in SUPPORTED:
        if not wanted and name not in results:
            results[name] = "not found on this machine"
    print()
    for name, result in results.items():
        print(f"{name:8} {result}")
    if failures:
        print("", *failures, sep="\n")
    print(f"\n{totals['passed']} passed, {totals['failed']} failed")
    return 1 if totals["failed"] or not totals["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

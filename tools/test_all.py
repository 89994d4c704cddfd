"""Run the Python tests on every CPython from 3.11 on that this machine has, and a part of them on PyPy.

Each interpreter gets an environment of its own under build/envs, with a wheel that was built
for it. The one that make test runs on has its environment, and gets the tests that are marked
long, which that left out; named on the command line, it gets a wheel like the others. Which tests
the others get is said by the marks in the tests' files, which pyproject.toml explains.

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
IN_THE_GATE = "not nightly and not timing"
SILENCE_ON_PYPY_S = "45"
"""A run in which no test begins or ends for so long is ended: see tests/support/watchdog.py."""

BY_FILE = ("--numprocesses", "3", "--dist", "loadfile", "--no-loadscope-reorder")
"""In the order of collection, so that the last files are quick ones and no process is left alone. One more
than the cores of the machine of .ci/run: tests wait for programs that start and end."""

GROUPS = ("--group", "test")
COMPARED_WITH = ("--group", "oracle", "--group", "browser")
"""Libraries for tests that are marked once or ends, of which an interpreter in the middle runs none unless
it is asked: they are more than half of what there would be to unpack and to compile."""
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


def files_marked(*names: str) -> list[str]:
    """The files of tests that are marked so as a whole, by what they say: an interpreter may lack what they
    import."""
    found = []
    for path in sorted((CLONE / "tests").rglob("test_*.py")):
        marks = re.search(r"^pytestmark = (\[.*?^\]|.*?$)", path.read_text(encoding="utf-8"), re.M | re.S)
        if marks and set(names) & set(re.findall(r"\bmark\.(\w+)", marks[1])):
            found.append(str(path.relative_to(CLONE)))
    return found


def choice(interpreter: Interpreter, own: Interpreter, newest: bool) -> list[str]:
    """Pytest's arguments: on the interpreter of make test what that left out, else what is not for once."""
    if interpreter == own:
        return ["-m", f"long and {IN_THE_GATE}", "--numprocesses", "4", "--dist", "worksteal"]
    if on_pypy(interpreter):
        return [*BY_FILE, "-m", IN_THE_GATE, "--timeout=30", *files_marked("pypy")]
    left_out = ["once"]
    if not newest:
        left_out += ["ends", "long"] if interpreter.free_threaded else ["ends", "long", "ends_and_free"]
    chosen = " and ".join([IN_THE_GATE, *(f"not {name}" for name in left_out)])
    return [*BY_FILE, "-m", chosen, *(f"--ignore={path}" for path in files_marked(*left_out))]


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

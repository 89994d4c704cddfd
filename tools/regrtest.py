"""Run the interpreters' own test suite stock, observed and scheduled, and compare the outcome of every test.

    tools/regrtest.py [INTERPRETER...] [--ways observed,interactive] [--modules test_a,test_b]

For each supported interpreter (those found when none is named) every module of the suite is run stock and
in each of the ways, in processes of its own, by a virtual environment whose site hooks the GIL in every
process that the tests start, ``python -I`` and ``-E`` included (not ``-S``). A test whose outcome differs is
run again, stock and in that way: an outcome that stock runs have too is called flaky, another one is a
difference. Exit status: 0 no difference, 1 a difference, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from test_all import CLONE, Failure, quietly

from fairlead.lab.catalogue.interpreters import Interpreter, discover

WAYS = ("observed", "interactive")
MODULES = (
    "test_threading",
    "test_thread",
    "test_threading_local",
    "test_threadsignals",
    "test_threadedtempfile",
    "test_queue",
    "test_signal",
    "test_fork1",
    "test_asyncio",
    "test_subprocess",
    "test_socket",
    "test_socketserver",
    "test_concurrent_futures",
    "test_multiprocessing_fork",
    "test_multiprocessing_forkserver",
    "test_multiprocessing_spawn",
    "test_multiprocessing_main_handling",
    "test_interpreters",
    "test__interpreters",
    "test__interpchannels",
    "test_faulthandler",
)
EXPECTED = {
    "test.test_threading.ThreadTests.test_import_from_another_thread": "is to import threading first",
    "test.test_faulthandler.FaultHandlerTests.test_dump_ext_modules": "wants no foreign extension loaded",
}
"""Tests that find fairlead imported before them, whatever is hooked, with the reason."""

RESOURCES = {"test_socketserver": "network"}
"""What a module must be granted to run at all; this one talks to itself only."""

VARIABLE = "FAIRLEAD_REGRTEST"
HOOK = f"""
import os
way = os.environ.get({VARIABLE!r}, "stock")
if way != "stock" and os.environ.get("{VARIABLE}_PID") != str(os.getpid()):
    os.environ["{VARIABLE}_PID"] = str(os.getpid())  # not in its further interpreters
    import sys
    path = sys.path[:]
    sys.path.insert(0, {{package!r}})
    import fairlead
    fairlead.__path__ += {{extensions!r}}
    import fairlead.gil
    sys.path[:] = path
    if way == "observed":
        observation = fairlead.gil.observe()
        observation.start()
    else:
        fairlead.gil.schedule(policy=way)
"""
LOOK = """
import fairlead, fairlead._native, fairlead._probe
print(fairlead.__file__, fairlead._native.__file__, fairlead._probe.__file__)
"""
CHECK = f"""
import os, sys
way = os.environ[{VARIABLE!r}]
if way == "stock":
    sys.exit("fairlead" in sys.modules)
import fairlead.gil
if way == "observed":
    sys.exit(not fairlead.gil.counters()["fairlead_gil_acquisitions_total"])
sys.exit(fairlead.gil.scheduler().policy != way)
"""
LIST = """
import os, sys, test
for name in sys.argv[1:]:
    place = os.path.join(os.path.dirname(test.__file__), *name.removeprefix("test.").split("."))
    if os.path.isdir(place):
        names = sorted(n[:-3] for n in os.listdir(place) if n.startswith("test_") and n.endswith(".py"))
        print(name, *[f"test.{name}.{n}" for n in names])
    else:
        print(name, *[name] * os.path.exists(place + ".py"))
"""

Outcomes = dict[str, str]
"""Name of a test to what came of it; the name "" is the whole process."""


@dataclass
class Difference:
    """A test that ended otherwise than stock."""

    way: str
    test: str
    stock: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)

    @property
    def flaky(self) -> bool:
        return set(self.other) <= set(self.stock)

    def __str__(self) -> str:
        def counts(outcomes: Counter[str]) -> str:
            return ", ".join(f"{outcome} x{count}" for outcome, count in sorted(outcomes.items()))

        word = "flaky" if self.flaky else "DIFFERS"
        return f"{word:8} {self.way:12} {self.test}: {counts(self.other)}; stock: {counts(self.stock)}"


def sources() -> str:
    """A digest of all that a build depends on."""
    digest = hashlib.sha256()
    for place in ("native", "src", "meson.build", "meson.options", "pyproject.toml"):
        for path in sorted([CLONE / place, *(CLONE / place).rglob("*")]):
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path} {path.stat().st_size}\n".encode() + path.read_bytes())
    return digest.hexdigest()


def provider(interpreter: Interpreter) -> Path:
    """A program that can import a fairlead which was built now for this interpreter."""
    if Path(interpreter.path) == Path(sys.executable):
        return Path(sys.executable)
    environment = CLONE / "build" / "regrtest" / interpreter.name
    python = environment / "bin" / "python"
    made_for = environment / "made-for"
    key = f"{interpreter.executable} {interpreter.version} {sources()}"
    if made_for.exists() and made_for.read_text() == key:
        return python
    wheels = environment / "wheel"
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet")
    quietly(interpreter.path, "-m", "venv", "--clear", "--without-pip", environment)
    quietly(*pip, "wheel", "--no-deps", "--wheel-dir", wheels, CLONE)
    quietly(*pip, "install", "--no-deps", next(wheels.glob("*.whl")))
    made_for.write_text(key)
    return python


def hooked(python: Path, directory: Path) -> Path:
    """An environment without packages whose every process is what the variable says."""
    done = subprocess.run([python, "-c", LOOK], cwd=directory, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Failure(f"{python} has no fairlead: {done.stderr.strip().splitlines()[-1]}")
    package, *extensions = map(Path, done.stdout.split())
    quietly(python, "-m", "venv", "--without-pip", directory / "venv")
    site = next((directory / "venv" / "lib").glob("python*")) / "site-packages"
    hook = HOOK.format(package=str(package.parents[1]), extensions=[str(one.parent) for one in extensions])
    (site / "fairlead_regrtest.py").write_text(hook)
    (site / "fairlead_regrtest.pth").write_text("import fairlead_regrtest\n")
    made = directory / "venv" / "bin" / "python"
    for way in ("stock", *WAYS):
        check = subprocess.run(
            [made, "-I", "-c", CHECK], env={**os.environ, VARIABLE: way}, capture_output=True, text=True
        )
        if check.returncode or check.stderr:
            raise Failure(f"{made} is not {way}: {check.stderr.strip() or check.returncode}")
    return made


def pieces(python: Path, modules: Sequence[str]) -> tuple[list[str], list[str]]:
    """What this interpreter ships of the modules, packages taken apart; and what it does not."""
    done = subprocess.run([python, "-c", LIST, *modules], capture_output=True, text=True, check=False)
    if done.returncode:
        return [], list(modules)
    rows = [line.split() for line in done.stdout.splitlines()]
    return [name for row in rows for name in row[1:]], [row[0] for row in rows if len(row) == 1]


def outcomes(report: Path) -> Iterator[tuple[str, str]]:
    for case in ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in case} & {"error", "failure", "skipped"}
        yield case.get("name", ""), kinds.pop() if kinds else case.get("result", "completed")


def run(
    python: Path, way: str, module: str, timeout: float, only: Sequence[str] = ()
) -> tuple[Outcomes, str]:
    """The outcomes of a module's tests (of those named only), and what was printed."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        report = Path(directory) / "report.xml"
        command = [python, "-m", "test", "--junit-xml", report, "--timeout", str(timeout), "-W", module]
        if module in RESOURCES:
            command += ["--use", RESOURCES[module]]
        for name in filter(None, only):
            command += ["--match", name]
        with subprocess.Popen(
            command,
            cwd=directory,
            env={**os.environ, VARIABLE: way, "TMPDIR": directory},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                printed, _ = process.communicate(timeout=timeout + 10)
                ended = f"exit status {process.returncode}"
            except subprocess.TimeoutExpired:
                ended = "no end"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            if ended == "no end":
                printed, _ = process.communicate()
        found: Outcomes = {"": ended}
        if report.exists():
            with suppress(ElementTree.ParseError):
                for name, outcome in outcomes(report):
                    if found.get(name, "completed") == "completed":
                        found[name] = outcome
    return found, printed.decode(errors="replace")


def differing(stock: Outcomes, other: Outcomes) -> list[str]:
    """Names of the tests; the whole process only when no single test says why."""
    names = {name for name in {*stock, *other} if name and stock.get(name) != other.get(name)}
    return sorted(names - set(EXPECTED)) or [""] * (not names and stock[""] != other[""])


@dataclass
class Suite:
    """The comparison of one interpreter's modules."""

    python: Path
    ways: Sequence[str]
    timeout: float
    repeats: int
    verbose: bool

    def compare(self, module: str) -> tuple[str, dict[str, int], list[Difference]]:
        """(a line of the table, number of tests by way, differences)"""
        stock, _ = run(self.python, "stock", module, self.timeout)
        counts = {"stock": len(stock) - 1}
        cells, found = [], []
        for way in self.ways:
            other, printed = run(self.python, way, module, self.timeout)
            counts[way] = len(other) - 1
            names = differing(stock, other)
            if names and self.verbose:
                print(printed)
            differences = [Difference(way, f"{module} {name}") for name in names]
            again = [(stock, other)]
            while names and len(again) <= self.repeats:
                once_more = [
                    run(self.python, each, module, self.timeout, names)[0] for each in ("stock", way)
                ]
                again.append((once_more[0], once_more[1]))
            for name, difference in zip(names, differences, strict=True):
                for one, two in again:
                    difference.stock[one.get(name, "not run")] += 1
                    difference.other[two.get(name, "not run")] += 1
            found += differences
            ours = sum(not one.flaky for one in differences)
            flaky = len(differences) - ours
            cells.append(f"{ours} differ" if ours else f"same, {flaky} flaky" if flaky else "same")
        bad = sum(outcome in ("failure", "error") for outcome in stock.values())
        stocks = f"{counts['stock']} tests" + (f", {bad} fail" if bad else "")
        if stock[""] not in ("exit status 0", "exit status 2"):
            stocks += f", {stock['']}"
        return f"{module:48} {stocks:22}" + "".join(f" {cell:18}" for cell in cells), counts, found


def compare(interpreter: Interpreter, options: argparse.Namespace) -> list[Difference]:
    """Print the table of an interpreter; its differences, without those that are only flaky."""
    print(f"\n== {interpreter.name}: {interpreter.version}, {interpreter.path}", flush=True)
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        python = hooked(provider(interpreter), Path(directory))
        modules, missing = pieces(python, options.modules)
        for name, reason in EXPECTED.items():
            print(f"left out, {reason}: {name}")
        if missing:
            print(f"not shipped with this interpreter: {', '.join(missing)}")
        suite = Suite(python, options.ways, options.timeout, options.repeats, options.verbose)
        print(f"{'module':48} {'stock':22}" + "".join(f" {way:18}" for way in options.ways), flush=True)
        total: Counter[str] = Counter()
        found = []
        with ThreadPoolExecutor(options.jobs) as pool:
            for done in as_completed([pool.submit(suite.compare, module) for module in modules]):
                line, counts, differences = done.result()
                print(line, flush=True)
                for difference in differences:
                    print(f"    {difference}", flush=True)
                total.update(counts)
                found += [one for one in differences if not one.flaky]
    print("tests run: " + ", ".join(f"{way} {count}" for way, count in total.items()))
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    def names(text: str) -> list[str]:
        return [name for name in text.split(",") if name]

    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("interpreters", nargs="*", metavar="INTERPRETER", help="3.13, 3.14, ...")
    parser.add_argument("--ways", type=names, default=WAYS, help=f"default {','.join(WAYS)}")
    parser.add_argument(
        "--modules",
        type=names,
        default=MODULES,
        help="names as python -m test knows them; of a package all files, or one: test.PACKAGE.FILE",
    )
    parser.add_argument("--jobs", type=int, default=1, help="modules at once")
    parser.add_argument("--timeout", type=int, default=200, help="seconds per module")
    parser.add_argument("--repeats", type=int, default=2, help="further runs of a module that differs")
    parser.add_argument("--verbose", action="store_true", help="show what a module that differs printed")
    options = parser.parse_args(arguments)
    if unknown := set(options.ways) - set(WAYS):
        parser.error(f"no way {', '.join(unknown)}; there are {', '.join(WAYS)}")
    return options


def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    all_found = discover()
    if options.interpreters:
        chosen = [all_found.select(name) for name in options.interpreters]
    else:
        chosen = [
            one
            for one in all_found.interpreters
            if one.implementation == "CPython"
            and one.version_key >= (3, 11)
            and one.gil
            and "#" not in one.name
        ]
    found = []
    for interpreter in chosen:
        try:
            found += compare(interpreter, options)
        except Failure as failure:
            print(f"{interpreter.name}: FAILED before the tests: {failure}")
            return 1
    print(f"\n{len(found)} differences" if found else "\nno difference")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Run other projects' own tests with fairlead's classes in the place of theirs, and compare what fails with
what is known to differ, and why.

    tools/peers.py [SUITE...] [--python NAME] [--write]

A suite is a file tools/peer_suites/SUITE.toml:

    over = "ThreadPool, ProcessPool"    # what of ours is tested
    package = "pebble==5.2.3"           # the source distribution to fetch; none: the interpreter's own tests
    ships = "test.test_queue"           # a module that the interpreter must have come with
    needs = ["psutil"]                  # further packages, of the tests
    plugin = "for_pebble"               # a module of this folder for pytest to load first; may be left out
    tests = ["test/test_thread_pool.py"]  # pytest's arguments, in the source's folder; {here} is this folder
    kinds = ["threads", "processes"]    # run once for each, in PEERS_KIND; may be left out
    timeout_s = 60                      # of one test; the default

    [differences]                       # tests that fail, by the reason
    "names its private queue" = ["test_name", "TestClass::test_other", "test_with[1-*]", "threads::test_x"]
    [sometimes]                         # tests that fail in some runs, or on some interpreters
    [left_out]                          # tests that are not run: they would hang, or end the process

Nothing of a package is kept in this repository: it is fetched into build/peers. --write puts the rows of the
suites that were run into docs/reference/peers.md, and the reasons of all. Exit status: 0 all as listed, 1 a
test fails that is not listed, or one that is listed passes, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from markdown_format import formatted
from peer_suites.outcomes import matches
from test_all import CLONE, Failure, prepare, quietly

from fairlead.lab.catalogue.interpreters import discover

SUITES = CLONE / "tools" / "peer_suites"
PAGE = CLONE / "docs" / "reference" / "peers.md"
BEGIN = "<!-- what follows is written by tools/peers.py --write -->\n\n"
HEAD = ("| tests of | over | on | pass | skip themselves | fail, as listed |", "|---|---|---|---|---|---|")
LIMIT_S = 900
"""One run of one suite."""

Reasons = Mapping[str, Sequence[str]]


@dataclass(frozen=True, eq=False)
class Suite:
    """What the file says, which the head of this one explains."""

    name: str
    over: str
    tests: Sequence[str]
    plugin: str = ""
    package: str = ""
    ships: str = ""
    needs: Sequence[str] = ()
    kinds: Sequence[str] = ("",)
    timeout_s: float = 60
    differences: Reasons = field(default_factory=dict)
    sometimes: Reasons = field(default_factory=dict)
    left_out: Reasons = field(default_factory=dict)


@dataclass
class Result:
    """What came of a suite: names of tests, with their kind before them."""

    passed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    differ: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """A line for each outcome that the suite's file does not tell."""
    missing: str = ""
    """Why it was not run."""

    def __str__(self) -> str:
        if self.missing:
            return f"not run: {self.missing}"
        return (
            f"{len(self.passed)} pass, {len(self.skipped)} skip themselves, "
            f"{len(self.differ)} fail as listed, {len(self.wrong)} not as listed"
        )


def suites() -> dict[str, Suite]:
    found = {}
    for path in sorted(SUITES.glob("*.toml")):
        try:
            found[path.stem] = Suite(path.stem, **tomllib.loads(path.read_text()))
        except (TypeError, tomllib.TOMLDecodeError) as error:
            sys.exit(f"{path}: {error}")
    return found


def patterns(*reasons: Reasons) -> list[str]:
    return [pattern for each in reasons for names in each.values() for pattern in names]


def fetch(suite: Suite, python: Path, place: Path) -> Path:
    """The folder of the package's source. The package is put beside it, with what its tests need."""
    name = suite.package.partition("==")[0]
    made_for, wanted = place / "made-for", " ".join([suite.package, *suite.needs])
    if not made_for.exists() or made_for.read_text() != wanted:
        pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet")
        quietly(*pip, "download", "--no-deps", "--no-binary", name, "--dest", place, suite.package)
        with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
            archive.extractall(place / "source", filter="data")
        (place / "source" / "pytest.ini").touch()  # for a package without a configuration: not this project's
        quietly(*pip, "install", "--upgrade", "--target", place / "packages", suite.package, *suite.needs)
        made_for.write_text(wanted)
    return next(path for path in (place / "source").iterdir() if path.is_dir())


def run(suite: Suite, kind: str, python: Path, source: Path, place: Path) -> Iterator[tuple[str, str, str]]:
    """(test, outcome, the first line of its failure). What was printed is left in the place."""
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        outcomes = Path(directory) / "outcomes"
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, (SUITES, place / "packages", source))),
            "PEERS_KIND": kind,
            "PEERS_OUTCOMES": str(outcomes),
            "PEERS_LEFT_OUT": json.dumps(patterns(suite.left_out)),
        }
        command = [
            python, "-m", "pytest", "-q", "--tb=native", "-W", "default", "-p", "no:cacheprovider",
            "-p", "outcomes", *(("-p", suite.plugin) if suite.plugin else ()),
            "--timeout", str(suite.timeout_s),
            *(argument.replace("{here}", str(SUITES)) for argument in suite.tests),
        ]  # fmt: skip
        with (
            (place / f"printed-{kind or 'all'}").open("wb") as printed,
            subprocess.Popen(
                command, cwd=source, env=environment, stdin=subprocess.DEVNULL, stdout=printed,
                stderr=subprocess.STDOUT, start_new_session=True,
            ) as process,
        ):  # fmt: skip
            try:
                status = str(process.wait(LIMIT_S))
            except subprocess.TimeoutExpired:
                status = f"none within {LIMIT_S} s"
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        lines = outcomes.read_text().splitlines() if outcomes.exists() else []
        reports = [json.loads(line) for line in lines]
        yield from ((test, outcome, said) for test, outcome, said in reports if outcome != "ended")
        if not reports or reports[-1][1] != "ended":
            yield "(the run)", "failed", f"exit status {status}; see {printed.name}"


def compare(suite: Suite, python: Path, place: Path) -> Result:
    result = Result()
    if (
        suite.ships
        and subprocess.run([python, "-c", f"import {suite.ships}"], stderr=subprocess.DEVNULL).returncode
    ):
        result.missing = f"this interpreter has come without {suite.ships}"
        return result
    place.mkdir(parents=True, exist_ok=True)
    source = fetch(suite, python, place) if suite.package else place
    known, unsteady = patterns(suite.differences), patterns(suite.sometimes)
    stale = set(known)
    for kind in suite.kinds:
        worst: dict[str, tuple[str, str]] = {}
        for name, outcome, said in run(suite, kind, python, source, place):
            if outcome == "failed" or name not in worst:
                worst[name] = outcome, said
        for name, (outcome, said) in worst.items():
            if outcome != "failed":
                (result.passed if outcome == "passed" else result.skipped).append(name)
                continue
            because = [pattern for pattern in known if matches(name, pattern)]
            stale.difference_update(because)
            if because or any(matches(name, pattern) for pattern in unsteady):
                result.differ.append(name)
            else:
                result.wrong.append(f"FAILS   {name}: {said}")
    result.wrong += [
        f"PASSES  {pattern}"
        for pattern in known
        if pattern in stale and any(matches(name, pattern) for name in result.passed)
    ]
    return result


def cells(suite: Suite, result: Result, python: str) -> str:
    """Its row of the page."""
    counts = [len(each) for each in (result.passed, result.skipped, result.differ)]
    tests = f"`{suite.name}`: {suite.package or suite.ships}"
    return "| " + " | ".join(map(str, (tests, suite.over, python, *counts))) + " |"


def explained(suite: Suite) -> Iterator[str]:
    """Its part of the page that is no figure."""
    yield f"## `{suite.name}`, over {suite.over}"
    yield ""
    groups = {"Differs": suite.differences, "Sometimes": suite.sometimes, "Left out": suite.left_out}
    for title, reasons in groups.items():
        for why, names in reasons.items():
            yield f"- {title}: {why} ({', '.join(f'`{name}`' for name in names)})"
    yield ""


def write(known: Mapping[str, Suite], measured: Mapping[str, str]) -> None:
    """Puts the rows into the page. Those of suites that were not run stay."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    old = {line.split("`")[1]: line for line in rest.splitlines() if line.startswith("| `")}
    rows = [row for name in known if (row := measured.get(name, old.get(name))) is not None]
    told = [line for suite in known.values() for line in explained(suite)]
    PAGE.write_text(formatted(before + BEGIN + "\n".join([*HEAD, *rows, "", *told])))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    known = suites()
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(known))
    parser.add_argument("--python", metavar="NAME", help="3.13, 3.14, ...; default: the one that runs this")
    parser.add_argument("--write", action="store_true", help="put the rows into docs/reference/peers.md")
    options = parser.parse_args(arguments)
    if unknown := set(options.suites) - set(known):
        parser.error(f"there is no suite {', '.join(unknown)}; there are {', '.join(known)}")
    try:
        interpreters = discover()
        here = interpreters.running if options.python is None else interpreters.select(options.python)
        python = Path(sys.executable) if options.python is None else prepare(here)
        results = {}
        for name in options.suites or known:
            result = compare(known[name], python, CLONE / "build" / "peers" / here.name / name)
            print(f"{name:20} {result}", *result.wrong, sep="\n    ", flush=True)
            results[name] = result
    except Failure as failure:
        sys.exit(f"tools/peers.py: {failure}")
    if options.write:
        write(
            known,
            {n: cells(known[n], result, here.name) for n, result in results.items() if not result.missing},
        )
    return any(result.wrong for result in results.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Does CPython's own test suite end as on stock, and what does ThreadSanitizer report? Writes checks.json.

    python upstream/checks.py [--variants a,ab] [--whole a,ab] [--quick]

A test whose outcome differs from stock's is run again with its file, alone, on both: only a difference that
is there again counts. Runs that are newer than their interpreter are not repeated; they are kept beside it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from variants import BUILD, FIXED_ADDRESSES, ROOT, SERIES, arguments, patches, python_of, results

sys.path.insert(0, str(ROOT / "tools"))

from regrtest import Outcomes, outcomes

GIL_TESTS = (
    "test_threading",
    "test_thread",
    "test_threading_local",
    "test_threadsignals",
    "test_threadedtempfile",
    "test_queue",
    "test_sched",
    "test_signal",
    "test_socketserver",
    "test_concurrent_futures.test_thread_pool",
)
"""The tests that live by handing the GIL from thread to thread: what ThreadSanitizer watches."""
SUITES = {"whole": (), "gil": GIL_TESTS, "quick": ("test_queue",)}
TIMEOUT_S = 1200
ADDRESS = re.compile(r"0x[0-9a-f]+")
"""Of an object that a subtest is named after: another in every run."""
INTERRUPTED = 130
"""Exit status of `python -m test` when it was."""
STACK = re.compile(r"(?s)(.*WARNING.*?\n)?  (Previous |Atomic |Read |Write |Cycle |Mutex |Thread )")
"""How a stack of a report of ThreadSanitizer begins."""


def lines(variant: str) -> dict[str, int]:
    text = [line for path in patches(variant) for line in path.read_text().splitlines()]
    return {
        "added": sum(line.startswith("+") and not line.startswith("+++") for line in text),
        "removed": sum(line.startswith("-") and not line.startswith(("---", "-- ")) for line in text),
    }


def text_bytes(variant: str) -> int:
    """Of the object file that has the GIL."""
    command = ["size", python_of(variant).parent / "Python" / "ceval_gil.o"]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[0]
    )


def is_newer(report: Path, python: Path) -> bool:
    return report.exists() and report.stat().st_mtime > python.stat().st_mtime


def regrtest(
    variant: str, name: str, tests: tuple[str, ...], *options: str, kind: str = "release", **variables: str
) -> Outcomes:
    """The outcomes of those tests, of all when none is named; run unless there is a run of this build."""
    python = python_of(variant, kind)
    report, log = (python.parent / f"{name}.{what}" for what in ("xml", "log"))
    if not is_newer(report, python):
        report.unlink(missing_ok=True)
        before = FIXED_ADDRESSES if kind == "tsan" else []
        command = [*before, python, "-m", "test", "--timeout", str(TIMEOUT_S), "--junit-xml", report]
        with log.open("wb") as output:
            done = subprocess.run(
                [*command, *options, *tests],
                cwd=BUILD,
                env={**os.environ, **variables},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        if done.returncode == INTERRUPTED or not report.exists():
            report.unlink(missing_ok=True)
            raise SystemExit(f"{variant}: the tests did not come to an end: see {log}")
    found: Outcomes = {}
    for test, outcome in outcomes(report):
        test = ADDRESS.sub("0x", test)
        if found.get(test, "completed") == "completed":
            found[test] = outcome
    return found


def file_of(test: str) -> str:
    """The test file that a test is in, as `python -m test` wants it named."""
    found = re.search(r"test\.(test_\w+(?:\.test_\w+)?)", test)
    if found is None:
        raise SystemExit(f"no file is known for the test {test}")
    return found[1]


def differences(variant: str, mine: Outcomes, stock: Outcomes) -> list[dict[str, str]]:
    """The tests that ended otherwise than on stock, with what came of them when they were run alone."""
    names = sorted(name for name in {*mine, *stock} if mine.get(name) != stock.get(name))
    again = {
        (file, which): regrtest(which, f"alone-{file}", (file,))
        for file in sorted({file_of(name) for name in names})
        for which in ("stock", variant)
    }
    return [
        {
            "test": name,
            "stock": stock.get(name, "not run"),
            "here": mine.get(name, "not run"),
            "stock alone": again[file_of(name), "stock"].get(name, "not run"),
            "here alone": again[file_of(name), variant].get(name, "not run"),
        }
        for name in names
    ]


def suite(variant: str, tests: tuple[str, ...], name: str) -> dict[str, Any]:
    mine, stock = (regrtest(which, name, tests, f"-j{os.cpu_count()}") for which in (variant, "stock"))
    return {
        "tests": len(mine),
        "skipped": sum(outcome == "skipped" for outcome in mine.values()),
        "failed": sorted(test for test, outcome in mine.items() if outcome in ("failure", "error")),
        "differences": differences(variant, mine, stock),
    }


def races(reports: Path) -> Iterator[str]:
    """For each report of ThreadSanitizer, its kind and CPython's innermost function in each of its stacks."""
    for path in reports.glob("report.*"):
        for block in path.read_text(errors="replace").split("==================\n"):
            if kind := re.search(r"WARNING: ThreadSanitizer: ([^(\n]+)", block):
                stacks = [
                    re.search(r"#\d+ (\w+) \S*\.\./source/", stack)
                    for stack in re.split(r"\n\n", block)
                    if STACK.match(stack)
                ]
                places = sorted({stack[1] for stack in stacks[:2] if stack})
                yield f"{kind[1].strip()}: {', '.join(places) or 'elsewhere'}"


def thread_sanitizer(variant: str) -> dict[str, Any]:
    """CPython's own suppressions are not used: stock is what the reports are compared with."""
    place = python_of(variant, "tsan").parent
    reports = place / "reports"
    if not is_newer(place / "gil.xml", place / "python"):
        shutil.rmtree(reports, ignore_errors=True)
        reports.mkdir()
    options = f"log_path={reports}/report exitcode=0 history_size=4"
    found = regrtest(variant, "gil", GIL_TESTS, f"-j{os.cpu_count()}", kind="tsan", TSAN_OPTIONS=options)
    return {
        "tests": len(found),
        "failed": sorted(test for test, outcome in found.items() if outcome in ("failure", "error")),
        "reports": dict(sorted(Counter(races(reports)).items())),
    }


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--variants", default=",".join(SERIES))
    parser.add_argument("--whole", default="stock,ab", help="of these the whole test suite is run (long)")
    options = parser.parse_args()
    where = results(quick=options.quick) / "checks.json"
    found: dict[str, Any] = {"gil tests": GIL_TESTS, "variants": {}}
    for variant in options.variants.split(","):
        one: dict[str, Any] = {"lines": lines(variant), "text bytes": text_bytes(variant)}
        name = "quick" if options.quick else "whole" if variant in options.whole.split(",") else "gil"
        one["suite"] = {"of": name, **suite(variant, SUITES[name], name)}
        if not options.quick:
            one["tsan"] = thread_sanitizer(variant)
        found["variants"][variant] = one
        print(variant, one, flush=True)
        where.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""What the patches cost in code, and whether CPython's own tests pass; writes results/checks.json.

python upstream/checks.py [--tests test_threading,test_queue] [--quick]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import time
from typing import Any

from variants import BUILD, HERE, SERIES, patches, python_of

TESTS = (
    "test_threading,test_thread,test_threadsignals,test_threadedtempfile,test_queue,test_socketserver,test_gc,"
    "test_asyncio,test_concurrent_futures,test_fork1,test_signal,test_sched,test_contextlib,test_capi,"
    "test_interpreters,test__interpreters,test_embed,test_subprocess,test_io,test_sys,test_weakref"
)


def lines(variant: str) -> dict[str, int]:
    text = [line for path in patches(variant) for line in path.read_text().splitlines()]
    return {
        "added": sum(line.startswith("+") and not line.startswith("+++") for line in text),
        "removed": sum(line.startswith("-") and not line.startswith(("---", "-- ")) for line in text),
    }


def text_bytes(variant: str) -> int:
    """Of the object file that has the GIL."""
    command = ["size", BUILD / f"b-{variant}" / "Python" / "ceval_gil.o"]
    return int(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1].split()[0]
    )


def regrtest(variant: str, tests: list[str]) -> dict[str, Any]:
    begin = time.monotonic()
    done = subprocess.run(
        [python_of(variant), "-m", "test", "-j2", "--timeout", "300", *tests],
        capture_output=True,
        text=True,
        check=False,
        cwd=BUILD,
    )
    said = done.stdout
    failed = re.search(r"\d+ tests? failed:\n((?: {4}.*\n)+)", said)
    run = re.search(r"Total tests: run=([\d,]+)", said)
    return {
        "result": said.rpartition("Result: ")[2].strip() or "no result",
        "tests": int(run[1].replace(",", "")) if run else 0,
        "failed": failed[1].split() if failed else [],
        "seconds": round(time.monotonic() - begin),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tests", default=TESTS)
    parser.add_argument("--quick", action="store_true", help="test_queue only")
    options = parser.parse_args()
    tests = ["test_queue"] if options.quick else options.tests.split(",")
    found: dict[str, Any] = {"tests": tests, "variants": {}}
    for variant in SERIES:
        found["variants"][variant] = {
            "lines": lines(variant),
            "text bytes": text_bytes(variant),
            "regrtest": regrtest(variant, tests),
        }
        print(variant, found["variants"][variant], flush=True)
        (HERE / "results" / "checks.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()

"""A plugin of pytest: leaves tests out, and writes the outcome of each of the others at once, so that what
ran before a crash is known."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any


def matches(test: str, pattern: str) -> bool:
    """Whether the pattern, in which * is any text, names the test: its function, or Class::function, or
    kind::Class::function; with or without its parameters."""
    function = test.rpartition("::")[2].partition("[")[0]
    wanted = re.compile("(.*::)?" + re.escape(pattern).replace(r"\*", ".*"))
    bare = test.partition("[")[0]
    return pattern == function or any(wanted.fullmatch(name) is not None for name in (test, bare))


def named(nodeid: str) -> str:
    """Its kind, and its name without the file's."""
    return "::".join(filter(None, [os.environ["PEERS_KIND"], nodeid.partition("::")[2] or nodeid]))


def _report(*words: str) -> None:
    with Path(os.environ["PEERS_OUTCOMES"]).open("a", encoding="utf-8") as outcomes:
        outcomes.write(json.dumps(words) + "\n")


def pytest_collection_modifyitems(items: list[Any]) -> None:
    left_out = json.loads(os.environ["PEERS_LEFT_OUT"])
    items[:] = [one for one in items if not any(matches(named(one.nodeid), pattern) for pattern in left_out)]


def pytest_collectreport(report: Any) -> None:
    if report.failed:
        _report(named(report.nodeid), "failed", f"not collected: {_line(report)}")
    elif report.skipped:
        _report(named(report.nodeid), "skipped", "")


def pytest_runtest_logreport(report: Any) -> None:
    if report.failed or report.skipped or report.when == "call":
        _report(named(report.nodeid), report.outcome, _line(report) if report.failed else "")


def pytest_sessionfinish(exitstatus: int) -> None:
    if exitstatus in {0, 1, 5}:  # not interrupted, and no error of pytest's own; 5: all files skip themselves
        _report("", "ended", "")


def _line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    text = crash.message if crash is not None else str(report.longrepr).strip().rpartition("\n")[2]
    return str(text.splitlines()[0] if text else "")[:200]

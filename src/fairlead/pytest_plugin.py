"""``pytest -p fairlead.pytest_plugin --fairlead-gil``: which threads waited for the GIL in which test, and
behind which.

Named by the projects that want it, and no entry point: that would put it into every pytest of an environment
that has fairlead. What was seen goes with a test's report, as its user properties, so that it comes from the
workers of pytest-xdist too, and stands in a JUnit file.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

SHOWN = 20
"""Tests at the end, at most."""
SECONDS, WAITER, HOLDER, LONGEST = (
    f"fairlead_gil_{name}" for name in ("waited_seconds", "waiter", "holder", "waited_behind_seconds")
)


class Plugin:
    """Observes the GIL during the call of each test, and says at the end what it saw."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None]:
        import fairlead.gil

        with fairlead.gil.observe(wait_threshold=None) as seen:
            yield
        blame = seen.blame
        if blame:
            (waiter, holder), longest = max(blame.items(), key=lambda cell: cell[1])
            told = {SECONDS: sum(blame.values()), WAITER: waiter, HOLDER: holder, LONGEST: longest}
            item.user_properties.extend(told.items())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        told: dict[str, Any] = dict(report.user_properties)
        if report.when == "call" and SECONDS in told:
            self.seen.append((report.nodeid, told))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("waits for the GIL")
        dearest = sorted(self.seen, key=lambda test: -test[1][SECONDS])
        for test, told in dearest[:SHOWN]:
            terminalreporter.write_line(
                f"{told[SECONDS] * 1e3:10.1f} ms  {test}  ({told[WAITER]} behind {told[HOLDER]}:"
                f" {told[LONGEST] * 1e3:.1f} ms)"
            )
        if not dearest:
            terminalreporter.write_line("no thread waited for the GIL in any test")
        elif len(dearest) > SHOWN:
            terminalreporter.write_line(f"... and {len(dearest) - SHOWN} more tests, with less each")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("fairlead").addoption(
        "--fairlead-gil",
        action="store_true",
        help="say at the end which threads waited for the GIL in which test, and behind which",
    )


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--fairlead-gil"):
        return
    from fairlead.gil.observe.access import why_not

    if (why := why_not()) is not None:
        raise pytest.UsageError(f"--fairlead-gil: {why}")
    config.pluginmanager.register(Plugin(), "fairlead-gil")

"""Tools and libraries of others that fairlead is tried beside, and the environment that they are in.

python tests/support/companions.py        install them into the environment of examples/
"""

from __future__ import annotations

import runpy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CLONE = Path(__file__).parents[2]
_FILE = runpy.run_path(str(CLONE / "examples" / "environment.py"))


def environment() -> Any:
    return _FILE["Environment"]()


def variables() -> dict[str, str]:
    """Those with which a program of the environment finds fairlead."""
    return dict(_FILE["FAIRLEAD"])


@dataclass(frozen=True)
class Companion:
    packages: tuple[str, ...]
    command: str
    """{bin} is where the environment's commands are, {app} the program, {out} what the tool may write."""
    head: str = ""
    variables: dict[str, str] = field(default_factory=dict)
    writes: bool = False
    """It writes {out}, and names a function of the program there if `names`."""
    names: str = ""
    started: bool = False
    """By `fairlead run --children`, and the program does not ask for scheduling itself."""


PYTHON = "{bin}/python {app}"
SENTRY = """
import sentry_sdk
nobody = "http://key@127.0.0.1:9/1"
sentry_sdk.init(dsn=nobody, traces_sample_rate=1.0, profiles_sample_rate=1.0, shutdown_timeout=0)
transaction = sentry_sdk.start_transaction(name="work")
transaction.__enter__()
"""
EVENTLET = (
    "import eventlet\neventlet.monkey_patch(thread=False, os=False)\neventlet.spawn(eventlet.sleep, 0.01)\n"
)
POLARS = """
import threading, polars
def query():
    for _ in range(20):
        numbers = polars.DataFrame({"x": range(10_000)}).lazy()
        numbers.group_by(polars.col("x") % 7).agg(polars.len()).collect()
threading.Thread(target=query, daemon=True).start()
"""
FAULTHANDLER = """
import faulthandler
faulthandler.dump_traceback_later(0.01, repeat=True, file=open(os.devnull, "w"))
"""

COMPANIONS = {
    "coverage": Companion(("coverage",), "{bin}/python -m coverage run --data-file {out} {app}", writes=True),
    "viztracer": Companion(
        ("viztracer",), "{bin}/python -m viztracer --quiet -o {out}.json {app}", writes=True, names="echo"
    ),
    "memray": Companion(("memray",), "{bin}/python -m memray run --quiet -o {out} {app}", writes=True),
    "memray-native": Companion(
        ("memray",), "{bin}/python -m memray run --native --quiet -o {out} {app}", writes=True
    ),
    "py-spy": Companion(
        ("py-spy",),
        "{bin}/py-spy record --format raw -r 200 -o {out} -- {bin}/python {app}",
        writes=True,
        names="spin",
    ),
    "scalene": Companion(
        ("scalene",), "{bin}/python -m scalene run --cpu-only -o {out}.json {app}", writes=True
    ),
    "debugpy": Companion(("debugpy",), "{bin}/python -m debugpy --listen 127.0.0.1:0 {app}"),
    "ddtrace": Companion(
        ("ddtrace",),
        "{bin}/ddtrace-run {bin}/python {app} interactive",
        variables={
            "DD_TRACE_ENABLED": "false",
            "DD_PROFILING_ENABLED": "true",
            "DD_TRACE_AGENT_URL": "http://127.0.0.1:9",
        },
        started=True,
    ),
    "opentelemetry-instrument": Companion(
        ("opentelemetry-distro",),
        "{bin}/opentelemetry-instrument --traces_exporter none --metrics_exporter none --logs_exporter none"
        " {bin}/python {app} interactive",
        started=True,
    ),
    "sentry-sdk": Companion(("sentry-sdk",), PYTHON, head=SENTRY),
    "eventlet": Companion(("eventlet",), PYTHON, head=EVENTLET),
    "polars": Companion(("polars",), PYTHON, head=POLARS),
    "faulthandler": Companion(
        (),
        "{bin}/python -X faulthandler {app}",
        head=FAULTHANDLER,
    ),
}
"""Other tools and what they are tried with."""

OTHERS = ("opentelemetry-sdk", "prometheus_client", "ipython")
"""What the how-to guides have examples for."""


def main() -> None:
    for package in dict.fromkeys([*OTHERS, *(name for one in COMPANIONS.values() for name in one.packages)]):
        environment().install([package])


if __name__ == "__main__":
    main()

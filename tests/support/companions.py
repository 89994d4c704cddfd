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
GRPC = """
import concurrent.futures, grpc
echo = grpc.unary_unary_rpc_method_handler(lambda request, context: request)
server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("x.X", {"echo": echo})])
port = server.add_insecure_port("127.0.0.1:0")
server.start()
with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
    assert [channel.unary_unary("/x.X/echo")(b"x") for _ in range(50)] == [b"x"] * 50
"""
POLARS = """
import threading, polars
def query():
    for _ in range(20):
        numbers = polars.DataFrame({"x": range(10_000)}).lazy()
        numbers.group_by(polars.col("x") % 7).agg(polars.len()).collect()
threading.Thread(target=query, daemon=True).start()
"""
FAULTHANDLER = """
import faulthandler, threading, time
nowhere = open(os.devnull, "w")
faulthandler.dump_traceback_later(60, file=nowhere)
def dump():
    while True:
        faulthandler.dump_traceback(nowhere, all_threads=True)
        time.sleep(0.001)
threading.Thread(target=dump, daemon=True).start()
"""
"""Its thread waits, and dumps are made by a thread that holds the GIL: those of its thread read frames of
threads that run, which crashes CPython without fairlead too."""

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
    "grpcio": Companion(("grpcio",), PYTHON, head=GRPC),
    "polars": Companion(("polars",), PYTHON, head=POLARS),
    "faulthandler": Companion(
        (),
        "{bin}/python -X faulthandler {app}",
        head=FAULTHANDLER,
    ),
}
"""Other tools and what they are tried with."""

OTHERS = ("opentelemetry-sdk", "prometheus_client", "ipython", "pytest-xdist", "scikit-learn")
"""What the how-to guides have examples for, and what has a test of its own."""

RECIPES = ("gunicorn", "uwsgi", "celery", "django", "uvicorn", "fastapi", "opentelemetry-distro", "ddtrace")
"""What docs/how-to/recipes.md has commands for."""


def main() -> None:
    tools = [name for one in COMPANIONS.values() for name in one.packages]
    for package in dict.fromkeys([*OTHERS, *RECIPES, *tools]):
        environment().install([package])


if __name__ == "__main__":
    main()

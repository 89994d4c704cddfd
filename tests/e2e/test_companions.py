"""Other tools and libraries in the same process: fairlead does its work beside them, and they do theirs.

`make companions` installs them, beside the programs of examples/, and runs these tests; a tool that is not
installed is left out.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from companions import CLONE, COMPANIONS, environment, variables

from fairlead.gil.observe.access import why_not

ENVIRONMENT = environment()
OBSERVE_IN_CODE = (CLONE / "docs" / "how-to" / "observe-in-code.md").read_text(encoding="utf-8")

pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
    pytest.mark.long,
    pytest.mark.timeout(120),
]

APP = """
import json, os, sys, threading, time
import fairlead.gil as gil

def spin(until):
    while not until.is_set():
        sum(range(200))

def echo(ends):
    until = time.monotonic() + 0.5  # a sampler beside other load sees little of less
    while time.monotonic() < until:
        os.write(ends[1], b"x")
        os.read(ends[0], 1)

def work():
    stop = threading.Event()
    spinners = [threading.Thread(target=spin, args=(stop,), name=f"spinner-{n}") for n in (1, 2)]
    io = threading.Thread(target=echo, args=(os.pipe(),), name="io")
    for thread in (*spinners, io): thread.start()
    io.join()
    stop.set()
    for thread in spinners: thread.join()

if "interactive" not in sys.argv:  # else the program is started so
    gil.schedule()
with gil.observe() as seen:
    work()
names = {thread.name for thread in seen.threads if thread.acquisitions}
state = gil.scheduler()
print(json.dumps([state.policy, state.watchdog_tripped, sorted(names & {"io", "spinner-1", "spinner-2"})]))
"""


def run(command: list[str], directory: Path, more: dict[str, str]) -> subprocess.CompletedProcess[str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEAD", "PYTHON", "COV"))}
    return subprocess.run(
        command,
        cwd=directory,
        env={**own, **variables(), **more},
        capture_output=True,
        text=True,
        timeout=100,
    )


def needs(*packages: str) -> None:
    if not ENVIRONMENT.has(packages):
        pytest.skip(f"{' and '.join(packages)} not installed: make companions")


@pytest.mark.parametrize("name", COMPANIONS)
def test_companion_does_its_work_and_fairlead_its_own(name: str, tmp_path: Path) -> None:
    companion = COMPANIONS[name]
    if companion.packages:
        needs(*companion.packages)
    app, out = tmp_path / "app.py", tmp_path / "out"
    app.write_text("import os\n" + companion.head + APP)
    python = ENVIRONMENT.python if companion.packages else Path(sys.executable)
    words = companion.command.format(bin=python.parent, app=app, out=out).split()
    if companion.started:
        words = [str(Path(sys.executable).with_name("fairlead")), "run", "--children", "--", *words]
    done = run(words, tmp_path, companion.variables)
    assert done.returncode == 0, done.stderr
    [line] = [line for line in done.stdout.splitlines() if line.startswith('["')]
    assert json.loads(line) == ["interactive", False, ["io", "spinner-1", "spinner-2"]], done.stderr
    if companion.writes:
        [written] = [path for path in tmp_path.glob("out*") if path.stat().st_size]
        assert companion.names in written.read_text(errors="replace")


def test_workers_of_xdist_are_scheduled_and_their_tests_pass(tmp_path: Path) -> None:
    needs("pytest-xdist")
    app = tmp_path / "test_app.py"
    app.write_text(
        "import fairlead.gil, pytest\n"
        "@pytest.mark.parametrize('number', range(8))\n"
        "def test_scheduled(number, worker_id):\n"
        "    assert worker_id != 'master'\n"
        "    assert fairlead.gil.scheduler().policy == 'interactive'\n"
    )
    tests = [str(ENVIRONMENT.python), "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", str(app)]
    done = run(
        [str(Path(sys.executable).with_name("fairlead")), "run", "--children", "--", *tests], tmp_path, {}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 passed" in done.stdout


def snippet(begins: str) -> str:
    """A block of Python of the how-to guide."""
    [found] = [
        block
        for block in re.findall(r"```python\n(.*?)```", OBSERVE_IN_CODE, re.DOTALL)
        if block.startswith(begins)
    ]
    return str(found)


def answer(code: str, tmp_path: Path) -> Any:
    done = run([str(ENVIRONMENT.python), "-c", code], tmp_path, {})
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


OPENTELEMETRY = """
import json
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
memory = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([memory]))
{}
[resource] = memory.get_metrics_data().resource_metrics
[scope] = resource.scope_metrics
"""


def test_opentelemetry_reads_the_counters_and_what_made_a_loop_late_as_the_guide_says(tmp_path: Path) -> None:
    needs("opentelemetry-sdk")
    counters = OPENTELEMETRY.format(snippet("from opentelemetry import metrics"))
    after = (
        "print(json.dumps({one.name: [one.unit, one.data.data_points[0].value] for one in scope.metrics}))"
    )
    told = answer(counters + after, tmp_path)
    unit, value = told["fairlead_gil_observed_seconds"]
    assert unit == "s"
    assert value > 0
    assert told["fairlead_gil_acquisitions"][0] == "1"
    loops = OPENTELEMETRY.format(snippet("import asyncio\n\nfrom opentelemetry"))
    after = """
[one] = scope.metrics
print(json.dumps([one.name, one.unit, sorted(point.attributes["cause"] for point in one.data.data_points)]))
"""
    assert answer(loops + after, tmp_path) == ["fairlead_loop_late_seconds", "s", ["core", "gil", "own"]]


def test_prometheus_client_shows_the_counters_as_the_guide_says(tmp_path: Path) -> None:
    needs("prometheus_client")
    after = (
        "\nimport json, prometheus_client\nprint(json.dumps(prometheus_client.generate_latest().decode()))"
    )
    told = answer(snippet("from prometheus_client") + after, tmp_path)
    assert re.search(r"^fairlead_gil_held_seconds_total \d", told, re.MULTILINE)


def test_the_magic_reports_on_a_cell_of_ipython(tmp_path: Path) -> None:
    needs("ipython")
    code = """
import json
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "fairlead.ipython")
good = shell.run_cell("%%gil\\nx = sum(range(1000))")
bad = shell.run_cell("%%gil\\n1 / 0")
print(json.dumps([good.success, shell.user_ns["x"], repr(bad.error_in_exec)]))
"""
    assert answer(code, tmp_path) == [True, 499500, "ZeroDivisionError('division by zero')"]

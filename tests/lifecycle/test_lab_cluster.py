"""``fairlead lab run --on``: machines that measure, lack fairlead, are lost, and are stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from clusters import cluster
from programs import RESULT, interpreter, living

from fairlead.errors import FairleadError, MissingExtraError
from fairlead.lab.isolation.stop import Stop
from fairlead.lab.run import dask_cluster as lab_cluster
from fairlead.lab.run.plan import RunOptions
from fairlead.record.results import read_results

pytest.importorskip(
    "distributed", reason="distributed has no release for this interpreter, or is not installed"
)
pytestmark = [
    pytest.mark.nightly,
    pytest.mark.long,
    pytest.mark.timeout(180),
    # what dask and its libraries do at the end of clusters is theirs
    pytest.mark.filterwarnings("default"),
]

HERE, OTHER, BARE, FATAL = "127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"
COMMAND = [sys.executable, "-c", "from fairlead.cli import main; main()", "lab", "run"]
PLAN = ["square.mutex", "--sizes", "2,3", "--budget", "6s"]
PROBE = f"""
if grep -q {FATAL} /proc/$PPID/cmdline; then kill -9 $PPID; fi
echo '{RESULT}'
"""
"""A sample on one of the machines is the end of the worker that takes it."""
HANGS = """
case $1 in *probe_yield.py) exit 1;; esac
echo x >> {count}
if [ $(wc -l < {count}) -ge 6 ]; then echo >> {begun}; sleep 1000; fi
echo '{result}'
"""


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """Four machines: two workers on the first, one without fairlead, and one that is going to be lost."""
    with cluster([HERE, HERE, OTHER, BARE, FATAL], without_fairlead=BARE, nanny=False) as address:
        yield address


def test_every_machine_measures_once_and_those_that_cannot_are_named(scheduler: str, tmp_path: Path) -> None:
    python = interpreter(tmp_path / "python", PROBE)
    out = tmp_path / "out"
    command = [*COMMAND, *PLAN, "--interpreter", str(python), "--on", scheduler, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=150)
    assert done.returncode == 1, done.stderr
    assert {path.name for path in out.iterdir()} == {HERE, OTHER, "report.html", "comparison.html"}
    for machine in (HERE, OTHER):
        assert {sample.status for sample in read_results(out / machine).samples} == {"ok"}
    assert f"! {BARE}: its worker lacks the lab" in done.stderr
    assert f"! {FATAL}: its worker was lost; what it had measured went with it" in done.stderr
    assert "2 of 4 machines have no run" in done.stderr
    assert "Traceback" not in done.stderr
    assert "held against a" in done.stdout
    again = subprocess.run([*COMMAND[:-1], "compare", str(out)], capture_output=True, text=True, check=True)
    assert again.stdout.splitlines() == done.stdout.splitlines()[:-2]


def test_run_that_is_stopped_keeps_what_the_machines_have_measured(scheduler: str, tmp_path: Path) -> None:
    count, begun, out = tmp_path / "count", tmp_path / "begun", tmp_path / "out"
    os.mkfifo(begun)
    python = interpreter(tmp_path / "python", HANGS.format(count=count, begun=begun, result=RESULT))
    command = [*COMMAND, *PLAN, "--interpreter", str(python), "--on", scheduler, "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    begun.read_bytes()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr
    assert "stopped: " in stderr
    assert f" kept in {out}" in stderr
    kept = [sample for machine in out.iterdir() for sample in read_results(machine).samples]
    assert kept
    assert {sample.status for sample in kept} == {"ok"}
    assert living(str(python)) == []


def test_no_scheduler_is_said_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(lab_cluster, "CONNECT_S", 0.2)
    with (
        Stop() as stop,
        pytest.raises(FairleadError, match=r"no scheduler of dask's is reached at tcp://127"),
    ):
        lab_cluster.run_on("tcp://127.0.0.1:9", RunOptions(), {}, tmp_path, stop=stop, report=lambda *_: None)


@pytest.mark.parametrize("address", ["host", "/bin/true", "nosuch://host:1"])
def test_what_is_no_address_is_refused_before_there_is_a_client(
    address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("distributed.Client", None)  # one that was refused its address takes a minute to end
    with Stop() as stop, pytest.raises(FairleadError, match=f"no .* is reached at {address}"):
        lab_cluster.run_on(address, RunOptions(), {}, tmp_path, stop=stop, report=lambda *_: None)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with Stop() as stop, pytest.raises(MissingExtraError, match=r"pip install 'fairlead\[dask\]'"):
        lab_cluster.run_on("tcp://127.0.0.1:9", RunOptions(), {}, tmp_path, stop=stop, report=lambda *_: None)

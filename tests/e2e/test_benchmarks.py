"""The benchmarks run and say something of everything they ask about; what they say is not judged here."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from fairlead.gil.observe.access import why_not

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

pytestmark = [pytest.mark.once, pytest.mark.skipif(why_not() is not None, reason=str(why_not()))]


def samples(script: str, path: Path, *arguments: str) -> tuple[list[dict[str, Any]], str]:
    done = subprocess.run(
        [sys.executable, BENCHMARKS / script, "--quick", "--json", path, *arguments],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(path.read_text())["samples"], done.stdout


@pytest.mark.parametrize(
    ("script", "arguments", "modes", "figure"),
    [
        pytest.param(
            "gil_echo.py",
            [],
            {"stock", "interval", "fairlead", "floor 0.3", "process"},
            "p99 us",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "gil_open_loop.py", [], {"stock", "interval", "fairlead"}, "requests/s", marks=pytest.mark.long
        ),
        pytest.param(
            "gil_calibration.py", [], {"stock", "interval", "fairlead"}, "requests/s", marks=pytest.mark.long
        ),
        pytest.param(
            "gil_stalls.py", [], {"stock", "interval", "fairlead"}, "max, ms", marks=pytest.mark.long
        ),
        pytest.param(
            "gil_handing.py", [], {"stock", "interval", "fairlead"}, "hops/s", marks=pytest.mark.long
        ),
        pytest.param(
            "gil_servers.py",
            ["--only", "asyncio"],
            {"stock", "interval", "fairlead", "alone"},
            "p99 us",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "gil_squares.py",
            ["--squares", "mutex"],
            {"stock", "interval", "fairlead"},
            "seconds",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "pools_joblib.py",
            [],
            {"loky", "fairlead"},
            "seconds",
            marks=[
                pytest.mark.skipif(find_spec("joblib") is None, reason="joblib is not installed"),
                pytest.mark.long,
            ],
        ),
        pytest.param(
            "gil_cpu_threads.py",
            ["--threads", "2", "--work", "json"],
            {"stock", "interval", "fairlead"},
            "CPU s",
            marks=pytest.mark.long,
        ),
        ("sync_queue.py", ["--only", "to tasks"], {"asyncio.Queue", "fairlead", "fairlead fair"}, "CPU ns"),
        ("sync_rwlock.py", ["--only", "alone"], {"readers first", "writers first", "fairlead"}, "CPU ns"),
        ("sync_stamped.py", ["--only", "alone"], {"threading.Lock", "RWLock", "looking"}, "CPU ns"),
        ("sync_waits.py", ["--only", "with"], {"off", "detecting"}, "CPU ns"),
        ("sync_cancel.py", [], {"asyncio.Lock", "fairlead Lock", "fairlead Semaphore"}, "CPU ns a task"),
        ("sync_fairness.py", [], {"threading.Lock", "fairlead", "fairlead fair"}, "longest, ms"),
        ("sync_counter.py", [], {"lock and int", "itertools.count", "StripedCounter"}, "CPU ns"),
        ("sync_rate.py", ["--only", "free, a thread"], {"lock and sleep", "fairlead"}, "CPU ns"),
        ("sync_meeting.py", ["--only", "exchange"], {"lock and condition", "fairlead"}, "CPU ns"),
        ("sync_select.py", ["--only", "turns of tasks"], {"asyncio.wait", "fairlead"}, "CPU ns"),
        ("sync_channels.py", ["--only", "pair"], {"queue.Queue", "fairlead"}, "CPU ns"),
        ("sync_shared.py", ["--only", "pair"], {"multiprocessing.Lock", "fairlead"}, "CPU ns"),
        pytest.param(
            "gil_endpoint.py",
            [],
            {"C call", "convoy", "1,000 threads"},
            "worst ms",
            marks=pytest.mark.long,
        ),
        ("gil_pair.py", [], {"stock", "counting", "recording", "scheduled"}, "pair ns"),
    ],
)
def test_benchmark_measures_every_row_in_every_mode(
    tmp_path: Path, script: str, arguments: list[str], modes: set[str], figure: str
) -> None:
    found, shown = samples(script, tmp_path / "samples.json", *arguments)
    rows = {sample["row"] for sample in found}
    measured = {sample["mode"] for sample in found}
    assert modes <= measured, "peers that are installed come on top"
    assert {(sample["row"], sample["mode"]) for sample in found} == {
        (row, mode) for row in rows for mode in measured
    }
    assert all(sample["figures"][figure] != 0 for sample in found)
    assert all(row in shown for row in rows)
    assert any(word in shown for word in ("  met ", "  MISSED ", "  open ", ": met", ": MISSED"))


@pytest.mark.long
def test_benchmark_of_observation_judges_every_mode_by_blocks_of_one_process(tmp_path: Path) -> None:
    path = tmp_path / "blocks.json"
    arguments = ["--rounds", "3", "--block", "0.02", "--work", "echo-4,cpu-1", "--json", path]
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "observe_overhead.py", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    blocks = json.loads(path.read_text())
    assert list(blocks) == ["echo-4", "cpu-1"]
    for work, modes in blocks.items():
        assert list(modes) == ["nothing", "again", "counting", "scraped", "recording"]
        assert all(len(taken) == 3 and min(map(min, taken)) > 0 for taken in modes.values())
        report = done.stdout[done.stdout.index(f"{work}: ") :].splitlines()[1:5]
        assert [line.split()[0] for line in report] == list(modes)[1:]
        assert "cover 1" in report[0] or "covers 1" in report[0]
        assert all(line.endswith((": met", ": MISSED", ": open")) for line in report[1:])


def test_benchmark_of_pyperformance_says_what_it_lacks_or_measures(tmp_path: Path) -> None:
    if find_spec("pyperformance") is not None:
        found, _ = samples("gil_pyperformance.py", tmp_path / "samples.json", "--only", "json_dumps")
        assert {sample["mode"] for sample in found} == {"stock", "fairlead"}
        return
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "gil_pyperformance.py"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 2
    assert "pyperformance is not installed: pip install --group bench" in done.stderr

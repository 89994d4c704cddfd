"""What upstream/ publishes is what its commands wrote."""

from __future__ import annotations

import json
import runpy
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

UPSTREAM = Path(__file__).parents[2] / "upstream"
PATCHES = sorted(UPSTREAM.glob("patches/*/*.patch"))


def test_the_tables_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(UPSTREAM)
    page = runpy.run_path(str(UPSTREAM / "table.py"))["page"](UPSTREAM / "results")
    assert (UPSTREAM / "results.md").read_text() == page


def test_b_and_ab_hold_in_each_interleaving_and_each_fault_is_found() -> None:
    found = json.loads((UPSTREAM / "results" / "exploration.json").read_text())
    for variant in ("b", "ab"):
        assert [row["scenario"] for row in found["variants"][variant] if row["failure"]] == []
    assert len(found["faults"]) > 10
    assert all(row["failure"] for row in found["faults"])


RACE = """==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 8 at 0x7b48 by main thread (mutexes: write M0):
    #0 free <null> (libtsan.so.2+0x1)
    #1 free_threadstate ../source/Python/pystate.c:1287 (python+0x2)
    #2 Py_FinalizeEx ../source/Python/pylifecycle.c:1931 (python+0x3)

  Previous atomic read of size 8 at 0x7b48 by thread T1:
    #0 drop_gil /build/b/tsan/../source/Python/ceval_gil.c:264 (python+0x4)

  Thread T1 (tid=9, running) created by main thread at:
    #0 pthread_create <null> (libtsan.so.2+0x5)
    #1 do_start_joinable_thread ../source/Python/thread_pthread.h:290 (python+0x6)

SUMMARY: ThreadSanitizer: data race ../source/Python/pystate.c:1287 in free_threadstate
==================
"""


def test_a_race_is_known_by_its_two_functions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(UPSTREAM)
    (tmp_path / "report.7").write_text(RACE * 2)
    races = runpy.run_path(str(UPSTREAM / "checks.py"))["races"]
    assert list(races(tmp_path)) == ["data race: drop_gil, free_threadstate"] * 2


@pytest.mark.parametrize("patch", PATCHES, ids=lambda path: path.parent.name)
def test_a_patch_is_whole_and_touches_the_gil_alone(patch: Path) -> None:
    run = subprocess.run(["git", "apply", "--numstat", patch], capture_output=True, text=True, check=True)
    news, files = [], set()
    for line in run.stdout.splitlines():
        path = line.split()[2]
        if path.startswith("Misc/NEWS.d/next/Core_and_Builtins/"):
            news.append(path)
        else:
            files.add(path)
    assert len(news) == 1  # CPython asks for one entry in every change
    headers = {"Include/internal/pycore_gil.h", "Include/internal/pycore_tstate.h"}
    assert files <= {"Python/ceval_gil.c", *headers}
    assert patch.read_text().startswith("From ")

"""``fairlead record`` and ``run --loops``: each event loop of a program is watched, unknown to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import fairlead

from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.record.gil_summary import GilSummary
from fairlead.record.recording import Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
LATE = """
import asyncio, os, subprocess, sys, threading, time

def lags():
    # a thread that has run to its end has no _target
    watches = [one for one in threading.enumerate() if one.name == "fairlead-loop-watch"]
    return [target.__self__ for one in watches if (target := getattr(one, "_target", None))]

async def block():
    while not lags():
        await asyncio.sleep(0.001)
    (lag,) = lags()
    while not lag._seen:
        time.sleep(0.001)
    while lag._seen:
        await asyncio.sleep(0.001)
"""


def recorded(tmp_path: Path, text: str, *options: str) -> GilSummary:
    (tmp_path / "app.py").write_text(LATE + text)
    options = (*options, "-o", "out.flrec")
    ran = fairlead("record", *options, "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    return analyse(Recording(tmp_path / "out.flrec"))


def assert_late(summary: GilSummary) -> None:
    (loop,) = summary.loops
    assert loop.name == "MainThread"
    assert loop.late >= 1
    assert loop.own_seconds + loop.gil_seconds + loop.core_seconds > 0


@pytest.mark.parametrize("library", ["asyncio", "uvloop"])
def test_loop_is_watched_until_it_ends(library: str, tmp_path: Path) -> None:
    pytest.importorskip(library, exc_type=ImportError)
    assert_late(recorded(tmp_path, f"import {library}\n{library}.run(block())\nassert not lags()\n"))


def test_loops_of_a_forked_child_and_of_one_that_is_started_are_watched(tmp_path: Path) -> None:
    text = """
if len(sys.argv) < 2 and (child := os.fork()):
    assert os.waitpid(child, 0)[1] == 0
    subprocess.run([sys.executable, "app.py", "started"], check=True)
else:
    asyncio.run(block())
    assert not lags()
"""
    recorded(tmp_path, text, "--children")
    children = list(tmp_path.glob("out.flrec.*"))
    assert len(children) == 2
    for child in children:
        assert_late(analyse(Recording(child)))


def test_child_that_is_forked_while_a_loop_is_watched_has_its_own_watches(tmp_path: Path) -> None:
    text = """
async def main():
    while not lags():
        await asyncio.sleep(0.001)
    child = os.fork()
    if child == 0:
        asyncio._set_running_loop(None)
        assert not lags()
        asyncio.run(block())
        os._exit(0 if not lags() else 1)
    assert os.waitpid(child, 0)[1] == 0

asyncio.run(main())
assert not lags()
"""
    recorded(tmp_path, text)


def test_many_loops_are_watched_at_once(tmp_path: Path) -> None:
    text = """
ready = threading.Barrier(12)

async def wait():
    mine = asyncio.get_running_loop()
    while not any(lag._loop is mine and lag.beats for lag in lags()):
        await asyncio.sleep(0.001)
    await asyncio.to_thread(ready.wait)

threads = [threading.Thread(target=asyncio.run, args=(wait(),), name=f"loop {n}") for n in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert not lags()
"""
    summary = recorded(tmp_path, text)
    assert {loop.name for loop in summary.loops} == {f"loop {n}" for n in range(12)}


def test_asyncio_is_not_imported_for_a_program_without_it(tmp_path: Path) -> None:
    code = "import sys\nassert 'asyncio' not in sys.modules\nimport asyncio.events\n"
    ran = fairlead("run", "--loops", "--", sys.executable, "-c", code, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")

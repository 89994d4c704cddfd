"""What the probe keeps is bounded: its own records are counted, not what an allocator makes of them.

``tools/gil_soak.py`` looks at the memory of a whole process, for minutes.
"""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from scheduled import run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

REMEMBERED = 1024
"""Threads that have ended, of one GIL, before half of them are added up to one account."""
PASSING = 64
"""Threads that may not have gone quite when they have been joined."""
GILS = 1 + 16 + 64
"""The main interpreter's, those known to be gone, and those that may be."""


def test_threads_that_come_and_go_leave_no_more_than_a_bounded_number_of_records(tmp_path: Path) -> None:
    program = """
from fairlead import _probe
alone = len(os.listdir("/proc/self/task"))
def lot():
    for _ in range(600):
        thread = threading.Thread(target=os.stat, args=("/",))
        thread.start()
        thread.join()
    while len(os.listdir("/proc/self/task")) > alone + 1:  # the recorder's
        os.sched_yield()
    return _probe.memory()
found, totals = [], [0]
with gil.record(sys.argv[1], wait_threshold=None), gil.observe(wait_threshold=None) as seen:
    for _ in range(6):
        found.append(lot())
        totals.append(_probe.totals()["acquisitions"])
    turns = sum(thread.acquisitions for thread in seen.threads)
found.append(_probe.memory())
print(json.dumps([found, turns, totals]))
"""
    (*found, after), turns, totals = run(program, str(tmp_path / "out.flrec"))
    assert turns > 6 * 600 * 2
    assert all(now - before > 600 * 2 for before, now in itertools.pairwise(totals))
    for kept in found:
        assert kept["seats"] <= REMEMBERED + PASSING
        assert kept["threads"] <= REMEMBERED + PASSING
        assert (kept["gils"], kept["rings"]) == (1, 1)
    # the second lot was the first to be folded: from then on only tables could find that they want more room
    assert found[-1]["bytes"] <= 1.2 * found[1]["bytes"]
    assert (after["alive_gils"], after["rings"]) == (0, 0)
    assert after["bytes"] < found[-1]["bytes"]


@pytest.mark.skipif(sys.version_info < (3, 13), reason="until 3.12 there is no _interpreters")
def test_interpreters_that_come_and_go_leave_no_more_than_a_bounded_number_of_records(tmp_path: Path) -> None:
    program = """
import _interpreters
from fairlead import _probe
found = []
with gil.record(sys.argv[1]):
    for _ in range(100):
        made = _interpreters.create("isolated")
        _interpreters.run_string(made, "import os; os.stat('/')")
        _interpreters.destroy(made)
        found.append(_probe.memory())
print(json.dumps([max(kept[name] for kept in found) for name in ("gils", "alive_gils", "rings", "seats")]))
"""
    gils, alive, rings, seats = run(program, str(tmp_path / "out.flrec"))
    assert gils <= GILS + 1
    assert 2 <= alive <= gils
    assert rings <= GILS + 1
    assert seats <= 2 * GILS

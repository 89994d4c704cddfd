"""``fairlead run --canary`` around real programs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import fairlead
from running import line, running, tell
from scheduled import HEAD, run

from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule import outside

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
CONVOY = """
import os, sys, threading, time
import fairlead.gil

def compute():
    while True:
        sum(range(500))

def answer():
    while True:
        time.sleep(0.001)

def work():
    threading.Thread(target=compute, daemon=True).start()
    for _ in range(3):
        threading.Thread(target=answer, daemon=True).start()

def until_decided():
    while True:
        counters = fairlead.gil.counters()
        kept = counters["fairlead_gil_canary_kept_total"]
        if kept or counters["fairlead_gil_canary_rejected_total"]:
            now = fairlead.gil.scheduler()
            print(now.policy, now.canary, kept, flush=True)
            return
        time.sleep(0.05)
"""
MADE_UP = """
from fairlead.gil.schedule import canary

def figures(self):
    jitter = 1 + time.monotonic() % 0.01
    scheduled = fairlead.gil.scheduler().policy == "interactive"
    return canary.CanaryWindow(jitter * ({} if scheduled else 1.0), jitter)

canary.Canary._window = figures
"""
"""The figures of all windows; all else is as it is."""
IN_A_CHILD = """
print(fairlead.gil.scheduler().policy, threading.active_count(), flush=True)
child = os.fork()
if not child:
    work()
    until_decided()
    os._exit(0)
os.waitpid(child, 0)
print(fairlead.gil.scheduler().policy, threading.active_count(), flush=True)
"""
TOLD = (
    r"fairlead: process \d+: canary: scheduled, threads wait ([\d.]+) times \[[\d.]+, ([\d.]+)\] as long"
    r" for a turn of the GIL, and [\d.]+ times \[[\d.]+, [\d.]+\] at the 99th percentile \((6|12|24) pairs of"
    r" windows of 0.3 s\): "
)


def canary(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "app.py").write_text(CONVOY + code)
    return fairlead("run", "--canary", "300ms", "--", sys.executable, "app.py", cwd=tmp_path)


@pytest.mark.timing
def test_convoy_is_reported_in_one_line_and_stays_scheduled(tmp_path: Path) -> None:
    ran = canary("work(); until_decided()", tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "interactive kept 1.0\n"), ran.stderr
    told = re.fullmatch(f"{TOLD}threads wait less; policy interactive\n", ran.stderr)
    assert told, ran.stderr
    assert float(told[1]) <= float(told[2]) < 1


def test_window_has_the_figures_of_what_waited_in_it_and_none_where_nothing_did() -> None:
    program = """
from fairlead.gil.schedule import canary
canary.LEAST_WAITS = 2
trial = canary.Canary("interactive", 0.05, 0.05)
without = trial._window()
spinners(2, daemon=True)
while (window := trial._window()) is None:
    pass
print(json.dumps([without, min(window) > 0]))
"""
    assert run(program) == [None, True]


@pytest.mark.parametrize(
    ("factor", "says", "verdict"),
    [
        (0.5, "interactive kept 1.0", "threads wait less; policy interactive"),
        (2.0, "stock rejected 0.0", "threads wait more than 10 % longer; policy stock"),
    ],
)
def test_each_forked_child_tries_for_itself_and_a_process_of_one_thread_does_not(
    factor: float, says: str, verdict: str, tmp_path: Path
) -> None:
    ran = canary(MADE_UP.format(factor) + IN_A_CHILD, tmp_path)
    assert (ran.returncode, ran.stdout) == (0, f"stock 1\n{says}\nstock 1\n"), ran.stderr
    assert re.fullmatch(f"{TOLD}{verdict}\n", ran.stderr), ran.stderr


ENDLESS = """
from fairlead.gil.schedule import canary

class Endless(canary.Canary):  # a window in which nothing was measured decides nothing
    def _window(self):
        time.sleep(self.window_s)
"""
TRIES = """
trial = Endless("interactive", 0.3, 0.1)
trial.run()
now = gil.scheduler()
print(now.policy, now.canary, trial.verdict, flush=True)
"""


@pytest.mark.parametrize(
    ("order", "during"),
    [("off", "stock"), ("stock", "stock"), ("stock", "interactive"), ("interactive", "interactive")],
)
def test_order_from_outside_ends_the_trial(order: outside.Order, during: str) -> None:
    code = f"{HEAD}{ENDLESS}\nprint('ready', flush=True)\nspinners(2, daemon=True)\n{TRIES}"
    with running(code) as process:
        pid = process.pid
        while not outside.scheduled_family(pid):
            pass
        while (seen := outside.send(pid, "status", wait_s=50)).canary == "none" or seen.policy != during:
            pass  # the trial has not begun, or is at its other window
        assert seen.canary == "tries"
        answer = outside.send(pid, order, wait_s=50)
        assert (answer.off, answer.canary) == (order == "off", "none")
        out, err = process.communicate(timeout=100)
    policy = "interactive" if order == "interactive" else "stock"
    assert out == f"{policy} none None\n"
    assert err.endswith(f"the canary has ended: the policy was switched to {policy} meanwhile\n")


def test_program_that_asks_for_the_policy_on_trial_keeps_it() -> None:
    asks = """
def ask():
    while (now := gil.scheduler()).canary != "tries" or now.policy != "interactive":
        time.sleep(0.01)
    gil.schedule()

print("ready", flush=True)
threading.Thread(target=ask).start()
"""
    with running(HEAD + ENDLESS + asks + TRIES) as process:
        assert line(process) == "interactive none None"


def test_child_forked_after_an_order_keeps_to_it() -> None:
    program = """
from fairlead.gil.schedule import launched
launched.try_first("interactive", 0.3, 0.2)
gil.scheduler()
print("ready", flush=True)
sys.stdin.readline()
if not os.fork():
    print(gil.scheduler().policy, flush=True)
    os._exit(0)
os.wait()
"""
    with running(HEAD + program) as process:
        outside.send(process.pid, "interactive", wait_s=0)
        tell(process, "")
        assert line(process) == "interactive"

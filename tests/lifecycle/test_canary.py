"""``fairlead run --canary`` around real programs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from scheduled import HEAD

from fairlead.gil.observe.access import why_not
from fairlead.gil.schedule import outside

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FAIRLEAD = [sys.executable, "-m", "fairlead"]
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
TOLD = re.compile(
    r"fairlead: process \d+: canary: scheduled, threads wait ([\d.]+) times \[[\d.]+, ([\d.]+)\] as long"
    r" for a turn of the GIL, and [\d.]+ times \[[\d.]+, [\d.]+\] at the 99th percentile \((6|12|24) pairs of"
    r" windows of 0.3 s\): threads wait less; policy interactive\n"
)


def canary(code: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    (tmp_path / "app.py").write_text(CONVOY + code)
    command = [*FAIRLEAD, "run", "--canary", "300ms", "--", sys.executable, "app.py"]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)


def test_convoy_is_reported_in_one_line_and_stays_scheduled(tmp_path: Path) -> None:
    ran = canary("work(); until_decided()", tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "interactive kept 1.0\n"), ran.stderr
    told = TOLD.fullmatch(ran.stderr)
    assert told, ran.stderr
    assert float(told[1]) <= float(told[2]) < 1


def test_each_forked_child_tries_for_itself_and_a_process_of_one_thread_does_not(tmp_path: Path) -> None:
    ran = canary(
        """
print(fairlead.gil.scheduler().policy, threading.active_count(), flush=True)
child = os.fork()
if not child:
    work()
    until_decided()
    os._exit(0)
os.waitpid(child, 0)
print(fairlead.gil.scheduler().policy, threading.active_count(), flush=True)
""",
        tmp_path,
    )
    assert (ran.returncode, ran.stdout) == (0, "stock 1\ninteractive kept 1.0\nstock 1\n"), ran.stderr
    assert TOLD.fullmatch(ran.stderr), ran.stderr


def test_loss_switches_it_off_and_says_why() -> None:
    """The figures are made up; all else is as it is."""
    program = """
from fairlead.gil.schedule import canary

class Worse(canary.Canary):
    def _window(self):
        jitter = 1 + time.monotonic() % 0.01
        return canary.CanaryWindow(jitter * (2.0 if gil.scheduler().policy == "interactive" else 1.0), jitter)

Worse("interactive", 0.3, 0.1).run()
print(json.dumps([gil.scheduler().policy, gil.counters()["fairlead_gil_canary_rejected_total"]]))
"""
    process = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, timeout=100, check=True
    )
    assert process.stdout == '["stock", 1.0]\n'
    assert "threads wait more than 10 % longer; policy stock\n" in process.stderr


ENDLESS = """
from fairlead.gil.schedule import canary

class Endless(canary.Canary):  # a window in which nothing was measured decides nothing
    def _window(self):
        time.sleep(self.window_s)
"""


@pytest.mark.parametrize(
    ("order", "during"),
    [("off", "stock"), ("stock", "stock"), ("stock", "interactive"), ("interactive", "interactive")],
)
def test_order_from_outside_ends_the_trial(order: outside.Order, during: str) -> None:
    program = """
print(os.getpid(), flush=True)
spinners(2, daemon=True)
trial = Endless("interactive", 0.3, 0.2)
trial.run()
now = gil.scheduler()
print(now.policy, now.canary, trial.verdict)
"""
    command = [sys.executable, "-c", HEAD + ENDLESS + program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            pid = int(process.stdout.readline())
            while not list(Path("/dev/shm").glob(f"fairlead-control.*.{pid}")):
                pass
            while (seen := outside.send(pid, "status", wait_s=10)).canary == "none" or seen.policy != during:
                pass  # the trial has not begun, or is at its other window
            assert seen.canary == "tries"
            answer = outside.send(pid, order, wait_s=10)
            assert (answer.off, answer.canary) == (order == "off", "none")
            out, err = process.communicate(timeout=100)
        finally:
            process.kill()
    policy = "interactive" if order == "interactive" else "stock"
    assert out == f"{policy} none None\n"
    assert err.endswith(f"the canary has ended: the policy was switched to {policy} meanwhile\n")


def test_program_that_asks_for_the_policy_on_trial_keeps_it() -> None:
    program = """
def ask():
    while (now := gil.scheduler()).canary != "tries" or now.policy != "interactive":
        time.sleep(0.01)
    gil.schedule()

threading.Thread(target=ask).start()
trial = Endless("interactive", 0.3, 0.2)
trial.run()
now = gil.scheduler()
print(now.policy, now.canary, trial.verdict)
"""
    process = subprocess.run(
        [sys.executable, "-c", HEAD + ENDLESS + program],
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    assert process.stdout == "interactive none None\n"


def test_child_forked_after_an_order_keeps_to_it() -> None:
    program = """
from fairlead.gil.schedule import canary
canary.begin("interactive", 0.3, 0.2)
gil.scheduler()
print(os.getpid(), flush=True)
sys.stdin.readline()
if not os.fork():
    print(gil.scheduler().policy, flush=True)
    os._exit(0)
os.wait()
"""
    command = [sys.executable, "-c", HEAD + program]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True) as process:
        try:
            assert process.stdout is not None
            outside.send(int(process.stdout.readline()), "interactive", wait_s=0)
            assert process.communicate("\n", timeout=100)[0] == "interactive\n"
        finally:
            process.kill()

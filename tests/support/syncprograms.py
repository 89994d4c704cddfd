"""Programs that fork, exit, are interrupted, or run greenlets of gevent, while they use the primitives.

One that goes through a table prints each row before it tries it: a failure shows the last.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PRELUDE = f"""
import os, signal, sys, threading, traceback, warnings
from fairlead.sync import *
from fairlead.errors import *
sys.path.append({str(Path(__file__).parent)!r})
warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads

def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread

def in_child(function):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            function()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0

def until(state):
    while not state():
        os.sched_yield()
"""
GREENLETS = """
import gevent
signal.alarm(45)

def until(state):
    while not state():
        gevent.sleep(0)
"""


def run(program: str, greenlets: bool = False, first: str = "") -> str:
    """What it printed."""
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", first + PRELUDE + GREENLETS * greenlets + program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout.splitlines()[-1:]} {done.stderr}"
    assert "Traceback" not in done.stderr, f"{done.stdout.splitlines()[-1:]} {done.stderr}"
    return done.stdout

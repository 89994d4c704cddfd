"""Programs that fork, exit and are interrupted while they use the primitives."""

from __future__ import annotations

import subprocess
import sys

PRELUDE = """
import os, signal, sys, threading, warnings
from fairlead.sync import *
warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads

def until(state):
    while not state():
        os.sched_yield()

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
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, f"a thread ended with an exception:\n{done.stderr}"
    return done.stdout

"""Programs of gevent's greenlets, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

PRELUDE = """
import gevent, signal, sys, threading, warnings
from fairlead.sync import *
from fairlead.errors import *
signal.alarm(45)

def until(state):
    while not state():
        gevent.sleep(0)
"""


def run(program: str, first: str = "") -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", first + PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""

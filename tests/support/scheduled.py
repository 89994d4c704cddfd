"""Programs for a Python process of its own, each printing what the tests want to know as one JSON line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

HEAD = """
import json, os, sys, threading, time
import fairlead.gil as gil

stop = threading.Event()

def spin():
    while not stop.is_set():
        sum(range(100))

def spinners(n, daemon=False):
    threads = [threading.Thread(target=spin, daemon=daemon) for _ in range(n)]
    for thread in threads:
        thread.start()
    return threads

"""


def run(program: str, *arguments: str, timeout: float = 50) -> Any:
    """What the program printed last, read as JSON; its exit status must be 0."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program, *arguments], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    assert "fairlead:" not in done.stderr
    return json.loads(done.stdout.splitlines()[-1])

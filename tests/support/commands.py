"""The command ``fairlead`` in a process of its own, and a program to give it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FAIRLEAD = [sys.executable, "-c", "from fairlead.cli import main; main()"]
CONVOY = """
import threading, time, sys
stop = threading.Event()
def compute():
    while not stop.is_set():
        sum(range(500))
def answer():
    for _ in range(60):
        time.sleep(0.0005)
    stop.set()
threads = [threading.Thread(target=compute, name="cpu"), threading.Thread(target=answer, name="io")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done", *sys.argv[1:])
"""
"""One thread computes, another one waits and computes little: the convoy."""


def fairlead(
    *args: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [*FAIRLEAD, *map(str, args)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100, check=False)

"""The command ``fairlead`` in a process of its own or in this one, and a program to give it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead import cli

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


def python(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """This interpreter."""
    given = {"timeout": 100, **({} if "stdout" in options else {"capture_output": True}), **options}
    return subprocess.run([sys.executable, *map(str, args)], text=True, check=False, **given)


def fairlead(
    *args: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return python(*FAIRLEAD[1:], *args, cwd=cwd, env=env)


def exit_status(*args: str | Path) -> int:
    """Of the command in this process, where how it starts and ends is not the question."""
    with pytest.raises(SystemExit) as ended:
        cli.main([str(arg) for arg in args])
    return int(ended.value.code or 0)

"""The command ``fairlead`` in a process of its own, and programs to give it."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

from fairlead.cli import main

FAIRLEAD = [sys.executable, "-m", "fairlead"]
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
LOOK = "import fairlead.gil, sys; print(fairlead.gil.scheduler().policy, *sys.argv[1:], flush=True)\n"
_LAUNCHER = """
import os, sys
how, *words = sys.argv[1:]
before = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.abspath("agent"), before]))
given = [sys.executable, [sys.executable, *words]]
given += {"execve": [os.environ], "execle": [{}]}.get(how, [])
getattr(os, how.replace("le", "ve"))(*given)
"""


def launcher(directory: Path) -> list[str]:
    """The words of launchers that become one another. As ddtrace-run and opentelemetry-instrument, each puts
    another sitecustomize first, which says that it is there; the last clears the environment."""
    (directory / "launch.py").write_text(_LAUNCHER)
    agent(directory)
    hows = ("execv", "execve", "execvp", "execle")
    return [sys.executable, *(word for how in hows for word in ("launch.py", how))]


def agent(directory: Path) -> None:
    """The sitecustomize of another library."""
    (directory / "agent").mkdir()
    (directory / "agent" / "sitecustomize.py").write_text("print('agent', flush=True)")


def environment(**variables: str) -> dict[str, str]:
    """Ours, as that of a user who asks for nothing."""
    ours = ("FAIRLEAD_TESTS", "FAIRLEAD_UNTESTED")
    kept = {k: v for k, v in os.environ.items() if k.startswith(ours) or not k.startswith("FAIRLEAD")}
    return kept | variables


def fairlead(
    *args: str | Path, cwd: Path, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*FAIRLEAD, *map(str, args)],
        cwd=cwd,
        env=environment(**variables),
        input=text,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def here(*args: str | int) -> subprocess.CompletedProcess[str]:
    """The command in this process, which need not be started for it."""
    command, out, err = list(map(str, args)), io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(command)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return subprocess.CompletedProcess(command, status, out.getvalue(), err.getvalue())

"""The command ``fairlead`` in a process of its own or in this one, and programs to give it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fairlead.cli import main
from fairlead.lab.catalogue import registry
from fairlead.lab.isolation import subprocess_runner

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


def python(*args: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """This interpreter."""
    given = {"timeout": 100, **({} if "stdout" in options else {"capture_output": True}), **options}
    return subprocess.run([sys.executable, *map(str, args)], text=True, check=False, **given)


def fairlead(
    *args: object, cwd: Path | None = None, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    return python(*FAIRLEAD[1:], *args, cwd=cwd, input=text, env=environment(**variables))


def exit_status(*args: object) -> int:
    """Of the command in this process, where how it starts and ends is not the question."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, args)])
    return int(ended.value.code or 0)


def here(*args: object) -> subprocess.CompletedProcess[str]:
    """The command in this process, with what it wrote."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = exit_status(*args)
    return subprocess.CompletedProcess([*map(str, args)], status, out.getvalue(), err.getvalue())


def sample(case: registry.Experiment, way: dict[str, object], **variables: str) -> dict[str, Any]:
    """What the lab gets of one quick sample of an experiment."""
    environment = subprocess_runner.clean_environment(free_threaded=False) | variables
    environment["PYTHONPATH"] = str(registry.DIRECTORY)
    params = {name: parameter.value("quick") for name, parameter in case.parameters.items()} | way
    done = python(
        case.path, json.dumps({**params, "n": case.sizes["quick"][0]}), env=environment, timeout=140
    )
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer

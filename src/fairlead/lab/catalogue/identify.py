"""Asking a program what interpreter it is, by running it once."""

from __future__ import annotations

import json
import os
import signal
import uuid
from pathlib import Path
from typing import Any

from fairlead.errors import InterpreterFailedError
from fairlead.lab.isolation import subprocess_runner
from fairlead.lab.isolation.stop import Stop

IDENTIFY_TIMEOUT_S = 15.0

# Runs on 2.7 too. The word in front of the answer tells it from what a sitecustomize prints. A shared
# libpython is seen in the memory map, not in the configuration: Debian's python is static and says shared.
_PROGRAM = r"""
import json, platform, sys
try:
    import sysconfig
    var = sysconfig.get_config_var
except ImportError:
    var = lambda name: None
try:
    import multiprocessing
    start_method = getattr(multiprocessing, "get_start_method", lambda: "fork")()
except ImportError:
    start_method = None
level = sys.version_info[3]
version = "%d.%d.%d" % tuple(sys.version_info[:3])
if level != "final":
    version += {"alpha": "a", "beta": "b", "candidate": "rc"}[level] + str(sys.version_info[4])
implementation = platform.python_implementation()
jit = getattr(sys, "_jit", None)
telling = ("--enable-optimizations", "--with-lto", "--with-pydebug", "--disable-gil",
           "--enable-experimental-jit", "--with-tail-call-interp", "--with-assertions", "--enable-pystats")
options = [word.strip("'") for word in (var("CONFIG_ARGS") or "").split()]
levels = [word for word in (var("PY_CFLAGS") or var("CFLAGS") or "").split() if word.startswith("-O")]
with open("/proc/self/maps") as maps:
    mapped = maps.read()
build = {
    "compiler": platform.python_compiler(),
    "options": [word for word in options if word.startswith(telling)],
    "optimization": levels[-1] if levels else None,
    "debug": bool(var("Py_DEBUG")) or hasattr(sys, "gettotalrefcount"),
    "shared": "/libpy" in mapped,
    "built": " ".join(platform.python_build()),
    "switch_interval_s": sys.getswitchinterval() if hasattr(sys, "getswitchinterval") else None,
    "check_interval": sys.getcheckinterval() if sys.version_info[0] == 2 else None,
    "start_method": start_method,
}
if implementation == "PyPy":
    build["pypy"] = "%d.%d.%d" % tuple(sys.pypy_version_info[:3])
print("fairlead: " + json.dumps({
    "executable": sys.executable,
    "implementation": implementation,
    "version": version,
    "free_threaded": bool(var("Py_GIL_DISABLED")),
    "gil": bool(getattr(sys, "_is_gil_enabled", lambda: True)()),
    "jit": "pypyjit" in sys.builtin_module_names or bool(jit and jit.is_enabled()),
    "build": build,
}))
"""
_ANSWER = b"fairlead: "
_TYPES = {
    "executable": str,
    "implementation": str,
    "version": str,
    "free_threaded": bool,
    "gil": bool,
    "jit": bool,
    "build": dict,
}


def identify(path: str, stop: Stop | None = None) -> dict[str, Any]:
    """Run a program once and return what it says it is: the fields of ``Interpreter`` but its name and path.

    Raises:
        InterpreterFailedError: it is no Python interpreter; the message says how it failed.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    answer = _ask(path, False, stop)
    if answer["free_threaded"] and "PYTHON_GIL" in os.environ:
        answer = _ask(path, True, stop)
    answer["executable"] = os.path.realpath(answer["executable"])
    return answer


def _ask(path: str, free_threaded: bool, stop: Stop | None) -> dict[str, Any]:
    try:
        outcome = subprocess_runner.run(
            [path, "-c", _PROGRAM],
            env=subprocess_runner.clean_environment(free_threaded=free_threaded),
            timeout_s=IDENTIFY_TIMEOUT_S,
            mark=uuid.uuid4().hex,
            stop=stop,
        )
    except OSError as error:
        raise InterpreterFailedError(
            f"{path} cannot be started as an interpreter: {error.strerror}"
        ) from error
    if outcome.ended == "stopped" and stop is not None:
        stop.check("stopped while looking for interpreters; nothing was measured")
    if outcome.ended == "timeout":
        raise InterpreterFailedError(f"{path} gave no answer within {IDENTIFY_TIMEOUT_S:g} s")
    if outcome.returncode != 0:
        raise InterpreterFailedError(f"{path} is no working Python interpreter: it {how_it_ended(outcome)}")
    for line in outcome.stdout.splitlines():
        if line.startswith(_ANSWER):
            try:
                answer = json.loads(line[len(_ANSWER) :])
            except ValueError:
                break
            if isinstance(answer, dict) and all(
                isinstance(answer.get(name), kind) for name, kind in _TYPES.items()
            ):
                return {name: answer[name] for name in _TYPES}
    raise InterpreterFailedError(f"{path} is not a Python interpreter: it does not answer as one")


def how_it_ended(outcome: subprocess_runner.Outcome) -> str:
    """One clause on a program that ended badly, with the last line that it wrote to standard error."""
    if outcome.returncode < 0:
        try:
            what = f"was ended by {signal.Signals(-outcome.returncode).name}"
        except ValueError:
            what = f"was ended by signal {-outcome.returncode}"
    else:
        what = f"ended with status {outcome.returncode}"
    lines = outcome.stderr.decode("utf-8", "replace").split("\n")
    last = next((line.strip() for line in reversed(lines) if line.strip()), "")
    last = "".join(c if c.isprintable() else "?" for c in last)[:120]
    return f"{what}: {last}" if last else what


def is_program(path: Path) -> bool:
    """Whether there is a file that may be executed; False where this user may not look."""
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113 - Path.is_file raises where it may not look

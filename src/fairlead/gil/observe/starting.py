"""Something of ours in a program before its first line, without changing the program.

The program is started as it is, by its own interpreter, with a sitecustomize of ours before everything else
(``bootstrap/sitecustomize.py``): compared with running it through runpy, sys.argv, sys.path, __main__, the
interpreter's options, console scripts and the exit status are as they always are. What to do there, and what
the environment was before, stands in one variable, ``FAIRLEAD_START``.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.errors import UsageError

BOOTSTRAP = Path(__file__).parent / "bootstrap"
VARIABLE = "FAIRLEAD_START"
_PYTHONS = ("python", "pypy", "graalpy")
_IGNORE_THE_PATH = set("EIS")
_TAKE_A_WORD = set("WXQ")


@dataclass(frozen=True, slots=True)
class Action:
    """``begin(settings)`` of a module is called in the program; it returns why it could not, or None."""

    module: str
    settings: dict[str, Any]


def environment(
    *actions: Action,
    ready: str | None = None,
    pid: int | None = None,
    if_possible: bool = False,
    children: bool = False,
) -> dict[str, str]:
    """The present environment, and in it what the program is to begin with.

    An action that cannot be done ends the program before its first line.

    Args:
        ready: the file that the reason is written to; None: it is said on standard error.
        pid: only the process of this number is ended or says anything; None: any.
        if_possible: the program goes on, after the reason was given.
        children: leave the variables in the environment, for the program's sub-processes.
    """
    path = os.environ.get("PYTHONPATH")
    start = {
        "actions": [[action.module, json.dumps(action.settings)] for action in actions],
        "pythonpath": path,
        "ready": ready,
        "pid": pid,
        "if_possible": if_possible,
        "children": children,
    }
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(BOOTSTRAP), path))),
        VARIABLE: json.dumps(start),
    }


def python_of(command: Sequence[str]) -> list[str] | None:
    """The interpreter of a command and the words that it is given, as far as a look at the files tells.

    None for what is no Python and no script of one: a shell script, another program's binary.

    Raises:
        UsageError: there is no such program.
    """
    found = shutil.which(command[0])
    if found is None:
        raise UsageError(f"{command[0]} cannot be started: {_why_not(command[0])}")
    if _is_python(found):
        return [found, *command[1:]]
    with open(found, "rb") as file:  # noqa: PTH123
        head = file.read(1024).decode("utf-8", "replace").splitlines()
    line = head[0].removeprefix("#!") if head and head[0].startswith("#!") else ""
    if line.split()[:1] == ["/bin/sh"] and head[1:2] and head[1].startswith("'''exec' "):
        line = head[1].removeprefix("'''exec' ")  # how pip writes an interpreter with a long path
    words = _split(line)
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if word != "-S" and "=" not in word]
    return [*words, found, *command[1:]] if words and _is_python(words[0]) else None


def ignored_path(interpreter: Sequence[str]) -> str | None:
    """The option by which a Python is told to ignore PYTHONPATH, which we begin by; None if there is none."""
    words = iter(interpreter[1:])
    for option in words:
        if not option.startswith("-") or option in ("-", "--"):
            return None
        if option.startswith("--"):
            if option == "--check-hash-based-pycs":
                next(words, None)
            continue
        for position, letter in enumerate(option[1:], 2):
            if letter in "cm":
                return None
            if letter in _IGNORE_THE_PATH:
                return option
            if letter in _TAKE_A_WORD:
                if not option[position:]:
                    next(words, None)
                break
    return None


def _is_python(program: str) -> bool:
    names = (Path(program).name, Path(program).resolve().name)
    return any(name.startswith(_PYTHONS) for name in names)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _why_not(program: str) -> str:
    path = Path(program)
    if os.sep not in program or not path.exists():
        return "No such file or directory"
    return "Is a directory" if path.is_dir() else "Permission denied"

"""Something of ours in a program before its first line, without changing the program.

The program is started as it is, by its own interpreter, with a sitecustomize of ours before everything else
(``bootstrap/sitecustomize.py``): compared with running it through runpy, sys.argv, sys.path, __main__, the
interpreter's options, console scripts and the exit status are as they always are. What to do there, and what
the environment was before, stands in one variable, ``FAIRLEAD_START``.
"""

from __future__ import annotations

import json
import mmap
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from fairlead.errors import UsageError

BOOTSTRAP = Path(__file__).parent / "bootstrap"
VARIABLE = "FAIRLEAD_START"
_PYTHONS = ("python", "pypy", "graalpy")
_IGNORE_THE_PATH = set("EIS")
_TAKE_A_WORD = set("WXQ")


class Words(NamedTuple):
    """What ``fairlead VERB`` does, in words."""

    verb: str
    noun: str
    done: str


WORDS = {
    "run": Words("schedule", "scheduling", "scheduled"),
    "record": Words("record", "recording", "recorded"),
    "top": Words("observe", "observing", "observed"),
}


@dataclass(frozen=True, slots=True)
class Action:
    """``begin(settings)`` of a module is called in the program; it returns why it could not, or None."""

    module: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Command:
    """A command, as far as a look at the files tells what it is."""

    words: list[str]
    """Without ``env`` and its words: what those say is in ``environment``."""
    file: str
    """The program's."""
    environment: dict[str, str]
    """What it is to run with, before we add to it."""
    python: list[str] | None
    """The interpreter and the words that it is given; None: no Python and no script of one, as a shell script
    or another program's binary."""
    name: str
    """The program, for messages."""

    def refusal(self, verb: str, *, children: bool) -> str | None:
        """Why ``fairlead run``, ``record`` or ``top`` (``verb``) cannot have it; None if it can."""
        program, word = self.name, WORDS[verb]
        if self.python is None:
            if packed := _packed(self.file):
                return (
                    f"{program} was packed by {packed} and ignores PYTHONPATH, by which {word.noun} begins:"
                    f" call fairlead.gil.{word.verb}() in the program"
                )
            if children:
                return None
            instead = f"put fairlead {verb} right before the python"
            if verb != "top":
                instead += f", or say --children to {word.verb} every Python that it starts"
            return f"{program} is no Python, nor a script of one: {instead}"
        if option := ignored_path(self.python):
            return (
                f"{self.python[0]} {option} ignores PYTHONPATH, by which {word.noun} begins: leave it out, or"
                f" call fairlead.gil.{word.verb}() in the program"
            )
        return None


def read(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Command:
    """Find the program of a command, and whether that is a Python.

    ``env`` is done here and not run, in a script's first line, too: what it sets and clears would come after
    what we add.

    Raises:
        UsageError: there is no such program.
    """
    before = dict(os.environ if environment is None else environment)
    words, changed = _without_env(list(command), before)
    found = _found(words, changed)
    name = words[0]
    line = _first_line(found)
    if line and Path(line[0]).name == "env":
        words, changed = _without_env([*line, found, *words[1:]], changed)
        name = f"{found} (run by {words[0]})"
        found = _found(words, changed)
    return Command(words, found, changed, _python_of(found, words), name)


def _found(words: Sequence[str], environment: Mapping[str, str]) -> str:
    found = shutil.which(words[0], path=environment.get("PATH"))
    if found is None:
        raise UsageError(f"{words[0]} cannot be started: {_why_not(words[0])}")
    return found


def environment(
    *actions: Action,
    base: Mapping[str, str] | None = None,
    verb: str | None = None,
    ready: str | None = None,
    pid: int | None = None,
    if_possible: bool = False,
    children: bool = False,
) -> dict[str, str]:
    """An environment, and in it what the program is to begin with.

    An action that cannot be done ends the program before its first line.

    Args:
        base: the environment without; None: the present one.
        verb: the command that was given, for what is said where the program starts another Python; None:
            nothing is.
        ready: the file that the reason is written to; None: it is said on standard error.
        pid: only the process of this number is ended; None: the first Python.
        if_possible: the program goes on, after the reason was given.
        children: leave the variables in the environment, for the program's sub-processes.
    """
    start = {
        "actions": [[action.module, json.dumps(action.settings)] for action in actions],
        "verb": verb,
        "ready": ready,
        "pid": pid,
        "if_possible": if_possible,
        "children": children,
    }
    return carried(start, os.environ if base is None else base)


def carried(start: Mapping[str, Any], base: Mapping[str, str]) -> dict[str, str]:
    """The environment with the same beginning in it, ahead of whatever is in PYTHONPATH by now."""
    path = base.get("PYTHONPATH")
    if path is not None:
        kept = [entry for entry in path.split(os.pathsep) if entry != str(BOOTSTRAP)]
        path = os.pathsep.join(kept) if kept else None
    return {
        **base,
        "PYTHONPATH": os.pathsep.join(filter(None, (str(BOOTSTRAP), path))),
        VARIABLE: json.dumps({**start, "pythonpath": path}),
    }


def _without_env(words: list[str], environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """As they were if it has options that are none of ours, or runs nothing."""
    if Path(words[0]).name != "env":
        return words, environment
    rest, changed = words[1:], dict(environment)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-", "-i", "--ignore-environment"):
            changed.clear()
        elif word in ("-u", "--unset") and rest:
            changed.pop(rest.pop(0), None)
        elif name == "--unset":
            changed.pop(value, None)
        elif word in ("-S", "--split-string") and rest:
            rest = [*_split(rest[0]), *rest[1:]]
        elif equals and not word.startswith("-"):
            changed[name] = value
        elif word == "--":
            continue
        elif word.startswith("-"):
            break
        else:
            return _without_env([word, *rest], changed)
    return words, environment


def _python_of(found: str, command: Sequence[str]) -> list[str] | None:
    if is_python(found):
        return [found, *command[1:]]
    words = _first_line(found)
    return [*words, found, *command[1:]] if words and is_python(words[0]) else None


def _first_line(program: str) -> list[str]:
    """The interpreter of a script and what it is given; nothing for another program, or one that may be run
    but not read."""
    try:
        with open(program, "rb") as file:  # noqa: PTH123
            head = file.read(1024).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    line = head[0].removeprefix("#!") if head and head[0].startswith("#!") else ""
    if line.split()[:1] == ["/bin/sh"] and head[1:2] and head[1].startswith("'''exec' "):
        line = head[1].removeprefix("'''exec' ")  # how pip writes an interpreter with a long path
    return _split(line)


_MARKS = ((b"MEI\014\013\012\013\016", "PyInstaller"), (b"NUITKA_ONEFILE", "Nuitka"))
"""What PyInstaller's archive ends in, and a variable that Nuitka's loader sets."""


def _packed(program: str) -> str | None:
    """What has made one file of a Python and its scripts; None: nothing that is known here."""
    try:
        with open(program, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:  # noqa: PTH123
            if content[:4] != b"\x7fELF":
                return None
            return next((maker for mark, maker in _MARKS if content.find(mark) >= 0), None)
    except (OSError, ValueError):
        return None


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


def is_python(program: str) -> bool:
    """Whether the file's name, or that of what it links to, is a Python's."""
    names = (Path(program).name, Path(program).resolve().name)
    return any(name.startswith(_PYTHONS) for name in names)


def _split(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _why_not(program: str) -> str:
    path = Path(program)
    if os.sep not in program:
        return f"No such file or directory on PATH; give its path, as ./{program}"
    if not path.exists():
        return "No such file or directory"
    if path.is_dir():
        return "Is a directory; name a program"
    return f"Permission denied; make it executable, or name its interpreter: python {program}"

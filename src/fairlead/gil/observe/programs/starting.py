"""Something of ours in a program before its first line, without changing the program.

The program is started as it is, by its own interpreter, with a sitecustomize of ours before everything else
(``bootstrap/sitecustomize.py``): compared with running it through runpy, sys.argv, sys.path, __main__, the
interpreter's options, console scripts and the exit status are as they always are. What to do there, and what
the environment was before, stands in one variable, ``FAIRLEAD_START``, as a literal of Python.

All that is imported in the program for that, this module included, takes nothing of the standard library that
an interpreter does not have from its start: the program may have modules of its own of those names.
"""

# ruff: noqa: PTH100, PTH110, PTH112, PTH118, PTH119, PTH120, PTH123

from __future__ import annotations

import os

from fairlead.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

BOOTSTRAP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bootstrap")
VARIABLE = "FAIRLEAD_START"
_PYTHONS = ("python", "pypy", "graalpy")
_IGNORE_THE_PATH = set("EIS")
_TAKE_A_WORD = set("WXQ")


class Words:
    """What ``fairlead VERB`` does, in words."""

    def __init__(self, verb: str, noun: str, done: str) -> None:
        self.verb = verb
        self.noun = noun
        self.done = done


WORDS = {
    "run": Words("schedule", "scheduling", "scheduled"),
    "record": Words("record", "recording", "recorded"),
    "top": Words("observe", "observing", "observed"),
}


class Action:
    """``begin(settings)`` of a module is called in the program; it returns why it could not, or None.

    The settings are literals of Python.
    """

    def __init__(self, module: str, settings: dict[str, Any]) -> None:
        self.module = module
        self.settings = settings


class Command:
    """A command, as far as a look at the files tells what it is.

    Attributes:
        words: without ``env`` and its words: what those say is in ``environment``.
        file: the program's.
        environment: what it is to run with, before we add to it.
        python: the interpreter and the words that it is given; None: no Python and no script of one, as a
            shell script or another program's binary.
        name: the program, for messages.
    """

    def __init__(self, words: list[str], file: str, environment: dict[str, str], name: str, cwd: str) -> None:
        self.words = words
        self.file = file
        self.environment = environment
        self.name = name
        self._cwd = cwd
        self.python = _python_of(file, words, cwd)

    def refusal(self, verb: str, *, children: bool) -> str | None:
        """Why ``fairlead run``, ``record`` or ``top`` (``verb``) cannot have it; None if it can."""
        program, word = self.name, WORDS[verb]
        if self.python is None:
            if packed := _packed(os.path.join(self._cwd, self.file)):
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


def read(command: Sequence[str], environment: Mapping[str, str] | None = None, cwd: str = "") -> Command:
    """Find the program of a command, and whether that is a Python.

    It is to be started in the directory ``cwd``; "": in the present one.

    ``env`` is done here and not run, in a script's first line, too: what it sets and clears would come after
    what we add.

    Raises:
        UsageError: there is no such program.
    """
    before = dict(os.environ if environment is None else environment)
    words, changed = _without_env(list(command), before)
    found = _found(words, changed, cwd)
    name = words[0]
    line = _first_line(found, cwd)
    if line and os.path.basename(line[0]) == "env":
        words, changed = _without_env([*line, found, *words[1:]], changed)
        name = f"{found} (run by {words[0]})"
        found = _found(words, changed, cwd)
    return Command(words, found, changed, name, cwd)


def _found(words: Sequence[str], environment: Mapping[str, str], cwd: str) -> str:
    program = words[0]
    places = [""]
    if not os.path.dirname(program):
        path = environment.get("PATH", os.environ.get("PATH", os.defpath))
        places = path.split(os.pathsep) if path else []
    for place in places:
        found = os.path.join(place, program)
        if is_program(os.path.join(cwd, found)):
            return found
    raise UsageError(f"{program} cannot be started: {_why_not(program, cwd)}")


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
        "actions": [[action.module, action.settings] for action in actions],
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
        kept = [entry for entry in path.split(os.pathsep) if entry != BOOTSTRAP]
        path = os.pathsep.join(kept) if kept else None
    return {
        **base,
        "PYTHONPATH": os.pathsep.join(filter(None, (BOOTSTRAP, path))),
        VARIABLE: ascii({**start, "pythonpath": path}),
    }


def _without_env(words: list[str], environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """As they were if it has options that are none of ours, or runs nothing."""
    if os.path.basename(words[0]) != "env":
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


def _python_of(found: str, command: Sequence[str], cwd: str) -> list[str] | None:
    if is_python(os.path.join(cwd, found)):
        return [found, *command[1:]]
    words = _first_line(found, cwd)
    is_script = bool(words) and is_python(os.path.join(cwd, words[0]))
    return [*words, found, *command[1:]] if is_script else None


def _first_line(program: str, cwd: str) -> list[str]:
    """The interpreter of a script and what it is given; nothing for another program, or one that may be run
    but not read."""
    try:
        with open(os.path.join(cwd, program), "rb") as file:
            head = file.read(1024).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    line = head[0].removeprefix("#!") if head and head[0].startswith("#!") else ""
    if line.split()[:1] == ["/bin/sh"] and head[1:2] and head[1].startswith("'''exec' "):
        line = head[1].removeprefix("'''exec' ")  # how pip writes an interpreter with a long path
    return _split(line)


_MARKS = ((b"MEI\014\013\012\013\016", "PyInstaller"), (b"NUITKA_ONEFILE", "Nuitka"))
"""What PyInstaller's archive ends in, and a variable that Nuitka's loader sets."""
_MARK_AT_MOST = 20
_PIECE = 1 << 20


def _packed(program: str) -> str | None:
    """What has made one file of a Python and its scripts; None: nothing that is known here."""
    try:
        with open(program, "rb") as file:
            before, piece = b"", file.read(_PIECE)
            if piece[:4] != b"\x7fELF":
                return None
            while piece:
                for mark, maker in _MARKS:
                    if mark in before + piece:
                        return maker
                before, piece = piece[-_MARK_AT_MOST:], file.read(_PIECE)
    except OSError:
        pass
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


def is_program(file: str) -> bool:
    """Whether it can be executed."""
    return os.access(file, os.X_OK) and not os.path.isdir(file)


def is_python(program: str) -> bool:
    """Whether the file's name, or that of what it links to, is a Python's."""
    return any(os.path.basename(name).startswith(_PYTHONS) for name in (program, os.path.realpath(program)))


def _split(line: str) -> list[str]:
    """Its words, as ``env -S`` and a shell tell them: quotes keep blanks. None if a quote stays open."""
    words: list[str] = []
    quote = ""
    inside = False
    for letter in line:
        if letter.isspace() and not quote:
            inside = False
            continue
        if not inside:
            inside = True
            words.append("")
        if letter == quote:
            quote = ""
        elif letter in "'\"" and not quote:
            quote = letter
        else:
            words[-1] += letter
    return [] if quote else words


def _why_not(program: str, cwd: str) -> str:
    path = os.path.join(cwd, program)
    if os.sep not in program:
        return f"No such file or directory on PATH; give its path, as ./{program}"
    if not os.path.exists(path):
        return "No such file or directory"
    if os.path.isdir(path):
        return "Is a directory; name a program"
    return f"Permission denied; make it executable, or name its interpreter: python {program}"

"""Which Python interpreters this machine has, each identified by running it once."""

from __future__ import annotations

import difflib
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from fairlead.errors import InterpreterFailedError, UsageError
from fairlead.lab.catalogue.identify import identify, is_program
from fairlead.lab.isolation.stop import Stop

_PROGRAM_NAME = re.compile(r"python([23](\.\d+)?[a-z]{0,3})?|pypy([23](\.\d+)?)?")

_FREE = re.compile(r"python3\.\d+t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One interpreter, as it described itself."""

    name: str
    """Short and unique on this machine: "3.13", "3.13t" (free-threaded), "3.13d" (debug), "2.7",
    "pypy3.11"; a second one of a kind gets "3.13#2"."""
    path: str
    """What is started."""
    executable: str
    """The real path of sys.executable: two paths that lead to the same one are the same interpreter."""
    implementation: str
    """"CPython" or "PyPy" (platform.python_implementation())."""
    version: str
    """"3.13.0"."""
    free_threaded: bool
    gil: bool
    """Whether this process has a GIL right now (a free-threaded build can be started with one)."""
    jit: bool
    build: dict[str, Any]
    """Compiler, configure options that matter (optimisation, LTO, debug), shared or static; and what it
    starts with: switch interval, start method of multiprocessing."""

    def as_record(self) -> dict[str, Any]:
        """What a results file keeps of it."""
        return asdict(self)

    @property
    def version_key(self) -> tuple[int, ...]:
        """The version for comparing: major, minor, micro."""
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])

    @property
    def family(self) -> str:
        """What its name begins with: nothing for CPython, "pypy" for PyPy."""
        return "" if self.implementation == "CPython" else self.implementation.lower()

    @property
    def suffix(self) -> str:
        """What its name ends with: "t" for a free-threaded build, "d" for a debug build."""
        return "t" * self.free_threaded + "d" * bool(self.build.get("debug"))

    def answers_to(self, wanted: str) -> bool:
        """Whether a full version ("3.13.0", "3.13.1t") or a shortened name ("3", "pypy") means it."""
        shortened = [self.family, f"{self.family}{self.version_key[0]}"] if not self.suffix else []
        return wanted != "" and wanted in [f"{self.family}{self.version}{self.suffix}", *shortened]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """A program that looked like an interpreter and could not be identified as one."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """What was found: the running interpreter first, the others by implementation and version."""

    interpreters: tuple[Interpreter, ...]
    rejected: tuple[Rejected, ...]
    leads_to: dict[str, str]
    """Every path that was looked at, with the executable that it turned out to start."""

    @property
    def running(self) -> Interpreter:
        """The one that runs fairlead."""
        return self.interpreters[0]

    def select(self, asked: str) -> Interpreter:
        """The interpreter meant by a path or command that ``discover`` was given, or by a name.

        Names are "3.13", "3.13t", "2.7", "pypy3.11" (the first found of several), "3.13.0" and
        "python3.13", and for the newest of a kind "3" and "pypy".

        Raises:
            UsageError: nothing of that name was found; names what was.
            InterpreterFailedError: it is a program that could not be identified; says why.
        """
        path = as_path(asked)
        for rejected in self.rejected:
            if rejected.path == path:
                raise InterpreterFailedError(rejected.reason)
        wanted = asked.lower().removeprefix("c").removeprefix("python")
        for interpreter in self.interpreters:
            if wanted == interpreter.name or (path and self.leads_to.get(path) == interpreter.executable):
                return interpreter
        kin = [i for i in self.interpreters if i.answers_to(wanted)]
        if kin:
            return max(kin, key=lambda i: i.version_key)
        names = [i.name for i in self.interpreters]
        close = difflib.get_close_matches(wanted, names, n=1)
        hint = f"did you mean {close[0]}? " if close else ""
        found = ", ".join(names)
        raise UsageError(f"no interpreter {asked!r} here: {hint}found: {found}; another is given by its path")


def as_path(asked: str) -> str | None:
    """The absolute path of a path or of a command on PATH; None if it can only be a name."""
    found = os.path.expanduser(asked) if os.sep in asked else shutil.which(asked)  # noqa: PTH111
    return os.path.abspath(found) if found else None  # noqa: PTH100 - "a/../b" is what the user meant


def running(stop: Stop | None = None) -> Interpreter:
    """The interpreter that runs fairlead, as it is started (a virtual environment's own program)."""
    return _named([_identified(sys.executable, stop)])[0]


def discover(extra: Sequence[str] = (), *, elsewhere: bool = True, stop: Stop | None = None) -> Discovery:
    """Find and identify the machine's interpreters; each program is run once, a few at a time.

    Looked at, in this order: the running one, the paths and commands in ``extra`` (what is neither is
    left to ``Discovery.select``), and unless ``elsewhere`` is False PATH, pyenv's versions, uv's store and
    ``~/.local/share/pythons/bin``.
    Of several paths to one executable the first counts. pyenv's shims are not run: they lead to the
    versions that are looked at anyway, or nowhere.

    Raises:
        InterpreterFailedError: the running interpreter itself fails; the failures of others are in
            ``rejected``.
        RunInterruptedError: ``stop`` was set meanwhile; whatever was being run has ended.
    """
    asked = [path for name in extra if (path := as_path(name))]
    paths: dict[str, str] = {}
    first_with: dict[object, str] = {}
    for path in [sys.executable, *asked, *map(str, _candidates() if elsewhere else ())]:
        paths[path] = first_with.setdefault(_file(path), path)
    found: dict[str, Interpreter] = {}
    leads_to: dict[str, str] = {}
    rejected = []
    with ThreadPoolExecutor(max_workers=min(4, 1 + len(os.sched_getaffinity(0)))) as pool:
        futures = {path: pool.submit(_identified, path, stop) for path in first_with.values()}
        for path, first in paths.items():
            try:
                interpreter = futures[first].result()
            except InterpreterFailedError as failure:
                if path == sys.executable:
                    raise
                if path == first or path in asked:
                    rejected.append(Rejected(path=path, reason=str(failure)))
            else:
                found.setdefault(interpreter.executable, interpreter)
                leads_to[path] = interpreter.executable
    this, *others = _named(found.values())
    others.sort(key=lambda i: (i.implementation, i.version_key, i.suffix))
    return Discovery(interpreters=(this, *others), rejected=tuple(rejected), leads_to=leads_to)


def free_threaded(stop: Stop | None = None) -> Interpreter | None:
    """The newest CPython without a GIL among the programs that are named so ("python3.14t"), or None.

    Raises:
        RunInterruptedError: ``stop`` was set meanwhile; whatever was being run has ended.
    """
    found = []
    for path in {
        _file(str(path)): str(path) for path in _candidates() if _FREE.fullmatch(path.name)
    }.values():
        try:
            found.append(_identified(path, stop))
        except InterpreterFailedError:
            continue
    without = [one for one in _named(found) if one.free_threaded and not one.gil]
    return max(without, key=lambda one: one.version_key, default=None)


def contrast(discovery: Discovery) -> tuple[Interpreter, ...]:
    """The running interpreter and the most telling one of each other kind that was found.

    Those are, in this order: the newest CPython with a GIL, the newest free-threaded build, the newest
    PyPy and the oldest CPython. Debug builds are left out.
    """
    plain = [i for i in discovery.interpreters if not i.build.get("debug")]
    gil = [i for i in plain if i.implementation == "CPython" and not i.free_threaded]
    kinds = [gil, [i for i in plain if i.free_threaded], [i for i in plain if i.implementation == "PyPy"]]
    chosen = [discovery.running, *(max(kind, key=lambda i: i.version_key) for kind in kinds if kind)]
    if gil:
        chosen.append(min(gil, key=lambda i: i.version_key))
    return tuple({i.name: i for i in chosen}.values())


def choose_interpreters(
    asked: Sequence[str], all_found: bool, contrasted: bool, stop: Stop
) -> tuple[Interpreter, ...]:
    """Those that a run is to measure: the named ones, all, one of each kind, or the running one.

    Raises:
        UsageError: more than one of these was wished, or one that was named is not here.
        RunInterruptedError: ``stop`` was set meanwhile.
    """
    if bool(asked) + all_found + contrasted > 1:
        raise UsageError(
            "--interpreter, --all-interpreters and --contrast exclude each other: give one of them"
        )
    if not asked and not all_found and not contrasted:
        return (running(stop),)
    paths_alone = bool(asked) and all(map(as_path, asked))
    found = discover(asked, elsewhere=not paths_alone, stop=stop)
    if all_found:
        return found.interpreters
    if contrasted:
        return contrast(found)
    return tuple({i.name: i for i in map(found.select, asked)}.values())


def _file(path: str) -> object:
    """Equal for two paths to one file, through symbolic links or hard ones (python3.6 and python3.6m)."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return path
    return status.st_dev, status.st_ino


def _identified(path: str, stop: Stop | None) -> Interpreter:
    answer = identify(path, stop)
    if Path(path).parent.name == "shims":
        # a shim decides anew at every start, and takes its time: start what it starts
        path = answer["executable"]
    return Interpreter(name="", path=path, **answer)


def _named(found: Iterable[Interpreter]) -> list[Interpreter]:
    """Give each its name; the first of a kind gets the plain one."""
    taken: Counter[str] = Counter()
    named = []
    for interpreter in found:
        major, minor = interpreter.version_key[:2]
        name = f"{interpreter.family}{major}.{minor}{interpreter.suffix}"
        taken[name] += 1
        if taken[name] > 1:
            name += f"#{taken[name]}"
        named.append(replace(interpreter, name=name))
    return named


def _candidates() -> Iterator[Path]:
    """Every program that looks like an interpreter by its name and place."""
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv")
    for directory in map(Path, filter(None, os.get_exec_path())):
        if directory.resolve() != (pyenv / "shims").resolve():
            yield from _programs(directory)
    stores = [
        pyenv / "versions",
        Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "uv/python",
    ]
    if "UV_PYTHON_INSTALL_DIR" in os.environ:
        stores.append(Path(os.environ["UV_PYTHON_INSTALL_DIR"]))
    for store in stores:
        for version in _entries(store):
            yield from _programs(version / "bin")
    yield from _programs(home / ".local/share/pythons/bin")


def _entries(directory: Path) -> list[Path]:
    """None of a directory that is missing, or that this user may not read (HOME can be another user's)."""
    try:
        return sorted(directory.iterdir())
    except OSError:
        return []


def _programs(directory: Path) -> Iterator[Path]:
    for entry in _entries(directory):
        if _PROGRAM_NAME.fullmatch(entry.name) and is_program(entry):
            yield entry

"""What becomes of a schedule or a recording where the program starts another Python.

An ``exec`` is the same process with another program in it: that is begun with the same, or one line says that
it is not. Launchers work so (``ddtrace-run``, ``opentelemetry-instrument``), and servers that renew
themselves. A sub-process is begun with the same if ``--children`` was given; else one line says, once, that
it is not. What we add stands first in the new program's PYTHONPATH: a launcher may have put a sitecustomize
of its own there, which ours runs in its turn.

The functions of ``os`` and ``subprocess`` that start programs are wrapped for that, in processes that
``fairlead run`` or ``fairlead record`` has started, and in no others.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

_start: dict[str, Any] = {}
_pid = 0
_told = False


def follow(start: dict[str, Any]) -> None:
    """Wrap what starts programs. ``start`` is what this one was begun with (``starting.environment``)."""
    import _posixsubprocess

    global _pid
    _start.update(start)
    _pid = os.getpid()
    os.execv, os.execve = _execv(os.execve, os.execv), _execve(os.execve)
    os.posix_spawn = _spawn(os.posix_spawn)
    os.posix_spawnp = _spawn(os.posix_spawnp)
    fork_exec = _posixsubprocess.fork_exec = _fork_exec(_posixsubprocess.fork_exec)
    if "subprocess" in sys.modules:  # a .pth file may have imported it before
        sys.modules["subprocess"]._fork_exec = fork_exec  # type: ignore[attr-defined]


def _execv(execve: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def execv(path: Any, argv: Any, /) -> Any:
        changed = _after_exec(path, argv, os.environ)
        with _written():
            return original(path, argv) if changed is None else execve(*changed)

    return execv


def _execve(original: Callable[..., Any]) -> Callable[..., Any]:
    def execve(path: Any, argv: Any, env: Any) -> Any:
        changed = None if isinstance(path, int) else _after_exec(path, argv, env)
        with _written():
            return original(path, argv, env) if changed is None else original(*changed)

    return execve


def _written() -> AbstractContextManager[None]:
    """What was recorded is in the file before the exec; it goes on if there is no such program."""
    from fairlead.gil.observe import recorder

    return recorder.paused()


def _spawn(original: Callable[..., Any]) -> Callable[..., Any]:
    def posix_spawn(path: Any, argv: Any, env: Any, /, **options: Any) -> Any:
        given = os.environ if env is None else env  # None: from Python 3.13 on
        changed = _for_child(path, argv, given)
        return original(*((path, argv, env) if changed is None else changed), **options)

    return posix_spawn


def _fork_exec(original: Callable[..., Any]) -> Callable[..., Any]:
    def fork_exec(
        args: Any, executables: Any, close: Any, fds: Any, cwd: Any, env: Any, /, *rest: Any
    ) -> Any:
        given = os.environ if env is None else dict(entry.split(b"=", 1) for entry in env)
        changed = _for_child(None, args, given)
        if changed is not None:
            file, args, variables = changed
            executables = executables if file is None else [os.fsencode(file)]
            env = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
        return original(args, executables, close, fds, cwd, env, *rest)

    return fork_exec


def _after_exec(path: Any, argv: Any, env: Any) -> tuple[Any, Any, dict[str, str]] | None:
    """The exec that goes on with what this program was begun with; None: as it is."""
    from fairlead.gil.observe import recorder
    from fairlead.gil.observe.programs import starting

    command = _command([path, *list(argv)[1:]], env)
    if command is None:
        return None
    why = command.refusal(_start["verb"], children=_start["children"])
    if why is not None:
        if command.python is None:
            why = f"{command.words[0]} is no Python"
        if command.python or os.getpid() == _pid:  # a forked child's ls is no news
            _say(f"process {os.getpid()} is not {starting.WORDS[_start['verb']].done} from here on: {why}")
        return None
    execs = _start.get("execs", 0) + 1
    current = recorder.current()
    actions = []
    for module, text in _start["actions"]:
        settings = json.loads(text)
        if current is not None and "out" in settings:
            settings |= {"out": str(current.path), "execs": execs}
        actions.append([module, json.dumps(settings)])
    now = {"actions": actions, "execs": execs, "pid": os.getpid(), "ready": None, "if_possible": True}
    return _begun(command, path, argv, {**_start, **now})


def _begun(command: Any, path: Any, argv: Any, start: Mapping[str, Any]) -> tuple[Any, Any, dict[str, str]]:
    from fairlead.gil.observe.programs import starting

    if len(command.words) != len(argv):  # of env, and it would set and clear after us
        path, argv = command.file, command.words
    return path, argv, starting.carried(start, command.environment)


def _for_child(path: Any, argv: Any, env: Any) -> tuple[Any, Any, dict[str, str]] | None:
    """The program, its words and the environment in which a sub-process is begun with the same; None: as it
    is."""
    global _told
    children = _start["children"]
    if _told and not children:
        return None
    command = _command(argv, env)
    if command is None or command.python is None or "resource_tracker" in command.python[-1]:
        return None
    from fairlead.gil.observe.programs import starting

    if children:
        return _begun(command, path, argv, _start)
    _told = True
    verb = _start["verb"]
    done = starting.WORDS[verb].done
    _say(
        f"process {os.getpid()} starts another Python ({command.words[0]}), which is not {done}: with"
        f" fairlead {verb} --children it is"
    )
    return None


def _command(argv: Sequence[Any], env: Mapping[Any, Any]) -> Any:
    """A ``starting.Command``, None where there is no such program: starting it will say so."""
    from fairlead.errors import UsageError
    from fairlead.gil.observe.programs import starting

    try:
        words = [os.fsdecode(word) for word in argv]
        return (
            starting.read(words, {os.fsdecode(k): os.fsdecode(v) for k, v in env.items()}) if words else None
        )
    except (UsageError, OSError, TypeError, ValueError, AttributeError):
        return None


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"fairlead: {text}", file=sys.stderr, flush=True)

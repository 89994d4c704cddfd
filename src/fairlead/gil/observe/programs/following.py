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

import os
import sys

from fairlead.errors import UsageError
from fairlead.gil.observe.importing import when_imported
from fairlead.gil.observe.programs import starting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

_start: dict[str, Any] = {}
_pid = 0
_told = False


def follow(start: dict[str, Any]) -> None:
    """Wrap what starts programs. ``start`` is what this one was begun with (``starting.environment``)."""
    global _pid
    _start.update(start)
    _pid = os.getpid()
    os.execv, os.execve = _execv(os.execve, os.execv), _execve(os.execve)
    os.posix_spawn = _spawn(os.posix_spawn)
    os.posix_spawnp = _spawn(os.posix_spawnp)
    when_imported("_posixsubprocess", _wrap_fork_exec)


def _wrap_fork_exec(module: Any) -> None:
    module.fork_exec = _fork_exec(module.fork_exec)
    if "subprocess" in sys.modules:  # a .pth file may have imported it before
        sys.modules["subprocess"].__dict__["_fork_exec"] = module.fork_exec


def _execv(execve: Callable[..., Any], original: Callable[..., Any]) -> Callable[..., Any]:
    def execv(path: Any, argv: Any, /) -> Any:
        changed = _after_exec(path, argv, os.environ)
        return _written(original, path, argv) if changed is None else _written(execve, *changed)

    return execv


def _execve(original: Callable[..., Any]) -> Callable[..., Any]:
    def execve(path: Any, argv: Any, env: Any) -> Any:
        changed = None if isinstance(path, int) else _after_exec(path, argv, env)
        return _written(original, *((path, argv, env) if changed is None else changed))

    return execve


def _written(execute: Callable[..., Any], *words: Any) -> Any:
    """What was recorded is in the file before the exec; it goes on if there is no such program."""
    recorder = _recorder()
    if recorder is None:
        return execute(*words)
    recorder.pause()
    try:
        return execute(*words)
    finally:
        recorder.resume()


def _recorder() -> Any:
    """The module, if something was ever recorded."""
    return sys.modules.get("fairlead.gil.observe.recorder")


def _spawn(original: Callable[..., Any]) -> Callable[..., Any]:
    def posix_spawn(path: Any, argv: Any, env: Any, /, **options: Any) -> Any:
        given = os.environ if env is None else env  # None: from Python 3.13 on
        changed = _for_child([path, *list(argv)[1:]], argv, given, "")
        return original(*((path, argv, env) if changed is None else changed), **options)

    return posix_spawn


def _fork_exec(original: Callable[..., Any]) -> Callable[..., Any]:
    def fork_exec(
        args: Any, executables: Any, close: Any, fds: Any, cwd: Any, env: Any, /, *rest: Any
    ) -> Any:
        given = os.environ if env is None else dict(entry.split(b"=", 1) for entry in env)
        directory = "" if cwd is None else os.fsdecode(cwd)
        program = _first_of(executables, directory)
        changed = _for_child([program, *list(args)[1:]], args, given, directory)
        if changed is not None:
            file, args, variables = changed
            executables = executables if file == program else [os.fsencode(file)]
            env = [os.fsencode(f"{name}={value}") for name, value in variables.items()]
        return original(args, executables, close, fds, cwd, env, *rest)

    return fork_exec


def _first_of(programs: Sequence[bytes], cwd: str) -> str:
    """Which of these will be executed, in that directory."""
    for program in map(os.fsdecode, programs):
        if starting.is_program(os.path.join(cwd, program)):  # noqa: PTH118
            return program
    return os.fsdecode(programs[0])


def _after_exec(path: Any, argv: Any, env: Any) -> tuple[Any, Any, dict[str, str]] | None:
    """The exec that goes on with what this program was begun with; None: as it is."""
    command = _command([path, *list(argv)[1:]], env, "")
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
    recorder = _recorder()
    current = None if recorder is None else recorder.current()
    actions = []
    for module, settings in _start["actions"]:
        if current is not None and "out" in settings:
            settings = {**settings, "out": current._path, "execs": execs}
        actions.append([module, settings])
    now = {"actions": actions, "execs": execs, "pid": os.getpid(), "ready": None, "if_possible": True}
    return _begun(command, path, argv, {**_start, **now})


def _begun(command: Any, path: Any, argv: Any, start: Mapping[str, Any]) -> tuple[Any, Any, dict[str, str]]:
    if len(command.words) != len(argv):  # of env, and it would set and clear after us
        path, argv = command.file, command.words
    return path, argv, starting.carried(start, command.environment)


def _for_child(words: Any, argv: Any, env: Any, cwd: str) -> tuple[Any, Any, dict[str, str]] | None:
    """The program, its words and the environment in which a sub-process is begun with the same; None: as it
    is.

    Args:
        words: the program and what follows it in ``argv``, which may call it otherwise.
        cwd: the directory in which it is started; "": the present one.
    """
    global _told
    children = _start["children"]
    if _told and not children:
        return None
    command = _command(words, env, cwd)
    if command is None or command.python is None or "resource_tracker" in command.python[-1]:
        return None
    if children:
        return _begun(command, words[0], argv, _start)
    _told = True
    verb = _start["verb"]
    done = starting.WORDS[verb].done
    _say(
        f"process {os.getpid()} starts another Python ({command.words[0]}), which is not {done}: with"
        f" fairlead {verb} --children it is"
    )
    return None


def _command(words: Sequence[Any], env: Mapping[Any, Any], cwd: str) -> Any:
    """A ``starting.Command``, None where there is no such program: starting it will say so."""
    try:
        given = {os.fsdecode(k): os.fsdecode(v) for k, v in env.items()}
        return starting.read([os.fsdecode(word) for word in words], given, cwd)
    except (UsageError, OSError, TypeError, ValueError, AttributeError):
        return None


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"fairlead: {text}", file=sys.stderr, flush=True)

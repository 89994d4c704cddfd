"""What can be told of a function before it is called: whether it is a coroutine's, and what it needs to
run elsewhere."""

from __future__ import annotations

import dis
import functools
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fairlead.pools.engine import forks
from fairlead.pools.engine.lock import EngineLock

PATIENCE_S = 60
"""For imports in a process that is thrown away."""

_verdicts: dict[str, str | None] = {}
_lock = EngineLock()


@forks.in_child
def _renew() -> None:
    global _lock
    _lock = EngineLock()


def plain(function: Callable[..., Any]) -> Any:
    """The function behind methods, partials, decorators and objects that can be called."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.ismethod(function):
            function = function.__func__
        elif isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
            function = wrapped
        elif isinstance(function, FunctionType | type) or inspect.isbuiltin(function):
            return function
        elif isinstance(call := vars(type(function)).get("__call__"), FunctionType):
            function = call
        else:
            return function


def makes_coroutines(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(plain(function))


def modules(function: Callable[..., Any], values: Iterable[Any] = ()) -> tuple[str, ...]:
    """The modules that a worker has to import for calls of the function with such values, as far as can be
    seen: its own; where that is ``__main__``, those that it names; those that its body imports."""
    found = {type(value).__module__ for value in values}
    function = plain(function)
    own = getattr(function, "__module__", None)
    found.add(own or "builtins")
    if isinstance(function, FunctionType):
        for code in codes(function.__code__):
            found.update(named_by(code, "IMPORT_NAME"))
            if own == "__main__" or not _importable(own):
                found.update(_named(code, function.__globals__))
    return importable(found)


def importable(names: Iterable[str]) -> tuple[str, ...]:
    """Those of them that a worker can import, and has to."""
    return tuple(sorted(name for name in names if name not in {"__main__", "builtins"} and _importable(name)))


def refusals(names: Iterable[str]) -> dict[str, str]:
    """Which of these modules cannot be imported in an interpreter with a GIL of its own, and what is said of
    it. Tried in a process that is thrown away, and remembered."""
    wanted = sorted(set(names))
    with _lock:
        unknown = [name for name in wanted if name not in _verdicts]
        if unknown:
            _verdicts.update(_try(unknown))
        return {name: said for name in wanted if (said := _verdicts[name]) is not None}


def codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def named_by(code: CodeType, instruction: str) -> Iterator[str]:
    """What its instructions of this kind name."""
    if dis.opmap[instruction] in code.co_code[::2]:  # to read all of them takes a hundred times as long
        for step in dis.get_instructions(code):
            if step.opname == instruction and step.argval:
                yield step.argval


def _named(code: CodeType, names: dict[str, Any]) -> Iterator[str]:
    for name in code.co_names:
        value = names.get(name)
        if isinstance(value, ModuleType):
            yield value.__name__
        elif value is not None and isinstance(module := getattr(value, "__module__", None), str):
            yield module


def _importable(name: str | None) -> bool:
    if not name:
        return False
    try:
        return name in sys.builtin_module_names or importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


_PROGRAM = """
import json, os, sys
import _interpreters
ask = json.loads(sys.stdin.read())
inside = f'''
import importlib, json, os, sys
ask = json.loads({json.dumps(ask)!r})
sys.path[:] = ask["path"]
for name in ask["names"]:
    try:
        importlib.import_module(name)
        said = None
    except BaseException as error:
        said = str(error) or repr(error)
    os.write({ask["fd"]}, (json.dumps([name, said]) + "\\\\n").encode())
'''
_interpreters.run_string(_interpreters.create("isolated"), inside)
os._exit(0)
"""


def _try(names: list[str]) -> dict[str, str | None]:
    if not sys.executable:
        return dict.fromkeys(names, "it could not be tried: this program's interpreter is not known")
    reader, writer = os.pipe()
    ask = json.dumps({"names": names, "path": sys.path, "fd": writer})
    with os.fdopen(reader, encoding="utf-8") as answers:
        try:
            subprocess.run(
                [sys.executable, "-c", _PROGRAM], input=ask, text=True, pass_fds=(writer,), check=False,
                timeout=PATIENCE_S, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pass
        finally:
            os.close(writer)
        said = dict(json.loads(line) for line in answers)
    return {name: said.get(name, "importing it there ended the interpreter") for name in names}

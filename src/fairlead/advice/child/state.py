"""State that calls of a function share: what it reaches of globals, closures, defaults and its object.

A call that changes such state may give other results when calls run elsewhere or at once. What is seen: the
names in its code and in the code of the functions, methods and classes that it reaches, as far as they are
the user's own and not a library's. State in files, sockets, libraries and C is not seen.
"""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fairlead.advice.child.fingerprint import fingerprint

_MISSING = object()
_LOCKS = ("lock", "semaphore", "condition")
_OF_LOCKS = {"_thread", "threading", "asyncio", "fairlead", "multiprocessing"}
_LIBRARIES = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


class State:
    """What a function shares between its calls."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.guarded = False
        """Whether a lock is among it."""
        self._places: dict[str, Callable[[], Any]] = {}
        self._known: set[int] = set()
        self._home = (getattr(function, "__module__", None) or "").partition(".")[0]
        self._reach(function, "")

    def look(self) -> dict[str, str]:
        """A fingerprint of each part, by its name."""
        return {name: fingerprint(get(), self._is_own) for name, get in self._places.items()}

    def _reach(self, thing: Any, name: str) -> None:
        """Follows what may be reached from ``thing``; ``name`` is what a user would call it."""
        if id(thing) in self._known:
            return
        self._known.add(id(thing))
        if isinstance(thing, functools.partial):
            self._reach(thing.func, name)
            for number, value in enumerate((*thing.args, *thing.keywords.values()), 1):
                self._value(f"argument {number} of the partial", value)
        elif inspect.ismethod(thing):
            self._value("self", thing.__self__)
            self._reach(thing.__func__, name)
        elif isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, type):
            if self._is_own(thing):
                self._class(thing)
        elif callable(thing) and self._is_own(type(thing)):
            self._value(name or "the object that is called", thing)

    def _function(self, function: FunctionType) -> None:
        if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
            self._reach(wrapped, wrapped.__name__)
        if not self._is_own_module(function.__module__):
            return
        name = function.__qualname__
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            self._place(f"{free} of {name}", functools.partial(_contents, cell))
        for number, value in enumerate(function.__defaults__ or ()):
            self._value(f"default {number + 1} of {name}", value)
        if vars(function):
            self._places[f"attributes of {name}"] = functools.partial(_attributes, function)
        scope = function.__globals__
        named = sorted({used for code in _codes(function.__code__) for used in code.co_names})
        for used in named:
            if isinstance(value := scope.get(used, _MISSING), ModuleType):
                if self._is_own_module(value.__name__):
                    for attribute in named:
                        if attribute in vars(value):
                            self._place(
                                f"{value.__name__}.{attribute}",
                                functools.partial(vars(value).get, attribute, _MISSING),
                            )
            elif value is not _MISSING or _stores(function, used):
                self._place(used, functools.partial(scope.get, used, _MISSING))

    def _class(self, owner: type) -> None:
        for name, value in list(vars(owner).items()):
            inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            inner = inner.fget if isinstance(inner, property) else inner
            if isinstance(inner, FunctionType):
                self._reach(inner, inner.__qualname__)
            elif not name.startswith("__") and not hasattr(value, "__get__"):
                self._place(f"{owner.__qualname__}.{name}", functools.partial(_of_class, owner, name))

    def _place(self, name: str, get: Callable[[], Any]) -> None:
        value = get()
        if isinstance(value, FunctionType | type | functools.partial) or inspect.ismethod(value):
            self._reach(value, name)
            if isinstance(value, functools.partial):
                self._places[name] = get
            return
        if isinstance(value, ModuleType) or inspect.isbuiltin(value):
            return
        self._places[name] = get
        self._inside(value)

    def _value(self, name: str, value: Any) -> None:
        self._place(name, lambda: value)

    def _inside(self, value: Any) -> None:
        """Locks, and the methods of the user's own objects."""
        if _is_lock(value):
            self.guarded = True
        if self._is_own(type(value)):
            self._reach(type(value), type(value).__qualname__)
            for held in list(getattr(value, "__dict__", {}).values()):
                self.guarded = self.guarded or _is_lock(held)
                if self._is_own(type(held)):
                    self._reach(type(held), type(held).__qualname__)

    def _is_own(self, kind: type) -> bool:
        return self._is_own_module(kind.__module__)

    def _is_own_module(self, name: str | None) -> bool:
        """Whether it is a module of the user's, not of a library's."""
        if not name or name in sys.builtin_module_names:
            return False
        if name == "__main__" or name.partition(".")[0] == self._home:
            return True
        file = getattr(sys.modules.get(name), "__file__", None)
        return file is not None and not str(Path(file).resolve()).startswith(_LIBRARIES)


def _is_lock(value: Any) -> bool:
    kind = type(value)
    if kind.__module__.partition(".")[0] not in {
        "_thread",
        "threading",
        "asyncio",
        "fairlead",
        "multiprocessing",
    }:
        return False
    return any(word in kind.__name__.lower() for word in _LOCKS)


def _stores(function: FunctionType, name: str) -> bool:
    import dis

    return any(
        step.opname == "STORE_GLOBAL" and step.argval == name
        for code in _codes(function.__code__)
        for step in dis.get_instructions(code)
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _attributes(function: FunctionType) -> dict[str, Any]:
    return {name: value for name, value in vars(function).items() if name != "__wrapped__"}


def _of_class(owner: type, name: str) -> Any:
    return vars(owner).get(name, _MISSING)

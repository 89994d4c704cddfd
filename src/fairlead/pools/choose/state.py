"""State that calls of a function share: what it reaches of globals, closures, defaults and its object.

A call that changes such state may give other results when calls run elsewhere or at once, and so may one that
reads it, where a worker has it otherwise. What is seen: the names in its code and in the code of the
functions, methods and classes that it reaches, as far as they are the user's own and not a library's. State
in files, sockets, libraries and C is not seen.

``fairlead advise`` looks at it before and after calls; AutoPool has a worker look, too.
"""

from __future__ import annotations

import functools
import inspect
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

from fairlead.pools.choose.labels import ANNOTATIONS, CALLED
from fairlead.pools.serialization.function import codes, named_by

T = TypeVar("T")

MISSING = "there is no such name"
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
        self.functions: dict[str, FunctionType] = {}
        """The user's own that it reaches, itself included."""
        self.goes_along: set[str] = set()
        """What is sent with the function, wherever that goes."""
        self._places: dict[str, Callable[[], Any]] = {}
        self._called: list[tuple[Callable[[], Any], Any]] = []
        self._own: dict[str | None, bool] = {}
        self._scopes: dict[str, int] = {}
        self._known: set[int] = set()
        self._home = (getattr(function, "__module__", None) or "").partition(".")[0]
        self._reach(function, "")

    def look(self, mark: Callable[[str, Any], T]) -> dict[str, T]:
        """The mark of each part, by its name."""
        return {name: mark(name, get()) for name, get in list(self._places.items())}

    def calls_the_same(self) -> bool:
        """Whether the names of functions and classes stand for the same ones as before."""
        return all(get() is value or inspect.ismethod(value) for get, value in self._called)

    def _reach(self, thing: Any, name: str) -> None:
        """Follows what may be reached from ``thing``; ``name`` is what a user would call it."""
        if id(thing) in self._known:
            return
        self._known.add(id(thing))
        if isinstance(thing, functools.partial):
            self._reach(thing.func, name)
            for number, value in enumerate((*thing.args, *thing.keywords.values()), 1):
                self._value(f"argument {number} of the partial", value, along=True)
        elif inspect.ismethod(thing):
            self._value("self", thing.__self__, along=True)
            self._reach(thing.__func__, name)
        elif isinstance(thing, FunctionType):
            self._function(thing)
        elif isinstance(thing, functools._lru_cache_wrapper):
            self._reach(thing.__wrapped__, name)
        elif isinstance(thing, type):
            if self.of_own_class(thing):
                self._class(thing)
        elif callable(thing) and self.of_own_class(type(thing)):
            self._value(name or "the object that is called", thing)

    def _function(self, function: FunctionType) -> None:
        if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
            self._reach(wrapped, wrapped.__name__)
        if not self.is_own(function.__module__):
            return
        name = function.__qualname__
        self.functions[name] = function
        for free, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
            self.goes_along.add(f"{free} of {name}")
            self._place(f"{free} of {name}", functools.partial(_contents, cell))
        for number, value in enumerate(function.__defaults__ or ()):
            self._value(f"default {number + 1} of {name}", value)
        if vars(function):
            self._places[f"attributes of {name}"] = functools.partial(_attributes, function)
        scope = function.__globals__
        named = sorted({used for code in codes(function.__code__) for used in code.co_names})
        stored = {name for code in codes(function.__code__) for name in named_by(code, "STORE_GLOBAL")}
        for module in {name for code in codes(function.__code__) for name in named_by(code, "IMPORT_NAME")}:
            for part in (module, module.partition(".")[0]):
                if part in sys.modules:
                    self._module(sys.modules[part], named)
        for used in named:
            if isinstance(value := scope.get(used, MISSING), ModuleType):
                self._module(value, named)
            elif value is not MISSING or used in stored:
                of_another = used in self._places and self._scopes.setdefault(used, id(scope)) != id(scope)
                self._scopes.setdefault(used, id(scope))
                called = f"{used} of {function.__module__}" if of_another else used
                self._place(called, functools.partial(scope.get, used, MISSING))

    def _module(self, module: ModuleType, named: list[str]) -> None:
        """What there is of these names in one of the user's own."""
        if not self.is_own(module.__name__):
            return
        for attribute in named:
            found = vars(module).get(attribute, MISSING)
            if isinstance(found, ModuleType):
                if found is not module:
                    self._module(found, [name for name in named if name != attribute])
            elif found is not MISSING:
                self._place(
                    f"{module.__name__}.{attribute}", functools.partial(vars(module).get, attribute, MISSING)
                )

    def _class(self, owner: type) -> None:
        for name, value in list(vars(owner).items()):
            if name in ANNOTATIONS:
                continue
            inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
            inner = inner.fget if isinstance(inner, property) else inner
            if isinstance(inner, FunctionType):
                self._reach(inner, inner.__qualname__)
            elif not (name[:1] == name[-1:] == "_") and not hasattr(value, "__get__"):
                self._place(f"{owner.__qualname__}.{name}", functools.partial(_of_class, owner, name))

    def _place(self, name: str, get: Callable[[], Any]) -> None:
        value = get()
        if isinstance(value, CALLED):
            self._called.append((get, value))
            self._reach(value, name)
            if isinstance(value, functools.partial):
                self._places[name] = get
            return
        if isinstance(value, ModuleType) or inspect.isbuiltin(value):
            return
        self._places[name] = get
        self._inside(value)

    def _value(self, name: str, value: Any, *, along: bool = False) -> None:
        if along:
            self.goes_along.add(name)
        self._place(name, lambda: value)

    def _inside(self, value: Any) -> None:
        """Locks, and the methods of the user's own objects."""
        if _is_lock(value):
            self.guarded = True
        if self.of_own_class(type(value)):
            self._reach(type(value), type(value).__qualname__)
            for held in list(getattr(value, "__dict__", {}).values()):
                self.guarded = self.guarded or _is_lock(held)
                if self.of_own_class(type(held)):
                    self._reach(type(held), type(held).__qualname__)

    def of_own_class(self, kind: type) -> bool:
        return self.is_own(kind.__module__)

    def is_own(self, name: str | None) -> bool:
        known = self._own.get(name)
        if known is None:
            known = self._own[name] = self._find_own(name)
        return known

    def _find_own(self, name: str | None) -> bool:
        """Whether it is a module of the user's, not of a library's."""
        if not name or name.partition(".")[0] in {"fairlead", *sys.stdlib_module_names}:
            return name == "__main__"
        if name in ("__main__", "__mp_main__") or name.partition(".")[0] == self._home:
            return True
        file = getattr(sys.modules.get(name), "__file__", None)
        return file is not None and not str(Path(file).resolve()).startswith(_LIBRARIES)


def _is_lock(value: Any) -> bool:
    kind = type(value)
    if kind.__module__.partition(".")[0] not in _OF_LOCKS:
        return False
    return any(word in kind.__name__.lower() for word in _LOCKS)


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return MISSING


def _attributes(function: FunctionType) -> dict[str, Any]:
    return {name: value for name, value in vars(function).items() if name != "__wrapped__"}


def _of_class(owner: type, name: str) -> Any:
    return vars(owner).get(name, MISSING)

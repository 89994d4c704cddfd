"""Whether calls of a function may change what they share, as far as its bytecode says.

The code is followed with labels in place of values: a label stands for an object that lives on after the call
(a global, what a closure or ``self`` refers to, an argument) and that can be changed. Objects that a call
makes have no label, and neither have those that cannot change. A labelled object may be read; where it is
written to, or goes to code that cannot be followed, there is a doubt, and the first one is the answer.

The user's own functions are followed, with labels for their arguments, and so are the methods of his classes.
Libraries are not: some are known to leave their arguments alone.
"""

from __future__ import annotations

import functools
import inspect
import sys
import types
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from fairlead.pools.choose.followed_code import FollowedCode
from fairlead.pools.choose.labels import (
    ANNOTATIONS,
    UNKNOWN,
    Doubt,
    ElementOf,
    Label,
    MadeFunction,
    Method,
    element,
    fixed,
    labelled,
    merged,
    named_in,
)
from fairlead.pools.choose.libraries import (
    CANNOT_BE_FOLLOWED,
    CHANGING,
    OF_THE_PROCESS,
    PURE_BUILTINS,
    PURE_LIBRARIES,
    READS,
)

_MISSING = object()

MOST_ROUNDS = 40
"""Passes over a function until its labels stay as they are."""
MOST_STEPS = 40_000
"""Instructions, of all functions and passes together."""


class Effects:
    """
    Args:
        is_own: whether a module is the user's.
    """

    def __init__(self, is_own: Callable[[str | None], bool]) -> None:
        self._is_own = is_own
        self._known: dict[tuple[CodeType, int], FollowedCode] = {}
        self.logs = False
        """Whether it uses a logger."""
        self._labels: dict[int, tuple[Any, Label | None]] = {}
        """Of what was loaded, by its identity; with it, so that no other object gets that."""
        self._steps = 0
        self.codes: dict[CodeType, dict[str, Any]] = {}
        """What may run, and its globals."""
        self.reads: set[tuple[str, str]] = set()
        """Values in modules of libraries that it reads: the module, and the name there."""

    def of_calls(
        self, function: Callable[..., Any], calls: Iterable[tuple[tuple[Any, ...], bool]]
    ) -> str | None:
        """Why calls may change what they share, or hand it out; None if they do not."""
        try:
            for args, named in calls:
                labels = [labelled(f"argument {number}", value) for number, value in enumerate(args, 1)]
                result = self.call(function, labels, more=named)
                if isinstance(result, Label | ElementOf):
                    name = named_in(result)
                    if not name.startswith("argument"):
                        return f"{_name(function)}() returns {name} itself"
        except Doubt as doubt:
            return str(doubt)
        except RecursionError:
            return f"{_name(function)}() cannot be followed"
        return None

    # calls

    def call(self, called: Any, args: list[Any], *, more: bool = False) -> Any:
        """``more``: there are arguments that have no place here: by name, or out of a sequence."""
        if isinstance(called, functools.partial):
            first = [labelled("an argument of the partial", value) for value in called.args]
            named = [labelled("an argument of the partial", value) for value in called.keywords.values()]
            return self.call(called.func, [*first, *args, *named], more=more or bool(named))
        if isinstance(called, MethodType):
            owner = called.__self__
            label = None if isinstance(owner, type) else labelled("self", owner)
            return self.call(called.__func__, [label, *args], more=more)
        wrapped = getattr(called, "__wrapped__", None)
        if isinstance(called, functools._lru_cache_wrapper):
            return self.call(wrapped, args, more=more)
        if isinstance(called, FunctionType):
            if self._of_own_code(called):
                return self._function(called, args, more=more)
            if isinstance(wrapped, FunctionType) and self._of_own_code(wrapped):
                self._function(wrapped, args, more=more)
        elif isinstance(called, type):
            return self._instance(called, args, more=more)
        elif self._is_own(type(called).__module__) and callable(called):
            return self.call(type(called).__call__, [Label(_name(called), called), *args], more=more)
        return self._library(called, args)

    def _library(self, called: Any, args: list[Any]) -> Any:
        name = _name(called)
        module = getattr(called, "__module__", None) or ""
        owner = getattr(called, "__self__", None)
        if owner is not None and not isinstance(owner, ModuleType | type) and not fixed(owner):
            raise Doubt(f"a call uses {name}() of an object that all calls in this process share")
        if module in ("builtins", "") and name == "print":
            if sys.stdout is not sys.__stdout__:
                raise Doubt("a call prints, and this program has put another sys.stdout in place")
            return None
        if name in CANNOT_BE_FOLLOWED and module == "builtins":
            raise Doubt(f"a call uses {name}(), and what that does cannot be seen")
        if name == "getattr" and any(isinstance(one, Label | ModuleType | type) for one in args[:1]):
            raise Doubt("a call uses getattr(), and of what cannot be seen")
        if name in ("getenv", "expandvars"):
            self.reads.add(("os", "environ"))
        if name in OF_THE_PROCESS:
            raise Doubt(f"a call uses {module}.{name}(), which is about state of this process")
        return self._taken(name, module, args)

    def _taken(self, name: str, module: str, args: list[Any]) -> Any:
        for label in args:
            if isinstance(label, Label):
                if hasattr(label.value, "__next__"):
                    raise Doubt(f"a call uses up {label.name}")
                root = module.partition(".")[0]
                known = name in PURE_BUILTINS if root == "builtins" else self.leaves_alone(module)
                if not known or name in CHANGING:
                    raise Doubt(f"a call passes {label.name} to {name}(), which may change it")
            elif isinstance(label, MadeFunction):
                self.body(label, [element(one) for one in args if one is not label])
            elif isinstance(label, FunctionType | MethodType | functools.partial):
                self.call(label, [element(one) for one in args if one is not label])
            elif isinstance(label, Method) and label.owner is not None:
                self.method(label, [])
        if name in ("isinstance", "len", "type", "hash", "id", "issubclass", "sum", "str", "repr"):
            return None
        inside = None
        for label in args:
            if isinstance(label, Label | ElementOf):
                inside = merged(inside, element(label))
        if isinstance(inside, Label):
            return Label(inside.name, UNKNOWN)
        return None

    def method(self, method: Method, args: list[Any], *, more: bool = False) -> Any:
        owner = method.owner
        if owner is None:  # of an object that the call has made: that may hold now what it is given
            for label in args:
                if isinstance(label, Label) and method.name not in READS:
                    raise Doubt(f"a call hands {label.name} to {method.name}(), which may change it")
            return None
        if isinstance(method.function, FunctionType) and self._of_own_code(method.function):
            return self._function(method.function, [owner, *args], more=more)
        if type(owner.value).__module__ == "logging":
            self.logs = True
            return None
        if method.name in READS:
            inside = element(owner)
            return None if inside is None else Label(owner.name, UNKNOWN)
        raise Doubt(f"a call uses {owner.name}.{method.name}(), which may change {owner.name}")

    def _instance(self, owner: type, args: list[Any], *, more: bool) -> Any:
        if not self._is_own(owner.__module__):
            return self._taken(owner.__name__, owner.__module__, args)
        for name in ("__new__", "__init__", "__post_init__"):
            made = inspect.getattr_static(owner, name, None)
            made = made.__func__ if isinstance(made, staticmethod) else made
            if isinstance(made, FunctionType) and self._of_own_code(made):
                self._function(made, [None, *args] if name != "__post_init__" else [None], more=more)
        own = [one for one in owner.__mro__ if self._is_own(one.__module__)]
        for name, value in [pair for one in own for pair in vars(one).items() if pair[0] not in ANNOTATIONS]:
            inner = value.fget if isinstance(value, property) else value
            inner = inner.__func__ if isinstance(inner, staticmethod | classmethod) else inner
            if (
                isinstance(inner, FunctionType)
                and self._of_own_code(inner)
                and name not in ("__new__", "__init__", "__post_init__")
            ):
                self._function(inner, [None] * inner.__code__.co_argcount, more=False)
        return None

    def _function(self, function: FunctionType, args: list[Any], *, more: bool) -> Any:
        code = function.__code__
        self.codes[code] = function.__globals__
        places = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[: places + bool(code.co_flags & 4) + bool(code.co_flags & 8)]
        entry: dict[str, Any] = {}
        for number, value in enumerate(reversed(function.__defaults__ or ()), 1):
            name = code.co_varnames[code.co_argcount - number]
            entry[name] = labelled(f"the default of {name}", value)
        for name, value in (function.__kwdefaults__ or {}).items():
            entry[name] = labelled(f"the default of {name}", value)
        for name, label in zip(names, args, strict=False):
            entry[name] = merged(entry.get(name), label)
        rest = args[len(names) :] if not more else args
        for label in rest:
            if isinstance(label, Label):
                for name in names:
                    entry[name] = merged(entry.get(name), label)
        cells: dict[str, Any] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
            try:
                cells[name] = cell.cell_contents
            except ValueError:
                cells[name] = UNKNOWN
        return self._run(
            code, id(function), lambda: FollowedCode(self, code, function.__globals__, cells, None), entry
        )

    def body(self, body: MadeFunction, args: list[Any]) -> Any:
        """A call of a function that the code has made."""
        code, outer = body.code, body.frame
        self.codes[code] = outer.scope
        entry = dict(zip(code.co_varnames, args, strict=False))
        return self._run(code, id(outer), lambda: FollowedCode(self, code, outer.scope, {}, outer), entry)

    def _run(
        self, code: CodeType, owner: int, make: Callable[[], FollowedCode], entry: dict[str, Any]
    ) -> Any:
        frame = self._known.get((code, owner))
        if frame is None:
            frame = self._known[code, owner] = make()
        changed = frame.enter(entry)
        if frame.running:
            frame.again = frame.again or changed
            return frame.result
        if not changed and frame.ran:
            return frame.result
        frame.running = True
        try:
            for _ in range(MOST_ROUNDS):
                frame.again = False
                before = frame.result
                frame.round()
                if not frame.again and before == frame.result:
                    break
            else:
                raise Doubt(f"{code.co_qualname} cannot be followed")
        finally:
            frame.running = False
            frame.ran = True
        return frame.result

    def _of_own_code(self, function: FunctionType) -> bool:
        """Not by ``__module__``, which wrappers copy."""
        return self._is_own(function.__globals__.get("__name__"))

    def leaves_alone(self, module: str) -> bool:
        return module.partition(".")[0] in PURE_LIBRARIES

    def can_follow(self, value: Any) -> bool:
        return value is not UNKNOWN and callable(value) and self._is_own(type(value).__module__)

    def step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Doubt("there is too much code to be followed")

    # what is loaded

    def attribute(self, owner: Any, name: str) -> Any:
        """Of a label or a thing that is known."""
        if isinstance(owner, ModuleType):
            found = vars(owner).get(name, _MISSING)
            if found is _MISSING:
                of_library = self.leaves_alone(owner.__name__)  # it may be being imported
                return None if of_library else Label(f"{owner.__name__}.{name}", UNKNOWN)
            if not callable(found) and not isinstance(found, ModuleType) and not self._is_own(owner.__name__):
                self.reads.add((owner.__name__, name))
            return self.thing(f"{owner.__name__}.{name}", found)
        if isinstance(owner, FunctionType):
            return self.thing(f"{owner.__name__}.{name}", vars(owner).get(name))
        if isinstance(owner, type):
            found = inspect.getattr_static(owner, name, None)
            found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
            return self.thing(f"{owner.__qualname__}.{name}", found)
        if isinstance(owner, Label):
            return self._of_object(owner, name)
        if isinstance(owner, ElementOf):
            return None
        return Method(None, name)

    def _of_object(self, owner: Label, name: str) -> Any:
        value, called = owner.value, f"{owner.name}.{name}"
        if value is UNKNOWN:
            return Method(owner, name) if name in READS else Label(called, UNKNOWN)
        if type(value).__module__ in ("_thread", "threading") and type(value).__name__ in ("_local", "local"):
            raise Doubt(f"a call uses {owner.name}, of which each thread has its own")
        held = getattr(value, "__dict__", None)
        if isinstance(held, dict) and name in held:
            return self.thing(called, held[name])
        found = inspect.getattr_static(type(value), name, _MISSING)
        if isinstance(found, property) and self._is_own(type(value).__module__):
            return self.call(found.fget, [owner])
        if isinstance(found, types.MemberDescriptorType):
            return self.thing(called, getattr(value, name, None))
        if isinstance(found, staticmethod | classmethod):
            return self.thing(called, found.__func__)
        if found is _MISSING:
            return Label(called, UNKNOWN)
        if callable(found):
            return Method(owner, name, found)
        if hasattr(found, "__get__"):
            return Label(called, UNKNOWN)
        return self.thing(f"{type(value).__qualname__}.{name}", found)

    def thing(self, name: str, value: Any) -> Any:
        """A value as it stands on the stack: what can be called, as it is. It is followed in any case, as its
        calls may not be seen."""
        if isinstance(value, FunctionType) and self._of_own_code(value):
            self._function(value, [], more=False)
            return value
        if isinstance(value, FunctionType | type | ModuleType | MethodType | functools.partial) or (
            inspect.isbuiltin(value) or isinstance(value, functools._lru_cache_wrapper)
        ):
            return value
        if callable(value) and not self._is_own(type(value).__module__) and not hasattr(value, "__dict__"):
            return value
        known = self._labels.get(id(value))
        if known is None:
            known = self._labels[id(value)] = (value, labelled(name, value))
        return known[1]

    def name(self, scope: dict[str, Any], name: str) -> Any:
        if name in scope:
            return self.thing(name, scope[name])
        builtins = scope.get("__builtins__", {})
        names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
        return names[name] if name in names else Label(name, UNKNOWN)


def _name(called: Any) -> str:
    return getattr(called, "__name__", None) or type(called).__name__

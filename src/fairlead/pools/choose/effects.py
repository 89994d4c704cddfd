"""Whether calls of a function may change what they share, as far as its source says.

The source is followed with labels in place of values: a label stands for an object that lives on after the
call (a global, what a closure or ``self`` refers to, an argument) and that can be changed. Objects that a
call makes have no label, and neither have those that cannot change. A labelled object may be read; where it
is written to, or goes to code that cannot be followed, there is a doubt, and the first one is the answer.

The user's own functions are followed, with labels for their arguments, and so are the methods of his classes.
Libraries are not: some are known to leave their arguments alone.
"""

from __future__ import annotations

import abc
import enum
import functools
import inspect
import logging
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

from fairlead.pools.choose import libraries
from fairlead.pools.choose.followed_code import FollowedCode
from fairlead.pools.choose.labels import (
    ARRAY,
    ATOMS,
    CONTAINERS,
    MOST_OBJECTS,
    NOTHING,
    SENT_BY_NAME,
    UNKNOWN,
    Args,
    Doubt,
    Label,
    Made,
    Value,
    all_of,
    by_identity,
    can_be_called,
    one,
    plain_of,
)  # fmt: skip
from fairlead.pools.choose.source import source_of

_MISSING = object()
MOST_ROUNDS = 40
"""Passes over all functions until what they have stays as it is."""
MOST_STEPS = 40_000
"""Statements, of all functions and passes together."""


class Effects:
    """
    Args:
        is_own: whether a module is the user's.
    """

    def __init__(self, is_own: Callable[[str | None], bool]) -> None:
        self._is_own = is_own
        self._frames: dict[Any, FollowedCode] = {}
        self._followed: dict[int, tuple[Any, int]] = {}
        """What has code of its own, and the round in which that was followed."""
        self._attributes: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._insides: dict[int, tuple[Any, int, Value]] = {}
        self._kept: dict[str, Value] = {}
        """What was put in objects that the calls have made, by attribute; as ``[]`` in containers, as ``*``
        anywhere. And what their methods give, as ``name()``."""
        self._round = self._steps = 0
        self.again = False
        self.logs = False
        """Whether it uses a logger."""
        self.imports: set[str] = set()
        """Modules that it imports as it runs."""
        self.libraries: set[str] = set()
        """Those of which it uses something."""
        self.reads: set[tuple[str, str]] = set()
        """Values in modules that it reads: the module, and the name there."""

    def of_calls(
        self, function: Callable[..., Any], calls: Iterable[tuple[tuple[Any, ...], bool]]
    ) -> str | None:
        """Why calls may change what they share, or hand it out; None if they do not."""
        calls, name = list(calls), _name(function)
        try:
            for self._round in range(MOST_ROUNDS):
                self.again = False
                for args, named in calls:
                    places = [self.thing(f"argument {number}", arg) for number, arg in enumerate(args, 1)]
                    result = self.call_one(
                        name, function, Args(places, {}, all_of(places) if named else NOTHING)
                    )
                    inside = self.element(result.only(*CONTAINERS)) if result.only(*CONTAINERS) else NOTHING
                    for label in (result | inside).objects.values():
                        plain = isinstance(label.value, CONTAINERS) or not by_identity(label.value)
                        if not ((label.of_arguments and plain) or isinstance(label.value, SENT_BY_NAME)):
                            return f"{name}() returns {label.name} itself"
                if not self.again:
                    return None
        except Doubt as doubt:
            return str(doubt)
        except RecursionError:
            pass
        return f"{name}() cannot be followed"

    def step(self) -> None:
        self._steps += 1
        if self._steps > MOST_STEPS:
            raise Doubt("there is too much code to be followed")

    # calls

    def call(self, called: Value, args: Args) -> Value:
        result = all_of(self._made(made, args) for made in called.functions.values())
        result |= all_of(self.of_class("__call__", kind, args.after(called)) for kind in called.kinds)
        for label in called.shared.values():
            if label.value is UNKNOWN:
                raise Doubt(f"a call uses {label.name}(), which cannot be followed")
            array = label.value is ARRAY  # by a method that gives a part of it
            result |= one(label.name, ARRAY) if array else self.call_one(label.name, label.value, args)
        return result if called.shared or called.made else self._of_new_object(called, "a function", args)

    def _of_new_object(self, owner: Value, name: str, args: Args) -> Value:
        """A call of a method of an object that the call has made, and that is not known."""
        if name in libraries.KEEPS:
            self.keep("[]", args.all)
        elif name not in libraries.READS:
            for label in plain_of(args.all).shared.values():
                raise Doubt(f"a call hands {label.name} to {name}(), which may change it")
        self._callbacks(args.all)
        return self.kept("[]") | self.kept(f"{name}()") | Value(owner.held, owner.held)

    def call_one(self, name: str, called: Any, args: Args) -> Value:
        wrapped = getattr(called, "__wrapped__", None)
        if isinstance(called, functools.partial):
            first = [self.thing("an argument of the partial", value) for value in called.args]
            named = {
                key: self.thing("an argument of the partial", value) for key, value in called.keywords.items()
            }
            return self.call_one(
                _name(called.func), called.func, Args([*first, *args.places], named | args.names, args.more)
            )
        if isinstance(called, functools._lru_cache_wrapper):
            return self.call_one(name, wrapped, args)
        if isinstance(called, MethodType) and self.of_own_code(called.__func__):
            return self._function(
                called.__func__, args.after(self.thing(name.rpartition(".")[0] or "self", called.__self__))
            )
        if isinstance(called, FunctionType) and self.of_own_code(called):
            return self._function(called, args)
        if (
            isinstance(called, FunctionType)
            and isinstance(wrapped, FunctionType)
            and self.of_own_code(wrapped)
        ):
            for other in getattr(called, "registry", {}).values():
                if getattr(other, "__module__", None) != wrapped.__module__:
                    raise Doubt(f"a call uses {name}(), to which {_name(other)}() was added elsewhere")
                self.call_one(_name(other), other, args)
            return self._function(wrapped, args).within
        if isinstance(called, type) and self.is_own(called):
            return self._instance(called, args)
        if not isinstance(called, type) and self.is_own(type(called)):
            return self.of_class("__call__", type(called), args.after(one(name, called)))
        return self._library(name, called, args)

    def of_class(self, name: str, owner: type, args: Args) -> Value:
        """A call of a method, if it is the user's."""
        found = inspect.getattr_static(owner, name, None)
        found = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        return self._function(found, args) if self.of_own_code(found) else NOTHING

    def _library(self, path: str, called: Any, args: Args) -> Value:
        name, module, owner = (
            _name(called),
            getattr(called, "__module__", None) or "",
            getattr(called, "__self__", None),
        )
        if owner is not None and not isinstance(owner, ModuleType | type) and not self.fixed(owner):
            return self._of_object(path, owner, name, args.all)
        if hasattr(called, "__dict__") and not (
            isinstance(called, type) or type(called).__name__ in libraries.FUNCTIONS
        ):
            raise Doubt(f"a call uses {path}(), and what that does cannot be seen")
        if name == "print" and sys.stdout is not sys.__stdout__ and "file" not in args.names:
            raise Doubt("a call prints, and this program has put another sys.stdout in place")
        opaque = name in libraries.CANNOT_BE_FOLLOWED and module in ("builtins", "", "importlib")
        if (
            opaque
            or (name == "getattr" and args.all.only(ModuleType, type))
            or (called is type and args.places[1:])
        ):
            raise Doubt(f"a call uses {name}(), and what that does cannot be seen")
        if name in ("getenv", "expandvars"):
            self.reads.add(("os", "environ"))
        if module == "logging" and name in (*libraries.LOGGING, "getLogger"):
            self.logs = True
            return NOTHING
        if name in libraries.OF_THE_PROCESS:
            raise Doubt(f"a call uses {module or path}.{name}(), which is about state of this process")
        if "out" in args.names or hasattr(called, "nin"):
            self.written(
                args.names.get("out", NOTHING) | all_of(args.places[getattr(called, "nin", 99) :]),
                f"{path}()",
            )
        return self._taken(name, module.partition(".")[0] or "builtins", args.all)

    def _of_object(self, path: str, owner: Any, name: str, given: Value) -> Value:
        """A call of a method of a library's, of an object that lives on."""
        self._callbacks(given)
        if isinstance(owner, logging.Logger) and name in libraries.LOGGING:
            self.logs = True
            return NOTHING
        if name not in libraries.READS:
            raise Doubt(f"a call uses {path}(), which may change what it is of")
        path = path.rpartition(".")[0]
        if _of_numpy(owner):
            return one(path, ARRAY) if name in libraries.VIEWS else NOTHING
        inside = self.element(one(path, owner)) if name in libraries.GIVES_ITS_OWN else NOTHING
        return inside | inside.within if name == "get" else inside.within

    def _taken(self, name: str, root: str, given: Value) -> Value:
        """What a library's function gives of what it is given."""
        plain = plain_of(given)
        for label in plain.shared.values():
            if hasattr(label.value, "__next__"):
                raise Doubt(f"a call uses up {label.name}")
            known = (
                name in libraries.PURE_BUILTINS if root == "builtins" else root in libraries.PURE_LIBRARIES
            )
            if not known or name in libraries.CHANGING:
                raise Doubt(f"a call passes {label.name} to {name}(), which may change it")
        self._callbacks(given)
        for label in given.only(abc.ABCMeta).shared.values() if name in ("isinstance", "issubclass") else ():
            if self.is_own(label.value) and abc._get_dump(label.value)[0]:  # type: ignore[attr-defined]
                raise Doubt(f"a call uses {name}() of {label.name}, with which classes were registered")
        if root in ("numpy", "scipy"):
            return one(plain.name, ARRAY) if name in libraries.VIEWS and plain else NOTHING
        if root not in libraries.GIVES or name in libraries.ATOMIC:
            return NOTHING
        inside = self.element(plain) if plain else NOTHING
        held = (inside | plain).within | Value(made=given.made)
        return held if name in libraries.MAKES else held | inside

    def _callbacks(self, given: Value) -> None:
        """Functions among arguments may be called with the others, and with what is in them."""
        more = plain_of(given)
        args = Args(more=more | self.element(more) if more else NOTHING)
        for made in given.functions.values():
            self._made(made, args)
        for label in given.shared.values():
            if can_be_called(label.value) and not isinstance(label.value, type):
                self.call_one(label.name, label.value, args)

    def method(self, owner: Value, name: str, args: Args) -> Value:
        result = NOTHING
        for label in owner.shared.values():
            if label.value is UNKNOWN or label.value is ARRAY:
                result |= self._of_object(f"{label.name}.{name}", label.value, name, args.all)
            else:
                result |= self.call(self._attribute(label, name), args)
        for kind in owner.kinds:
            result |= self.call(self._of_new(kind, name), args)
        return result if owner.shared or owner.made else self._of_new_object(owner, name, args)

    def _instance(self, owner: type, args: Args) -> Value:
        if issubclass(owner, enum.Enum):
            return all_of(self.thing(str(member), member) for member in owner)
        new, first = Value(made={id(owner): owner}), one(owner.__name__, owner)
        result = self.of_class("__call__", type(owner), args.after(first))
        result |= self.of_class("__new__", owner, args.after(first))
        self.of_class("__init__", owner, args.after(new))
        self.of_class("__post_init__", owner, Args([new]))
        if not self.of_own_code(owner.__init__) or _is_generated(owner.__init__):
            names: Any = getattr(owner, "__dataclass_fields__", None) or getattr(owner, "_fields", ())
            for name, value in (*zip(names, args.places, strict=False), *args.names.items()):
                self.keep(name, value)
            self.keep("*", args.more if names else args.all)
        if self._once(owner):
            for name in {name for kind in owner.__mro__ for name in vars(kind)} - libraries.MAKERS:
                self._gives(name, owner, new)
        return new | result

    def _gives(self, name: str, owner: type, self_: Value) -> None:
        """What a method gives of which no call may be seen."""
        found = inspect.getattr_static(owner, name, None)
        inner = getattr(found, "fget", getattr(found, "func", None))
        result = self._function(inner, Args([self_])) if self.of_own_code(inner) else NOTHING
        result |= self.of_class(name, owner, Args([self_]))
        self.keep(f"{name}()", result)
        if name in ("__iter__", "__next__", "__getitem__") and result:
            self.keep("[]", result | self.element(result))

    def _once(self, thing: Any) -> bool:
        """True for the first time in a round."""
        known = self._followed.get(id(thing), (None, -1))[1]
        self._followed[id(thing)] = (thing, self._round)
        return known != self._round

    def _function(self, function: Any, args: Args) -> Value:
        if _is_generated(function):
            return NOTHING
        frame, code = self._frames.get(function), function.__code__
        if frame is None:
            node = source_of(code)
            frame = FollowedCode(self, node, function.__globals__, code.co_qualname, function)
            self._frames[function] = frame
        names: Any = reversed(code.co_varnames[: code.co_argcount])
        defaults = dict(zip(names, reversed(function.__defaults__ or ()), strict=False))
        defaults |= function.__kwdefaults__ or {}
        things = {name: self.thing(f"the default of {name}", value) for name, value in defaults.items()}
        return self._run(frame, args, things)

    def _made(self, made: Made, args: Args) -> Value:
        if made.owner is not None:
            return self._function(made.code, args.after(made.owner))
        frame, outer = self._frames.get((made.code, made.frame)), made.frame
        if frame is None:
            name = f"{outer.name}.<locals>.{getattr(made.code, 'name', '<lambda>')}"
            frame = FollowedCode(self, made.code, outer.scope, name, outer)
            self._frames[made.code, outer] = frame
        return self._run(frame, args, made.defaults)

    def _run(self, frame: FollowedCode, args: Args, defaults: dict[str, Value]) -> Value:
        if frame.enter(args, defaults) or frame.round != self._round:
            if frame.running:
                self.again = True
                return frame.result
            frame.round, frame.running, before = self._round, True, frame.result
            try:
                frame.run()
            finally:
                frame.running = False
            self.again = self.again or before != frame.result
        return frame.result

    def of_own_code(self, function: Any) -> bool:
        """Not by ``__module__``, which wrappers copy."""
        return isinstance(function, FunctionType) and self._is_own(function.__globals__.get("__name__"))

    def is_own(self, kind: type) -> bool:
        return self._is_own(kind.__module__)

    def keep(self, name: str, value: Value) -> None:
        before = self._kept.get(name, NOTHING)
        self._kept[name] = both = before | value
        self.again = self.again or before != both

    def kept(self, name: str) -> Value:
        return self._kept.get(name, NOTHING) | self._kept.get("*", NOTHING)

    # what is loaded

    def fixed(self, value: Any) -> bool:
        """Whether it cannot change."""
        kind = type(value)
        if kind is tuple or kind is frozenset:
            return all(map(self.fixed, value))
        return kind in ATOMS or (isinstance(value, (*ATOMS, enum.Enum)) and not self.is_own(kind))

    def thing(self, name: str, value: Any) -> Value:
        """What has code of the user's is followed in any case, as its calls may not be seen: a function, and
        of an object what Python calls to read it."""
        if self.fixed(value):
            return NOTHING
        if self.of_own_code(value) and self._once(value):
            self._function(value, Args())
        elif not isinstance(value, type | ModuleType) and self.is_own(type(value)) and self._once(value):
            for method in {name for kind in type(value).__mro__ for name in vars(kind)} - libraries.WRITERS:
                if method.startswith("__"):
                    self._gives(method, type(value), one(name, value))
        return one(name, value)

    def name(self, scope: dict[str, Any], name: str) -> Value:
        if name in scope:
            return self.thing(name, scope[name])
        builtins = scope.get("__builtins__", {})
        names = vars(builtins) if isinstance(builtins, ModuleType) else builtins
        return one(name, names[name]) if name in names else one(name)

    def attribute(self, owner: Value, name: str) -> Value:
        result = all_of(self._attribute(label, name) for label in owner.shared.values())
        if not owner.shared:
            result |= self.kept(name) | self.kept(f"{name}()") | Value(owner.held, owner.held)
        return result | all_of(self._of_new(kind, name) for kind in owner.kinds)

    def _attribute(self, owner: Label, name: str) -> Value:
        value, called = owner.value, f"{owner.name}.{name}"
        if value is UNKNOWN or (_of_numpy(value) and name in libraries.VIEWS):
            return one(called, UNKNOWN if value is UNKNOWN else ARRAY)
        if isinstance(value, threading.local):
            raise Doubt(f"a call uses {owner.name}, of which each thread has its own")
        if isinstance(value, ModuleType):
            return self._of_module(value, name)
        found = inspect.getattr_static(value, name, _MISSING)
        if not isinstance(value, type):
            if isinstance(found, property) and self.of_own_code(found.fget):
                return self.call_one(called, found.fget, Args([one(owner.name, value)]))
            if isinstance(found, functools.cached_property):
                return self.call_one(called, found.func, Args([one(owner.name, value)]))
            if found is _MISSING:
                return one(called) | self.of_class("__getattr__", type(value), Args([one(owner.name, value)]))
            if self.is_own(type(found)) and hasattr(type(found), "__get__"):
                return self.thing(called, found) | self.kept("__get__()")
        if found is _MISSING:
            return one(called)
        known = self._attributes.get((id(value), name))
        if known is None:  # the same each time
            known = self._attributes[id(value), name] = (value, getattr(value, name))
        return self.thing(called, known[1])

    def _of_module(self, module: ModuleType, name: str) -> Value:
        called, own = f"{module.__name__}.{name}", self._is_own(module.__name__)
        found = vars(module).get(name, _MISSING)
        if not own:
            self.libraries.add(module.__name__.partition(".")[0])
        if found is _MISSING:
            if self.of_own_code(hook := vars(module).get("__getattr__")):
                return self._function(hook, Args())
            return NOTHING if self.leaves_alone(module.__name__) else one(called)  # it may be being imported
        if module is sys and name in ("stdout", "stderr"):
            if found is getattr(sys, f"__{name}__"):
                return NOTHING
            raise Doubt(f"a call uses {called}, and this program has put another in place")
        if not own and self.of_own_code(found):
            raise Doubt(f"a call uses {called}, which this program has replaced")
        if not callable(found) and not isinstance(found, ModuleType) and module.__name__ != "__main__":
            self.reads.add((module.__name__, name))
        return self.thing(called, found)

    def _of_new(self, kind: type, name: str) -> Value:
        """What an object that the call makes finds in its class."""
        found, self_ = inspect.getattr_static(kind, name, _MISSING), Value(made={id(kind): kind})
        if self.of_own_code(found):
            self._function(found, Args([self_]))
            return Value(made={hash((found, kind)): Made(found, owner=self_)})
        if isinstance(found, staticmethod | classmethod):
            return self._attribute(Label(kind.__name__, kind), name)
        known = self.kept(name) | self.kept(f"{name}()")
        return (
            known
            if found is _MISSING or hasattr(found, "__get__")
            else known | self.thing(f"{kind.__name__}.{name}", found)
        )

    def element(self, owner: Value) -> Value:
        """What is to be had out of it."""
        result = Value(owner.held, owner.held, owner.functions) | (
            NOTHING if owner.shared else self.kept("[]")
        )
        for label in owner.shared.values():
            value, name = label.value, label.name
            known = self._insides.get(id(value))
            if known is None or known[1] != self._round:
                known = self._insides[id(value)] = (value, self._round, self._inside(name, value))
            result |= known[2] | (self.kept("[]") if self.is_own(type(value)) else NOTHING)
        return result

    def _inside(self, name: str, value: Any) -> Value:
        if isinstance(value, defaultdict) and value.default_factory is not None:
            raise Doubt(f"a call uses {name}, which adds what is not in it")
        if isinstance(value, (*CONTAINERS, enum.EnumMeta)):
            inside = [*value, *value.values()] if isinstance(value, dict) else list(value)
            if all(kind in ATOMS for kind in set(map(type, inside))):
                return NOTHING
            changing = {id(part): part for part in inside if not self.fixed(part)}
            if len(changing) > MOST_OBJECTS:
                return one(name)
            return all_of(self.thing(name, part) for part in changing.values())
        if can_be_called(value) or isinstance(value, ModuleType | bytearray):
            return NOTHING
        if _of_numpy(value) and getattr(value, "dtype", None) != "O":
            return NOTHING if getattr(value, "ndim", None) == 1 else one(name, ARRAY)
        return one(name)

    def leaves_alone(self, module: str) -> bool:
        return module.partition(".")[0] in libraries.PURE_LIBRARIES

    def written(self, owner: Value, by: str, how: str = "") -> None:
        for label in owner.shared.values():
            named = getattr(label.value, "__name__", label.name) + how
            raise Doubt(f"{by} changes {named if isinstance(label.value, SENT_BY_NAME) else label.name}")


def _of_numpy(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "numpy"


def _is_generated(function: Any) -> bool:
    """Whether a dataclass has it made."""
    name: str = function.__code__.co_qualname
    return name.startswith("__create_fn__.<locals>.")


def _name(called: Any) -> str:
    return getattr(called, "__name__", None) or type(called).__name__

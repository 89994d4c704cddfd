"""What stands for values while code is followed: see effects.py."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import inspect
import pathlib
import re
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any

UNKNOWN = object()
ARRAY = type("Array", (), {"__module__": "numpy"})()
"""Some part of an array of numbers."""
CALLED = (FunctionType, type, MethodType, functools.partial, functools._lru_cache_wrapper)
"""What is followed, and no state by itself."""
ANNOTATIONS = ("__annotate__", "__annotate_func__", "__annotations_cache__")
"""Of a class: no call of one of the user's functions looks at them."""
ATOMS = (
    int, float, complex, str, bytes, bool, type(None), type(...), type(NotImplemented), range, slice,
    re.Pattern, re.Match, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal,
    fractions.Fraction, uuid.UUID, pathlib.PurePath,
)  # fmt: skip
CONTAINERS = (list, dict, set, tuple, frozenset)
SENT_BY_NAME = (FunctionType, type, ModuleType, BuiltinMethodType, enum.Enum)
"""What is the same object wherever it is sent."""
MOST_OBJECTS = 1000
"""That an expression may come to, each by itself."""


class Doubt(Exception):
    """Why calls may share what a worker elsewhere would not share."""


@dataclass(frozen=True)
class Label:
    """An object that outlives the call, and what a user would call it."""

    name: str
    value: Any = UNKNOWN

    @property
    def of_arguments(self) -> bool:
        return self.name.startswith("argument")


@dataclass(frozen=True)
class Made:
    """A function that the code makes, by its syntax tree; or a method of the user's, and its object."""

    code: Any
    frame: Any = None
    defaults: dict[str, Value] = field(default_factory=dict)
    owner: Value | None = None


@dataclass(frozen=True, eq=False)
class Value:
    """All that an expression may come to. An object that the call has made is none of these, and neither is
    one that cannot change."""

    shared: dict[int, Label] = field(default_factory=dict)
    """By identity."""
    held: dict[int, Label] = field(default_factory=dict)
    """What can be reached through an object that the call has made."""
    made: dict[int, Made | type] = field(default_factory=dict)
    """Functions that the code makes; and the user's classes, of the objects that it makes."""

    def __or__(self, other: Value) -> Value:
        if not (self and other) or self is other:
            return self or other
        shared, held = _either(self.shared, other.shared), _either(self.held, other.held)
        return Value(shared, held, self.made | other.made)

    def __bool__(self) -> bool:
        return bool(self.shared or self.held or self.made)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and all(
            self_.keys() == others.keys() for self_, others in zip(self._parts(), other._parts(), strict=True)
        )

    def _parts(self) -> tuple[dict[int, Any], ...]:
        return self.shared, self.held, self.made

    @property
    def within(self) -> Value:
        """A new object that holds this one."""
        return Value({}, self.objects, self.functions)

    @property
    def objects(self) -> dict[int, Label]:
        return _either(self.shared, self.held)

    @property
    def functions(self) -> dict[int, Any]:
        return {i: one for i, one in self.made.items() if not isinstance(one, type)}

    @property
    def kinds(self) -> list[type]:
        return [one for one in self.made.values() if isinstance(one, type)]

    @property
    def name(self) -> str:
        """Of the first of its objects."""
        return next(iter(self.objects.values())).name

    def only(self, *kinds: type) -> Value:
        """Of the objects, and not of what others hold, those of these kinds."""
        return Value({i: one for i, one in self.shared.items() if isinstance(one.value, kinds)})


NOTHING = Value()


@dataclass(frozen=True)
class Args:
    """Of a call."""

    places: list[Value] = field(default_factory=list)
    names: dict[str, Value] = field(default_factory=dict)
    more: Value = field(default_factory=Value)
    """What has no place here."""

    @property
    def all(self) -> Value:
        return all_of([*self.places, *self.names.values(), self.more])

    def after(self, *first: Value) -> Args:
        return Args([*first, *self.places], self.names, self.more)


def one(name: str, value: Any = UNKNOWN) -> Value:
    return Value({id(value): Label(name, value)})


def all_of(values: Iterable[Value]) -> Value:
    return functools.reduce(Value.__or__, values, NOTHING)


def by_identity(value: Any) -> bool:
    """Whether one copy of it is not equal to another."""
    return (
        value is not UNKNOWN and not isinstance(value, SENT_BY_NAME) and type(value).__eq__ is object.__eq__  # type: ignore[comparison-overlap]
    )


def _either(some: dict[int, Label], others: dict[int, Label]) -> dict[int, Label]:
    both = others | some
    return both if len(both) <= MOST_OBJECTS else {id(UNKNOWN): Label(next(iter(both.values())).name)}


def plain_of(value: Value) -> Value:
    """Without what can be called."""
    shared, held = (
        {i: label for i, label in some.items() if not can_be_called(label.value)}
        for some in (value.shared, value.held)
    )
    return Value(shared, held)


def can_be_called(value: Any) -> bool:
    return isinstance(value, CALLED) or inspect.isbuiltin(value)

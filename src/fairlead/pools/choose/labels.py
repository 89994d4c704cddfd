"""What stands for values while code is followed: see effects.py."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import functools
import pathlib
import re
import uuid
from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.pools.choose.followed_code import FollowedCode

UNKNOWN = object()
CALLED = (FunctionType, type, MethodType, functools.partial, functools._lru_cache_wrapper)
"""What is followed, and no state by itself."""
ANNOTATIONS = ("__annotate__", "__annotate_func__", "__annotations_cache__")
"""Of a class: no call of one of the user's functions looks at them."""
ATOMS = (
    int, float, complex, str, bytes, bool, type(None), type(...), range, slice, re.Pattern, re.Match,
    datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, decimal.Decimal, fractions.Fraction,
    uuid.UUID, pathlib.PurePath, enum.Enum,
)  # fmt: skip
CONTAINERS = (list, dict, set, tuple, frozenset, bytearray)


class Doubt(Exception):
    """Why calls may share what a worker elsewhere would not share."""


class Label:
    """An object that outlives the call, and what a user would call it."""

    __slots__ = ("inside", "name", "value")

    def __init__(self, name: str, value: Any) -> None:
        self.name = name
        self.value = value
        self.inside: Any = UNKNOWN
        """What ``element`` found, which takes long of a large table."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Label) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


class Method:
    """A method that was taken from a label, or from an object that the call has made."""

    def __init__(self, owner: Label | None, name: str, function: Any = None) -> None:
        self.owner = owner
        self.name = name
        self.function = function

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Method)
            and (self.owner, self.name) == (other.owner, other.name)
            and self.function is other.function
        )

    __hash__ = None  # type: ignore[assignment]


class ElementOf:
    def __init__(self, element: Any) -> None:
        self.element = element

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ElementOf) and self.element == other.element

    __hash__ = None  # type: ignore[assignment]


class MadeFunction:
    """A function that the code makes: a lambda, a comprehension."""

    def __init__(self, code: CodeType, frame: FollowedCode) -> None:
        self.code = code
        self.frame = frame

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MadeFunction) and self.code is other.code

    __hash__ = None  # type: ignore[assignment]


def labelled(name: str, value: Any) -> Label | None:
    """None for what cannot change."""
    return None if fixed(value) else Label(name, value)


def fixed(value: Any) -> bool:
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return all(map(fixed, value))
    if isinstance(value, functools.partial | MethodType):
        return False
    return isinstance(value, ATOMS)


def element(label: Any) -> Any:
    """What is to be had out of it."""
    if isinstance(label, ElementOf):
        return label.element
    if not isinstance(label, Label):
        return None
    if label.inside is UNKNOWN:
        label.inside = _inside(label)
    return label.inside


def _inside(label: Label) -> Label | None:
    value, name = label.value, label.name
    if not isinstance(value, CONTAINERS):
        return Label(name, UNKNOWN)
    inside = [*value.values()] if isinstance(value, dict) else list(value)
    if isinstance(value, bytearray) or _all_fixed(inside):
        return None
    return Label(name, inside[0] if len(set(map(type, inside))) == 1 else UNKNOWN)


def _all_fixed(inside: list[Any]) -> bool:
    if all(issubclass(kind, ATOMS) for kind in set(map(type, inside))):
        return True
    return all(map(fixed, inside))


def merged(one: Any, other: Any) -> Any:
    """What stands for both."""
    if one is None or one == other:
        return other
    if other is None:
        return one
    return Label(named_in(one), UNKNOWN)


def named_in(value: Any) -> str:
    """The name of the label in it."""
    value = value.element if isinstance(value, ElementOf) else value
    value = value.owner if isinstance(value, Method) else value
    return str(getattr(value, "name", "what it shares"))

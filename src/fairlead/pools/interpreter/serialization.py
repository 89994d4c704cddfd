"""Functions on their way to interpreters: pickled once, and unpickled once by each worker.

By reference (``module:name``) where a worker can import them; by value otherwise, which is for lambdas,
closures and whatever belongs to ``__main__``. One that goes by value takes along the values of the variables
that it uses; so it is remembered only as long as these are the very same objects, and none of a kind that
could have changed inside.
"""

from __future__ import annotations

import itertools
import operator
import pickle
from collections.abc import Callable
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

from fairlead import _native
from fairlead.errors import SerializationError
from fairlead.pools.engine.contract import Task
from fairlead.pools.interpreter.worker import CHUNK, PICKLED, RESULT, UNREADABLE_HERE
from fairlead.pools.serialization import calls, contexts, pickling
from fairlead.pools.serialization.chunks import chunk_of
from fairlead.pools.serialization.pickling import OF_THE_THREAD

REMEMBERED = 128
DEPTH = 3
"""Functions that use functions that use functions: none deeper is remembered."""

_FIXED = (int, float, complex, str, bytes, bool, type(None), ModuleType, type)


class Shipping:
    """For one pool. Any thread."""

    def __init__(self) -> None:
        self._known: dict[Any, tuple[int, str | bytes, tuple[Any, ...] | None]] = {}
        self._numbers = itertools.count(1)

    def ship(self, function: Callable[..., Any]) -> tuple[int, str | bytes]:
        """Its number, by which workers remember it (0: they do not), and its reference or its pickle. Raises
        SerializationError."""
        kind = type(function)
        if kind is not FunctionType and kind is not type and not _of_a_module(function):
            return 0, _pickled(function)
        known = self._known.get(function)
        if known is not None and (known[2] is None or _same(known[2], _uses(function, DEPTH))):
            return known[0], known[1]
        shipped = _by_reference(function)
        uses = None
        if shipped is None:
            shipped = _pickled(function)
            uses = _uses(function, DEPTH) if kind is FunctionType else ()
            if uses is None:
                return 0, shipped
        while len(self._known) >= REMEMBERED:
            self._known.pop(next(iter(self._known)), None)
        number = next(self._numbers)
        self._known[function] = number, shipped, uses
        return number, shipped

    def pack(self, task: Task, *, by_value: bool = False) -> tuple[Any, ...]:
        """A call, as worker.py takes it. Raises SerializationError; of a chunk, items that cannot be sent
        end, and the others are packed."""
        args, kwargs, named = task.args, task.kwargs, contexts.named(task)
        chunk = chunk_of(task)
        function, star = (task.function, None) if chunk is None else calls.on_items(task, chunk)
        number, shipped = self.ship(function)
        if by_value:

            def pickled() -> bytes:
                items = args if chunk is None else calls.items_of(task, chunk)
                return pickling.dumps((items, kwargs, named), by_value=True)

            return number, shipped, None, None, None, star, calls.without_refused(task, pickled)
        return number, shipped, args if chunk is None else tuple(chunk), kwargs or None, named, star, None


def read_outcome(kind: int, value: Any) -> tuple[bool, Any]:
    """Of a reply by worker.py: whether it is a result, and that or the exception."""
    if kind == RESULT:
        return True, value
    if kind == CHUNK:
        return True, (calls.outcomes_of(value[0]), value[1])
    if kind != UNREADABLE_HERE:
        try:
            read = pickle.loads(value)
        except BaseException as reason:  # noqa: BLE001 - whatever unpickling runs
            value = reason
        else:
            return kind == PICKLED, read if kind == PICKLED else read.error
    error = SerializationError(f"the result cannot be read here: {value!r}")
    error.__cause__ = value
    return False, error


def shipped(what: str, function: Callable[..., object] | None, args: tuple[Any, ...]) -> bytes | None:
    """Raises SerializationError."""
    if function is None:
        return None

    def dumps(call: tuple[Any, ...]) -> bytes:
        return pickling.dumps(call, by_value=True)

    return calls.shipped(what, function, lambda: _native.sharing(dumps, (function, args)))


def _by_reference(function: Callable[..., Any]) -> str | bytes | None:
    if function.__module__ == "__main__":
        return None
    try:
        pickled = pickle.dumps(function, 5)
    except OF_THE_THREAD:
        raise
    except BaseException:  # noqa: BLE001 - objects raise what they like when they are asked
        return None
    # what pickle has found there needs no pickle to be found by a worker, which then starts without that
    named = type(function) is FunctionType and isinstance(function.__module__, str)
    return f"{function.__module__}:{function.__qualname__}" if named else pickled


def _pickled(function: Callable[..., Any]) -> bytes:
    return calls.shipped("function", function, lambda: pickling.dumps(function, by_value=True))


def _uses(function: Callable[..., Any], depth: int) -> tuple[Any, ...] | None:
    """All that it takes along, one object after another; None: something of it may change inside."""
    assert isinstance(function, FunctionType)
    code, names = function.__code__, function.__globals__
    has_inner = any(type(constant) is CodeType for constant in code.co_consts)
    if has_inner or function.__kwdefaults__ or function.__dict__:
        return None
    used: list[Any] = [code, *(function.__defaults__ or ())]
    used += [names[name] for name in code.co_names if name in names]
    for cell in function.__closure__ or ():
        try:
            used.append(cell.cell_contents)
        except ValueError:
            return None
    for one in used[1:]:
        if isinstance(one, FunctionType) and depth > 0 and one is not function:
            inner = _uses(one, depth - 1)
            if inner is None:
                return None
            used += inner
        elif one is not function and type(one) not in _FIXED and not _of_a_module(one):
            return None
    return tuple(used)


def _of_a_module(function: object) -> bool:
    """Whether it is a function in C: none that is a method of an object, which may change."""
    if not isinstance(function, BuiltinFunctionType):
        return False
    return isinstance(function.__self__, ModuleType | type | None)


def _same(before: tuple[Any, ...], now: tuple[Any, ...] | None) -> bool:
    return now is not None and len(before) == len(now) and all(map(operator.is_, before, now))

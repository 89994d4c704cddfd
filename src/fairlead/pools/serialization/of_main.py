"""Globals of ``__main__`` that a worker has not got, or has otherwise.

A worker process imports the program's file, without what stands under ``if __name__ == "__main__":``. So a
function or class of it goes there by reference, and takes the globals along that it reads, itself or by the
functions of ``__main__`` that it calls, if they may be others there. The worker sets them before the call.

Others may be names that are stored under the guard, or by a function, and objects that may be changed there.
One that has the value that the file gives it is no other until it has gone along once: before that only an
initializer may have set it in the worker. Functions that set globals take none along, as initializers.
"""

from __future__ import annotations

import functools
import io
import operator
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.pools.serialization.main_file import MainFacts

in_worker = False
"""Whether this process is a worker: globals are set here then, and do not go along from here."""

_NAMED = (FunctionType, type)
_OF_FUNCTIONS = (
    *_NAMED, property, staticmethod, classmethod, functools.cached_property, type(functools.cache(len)),
)  # fmt: skip
_WITHIN = "__wrapped__", "fget", "fset", "func"
"""Attributes of these in which there are functions."""
_SURE = (
    int, float, complex, str, bytes, bool, type(None), ModuleType, BuiltinFunctionType, range, *_OF_FUNCTIONS,
)  # fmt: skip
"""Types of objects that are not changed, or that workers have by reference."""
_gone: set[str] = set()
"""Names that have gone along."""


def pickler(file: Any, keep: Callable[[pickle.PickleBuffer], bool] | None = None) -> pickle.Pickler:
    """A pickler of protocol 5, as ever but for what is of ``__main__``."""
    # looking at each object costs time
    kind = _Pickler if any(_facts()[:2]) else pickle.Pickler
    return kind(file, 5, buffer_callback=keep)


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        return _with_globals(value, frozenset()) if issubclass(type(value), _NAMED) else NotImplemented


def takes_along(value: Any) -> frozenset[str]:
    """Names of globals that go along with a function or class of ``__main__``."""
    names = _read_by(value) if _is_found_by_name(value) else frozenset()
    if not names:
        return names
    scope = vars(sys.modules["__main__"])
    return frozenset(name for name in names if name in scope and _differs(name, scope[name]))


def _is_found_by_name(value: Any) -> bool:
    try:
        main = value.__module__ == "__main__"
        return main and operator.attrgetter(value.__qualname__)(sys.modules["__main__"]) is value
    except AttributeError:
        return False


def _name(value: Any) -> str:
    """The global's in which it is."""
    name: str = value.__qualname__
    return name.partition(".")[0]


@functools.lru_cache(1024)
def _read_by(value: Any) -> frozenset[str]:
    """Names of globals that may be others in a worker: its own, and those that it reads."""
    from fairlead.pools.serialization.function import codes, named_by

    stored, changed, _ = _facts()
    scope = vars(sys.modules["__main__"])
    found = {_name(value)}
    seen: set[FunctionType] = set()
    left = [*_functions(value)]
    while left:
        function = left.pop()
        if function in seen or any(named_by(function.__code__, "STORE_GLOBAL")):
            continue
        seen.add(function)
        names = {name for code in codes(function.__code__) for name in code.co_names}
        found |= names
        for name in names - stored:  # what these stand for goes along itself, with its own
            left += _functions(scope.get(name))
    return frozenset(found & (stored | changed))


def _differs(name: str, value: Any) -> bool:
    stored, _, said = _facts()
    if name not in stored and (type(value) in _SURE or type(value).__module__ == "logging"):
        return False
    return name in _gone or name not in said or type(value) is not type(said[name]) or value != said[name]


def _functions(value: Any) -> Iterator[FunctionType]:
    """Those of ``__main__`` that it is made of: itself, what it decorates, the methods of a class."""
    main = sys.modules["__main__"].__name__
    if isinstance(value, type):
        for kind in value.__mro__:
            for part in vars(kind).values() if kind.__module__ == main else ():
                if not isinstance(part, type):
                    yield from _functions(part)
    elif isinstance(value, _OF_FUNCTIONS):
        if isinstance(value, FunctionType) and value.__globals__.get("__name__") == main:
            yield value
        for name in _WITHIN:
            yield from _functions(getattr(value, name, None))


def _with_globals(value: Any, taken: frozenset[str]) -> Any:
    """What an object of the worker's main module is pickled as; ``taken`` are names that are going along."""
    names = takes_along(value) - taken
    pickles = _pickles(names, taken | names) if names else []
    if not pickles:
        return NotImplemented
    _gone.update(names)
    return _set_globals, (value.__qualname__, pickles)


def _pickles(names: Iterable[str], taken: frozenset[str]) -> list[bytes]:
    """Of globals: of all together, as they may refer to each other; or of each that can be sent."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle has no types
        def reducer_override(self, value: Any) -> Any:
            named = issubclass(type(value), _NAMED) and _is_found_by_name(value)
            if named and _name(value) not in _facts()[0]:
                return _with_globals(value, taken)
            return super().reducer_override(value)

    scope = vars(sys.modules["__main__"])
    values = {name: scope[name] for name in names}
    with io.BytesIO() as file:
        try:
            Pickler(file, 5).dump(values)
        except Exception:  # noqa: BLE001 - objects raise what they like when they are asked
            return [one for name in values for one in _pickles([name], taken)] if len(values) > 1 else []
        return [file.getvalue()]


def _set_globals(name: str, pickles: list[bytes]) -> Any:
    """The function or class of this name, once these are set."""
    main = sys.modules["__main__"]
    if not in_worker:
        return operator.attrgetter(name)(main)
    values = {name: value for pickled in pickles for name, value in pickle.loads(pickled).items()}
    vars(main).update(values)
    found = operator.attrgetter(name)(main)
    for function in _functions(found):
        function.__globals__.update(values)  # multiprocessing has copied the module out of these
    return found


def _facts() -> MainFacts:
    main = sys.modules["__main__"]
    imports_main = in_worker or main.__name__ != "__main__"
    return _facts_of(None if imports_main else getattr(main, "__file__", None))


@functools.lru_cache(4)
def _facts_of(file: str | None) -> MainFacts:
    if file is None:
        return frozenset(), frozenset(), {}
    from fairlead.pools.serialization.main_file import read  # not in workers, whose imports are few

    return read(file)

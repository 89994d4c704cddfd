"""Functions of ``__main__`` whose globals a worker has not got, or has otherwise.

A worker process imports the program's file, without what stands under ``if __name__ == "__main__":``. A
function that goes there by reference finds no global that was set under this guard, or finds the value that
was set before it. So it goes by value when it reads one that may be another: that is stored under the guard,
or by a function; or an object that may be changed there. One that has the value that the file gives it is no
other, unless a worker's initializer has set it there; and functions that set globals go by reference, as
initializers do. Classes go by reference, so that results are instances of the program's own.
"""

from __future__ import annotations

import ast
import dis
import functools
import io
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

_SURE = (
    int, float, complex, str, bytes, bool, type(None), type, ModuleType, BuiltinFunctionType, range,
)  # fmt: skip
_READERS = {"len", "sum", "min", "max", "sorted", "enumerate", "zip", "any", "all", "list", "tuple", "set"}
_READING = {"get", "items", "keys", "values", "index", "count", "copy"}

MainFacts = tuple[frozenset[str], frozenset[str], dict[str, Any]]
"""Names that are stored where a worker does not, names of what may be changed there, and what the file itself
says that names stand for."""
_STORE_GLOBAL = dis.opmap["STORE_GLOBAL"]


def goes_by_value(function: Any) -> bool:
    """Whether it is one of these functions."""
    if type(function) is not FunctionType or function.__module__ != "__main__":
        return False
    facts = _facts()
    return any(facts[:2]) and (function.__qualname__ in facts[0] or _reads(function, facts, set()))


def pickler(file: Any, keep: Callable[[pickle.PickleBuffer], bool] | None = None) -> pickle.Pickler:
    """A pickler of protocol 5 that pickles these functions by value, and all else as ever."""
    # looking at each object costs time
    kind = _Pickler if any(_facts()[:2]) else pickle.Pickler
    return kind(file, 5, buffer_callback=keep)


def dumps(value: Any) -> bytes:
    with io.BytesIO() as file:
        pickler(file).dump(value)
        return file.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if goes_by_value(value):
            pickled = _by_value(value)
            if pickled is not None:
                return pickle.loads, (pickled,)
        return NotImplemented


def _by_value(function: FunctionType) -> bytes | None:
    """None: what it reads cannot be pickled, and it goes by reference after all."""
    try:
        import cloudpickle
    except ImportError:
        return None

    class Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle has no types
        def reducer_override(self, value: Any) -> Any:
            if value is not function and isinstance(value, type | FunctionType) and not goes_by_value(value):
                main = sys.modules["__main__"]
                if value.__module__ == "__main__" and vars(main).get(value.__qualname__) is value:
                    return NotImplemented
            return super().reducer_override(value)

    with io.BytesIO() as file:
        try:
            Pickler(file, 5).dump(function)
        except (KeyboardInterrupt, SystemExit):
            raise
        except Exception:  # noqa: BLE001 - objects raise what they like when they are asked
            return None
        return file.getvalue()


def _reads(function: FunctionType, facts: MainFacts, seen: set[CodeType]) -> bool:
    """Whether it reads what may be another in a worker, and sets nothing itself."""
    stored, changed, said = facts
    if function.__code__ in seen:
        return False
    seen.add(function.__code__)
    scope = function.__globals__
    found = False
    if _STORE_GLOBAL in function.__code__.co_code[::2]:
        return False
    for name in _names(function.__code__) & scope.keys():
        value = scope[name]
        if type(value) is FunctionType:
            found = found or (
                value.__module__ == "__main__" and (name in stored or _reads(value, facts, seen))
            )
        elif isinstance(value, type | ModuleType) or type(value).__module__ == "logging":
            pass
        elif name in stored or (name in changed and type(value) not in _SURE):
            as_said = name in said and type(value) is type(said[name]) and value == said[name]
            found = found or not as_said
    return found


@functools.lru_cache(1024)
def _names(code: CodeType) -> frozenset[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return frozenset(code.co_names).union(*inner)


def _facts() -> MainFacts:
    main = sys.modules["__main__"]
    in_a_worker = main.__name__ != "__main__"  # there is no other that imports it
    return _facts_of(None if in_a_worker else getattr(main, "__file__", None))


@functools.lru_cache(4)
def _facts_of(file: str | None) -> MainFacts:
    """Of the program's file: what stands under the guard, and in functions, which may be called there."""
    none: frozenset[str] = frozenset()
    try:
        tree = ast.parse(Path(file or "").read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError):
        return none, none, {}
    said: dict[str, Any] = {}
    stored: set[str] = set()
    changed: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, ast.If) and _is_guard(statement.test):
            for inner in statement.body:
                stored.update(_stored(inner))
                changed.update(_changed(inner, under_guard=True))
        else:
            for name in _stored(statement):
                said[name] = ... if name in said else _said(statement)
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                    changed.update(_changed(node, under_guard=False))
    stored.update(name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names)
    return frozenset(stored), frozenset(changed), said


def _said(statement: ast.stmt) -> Any:
    """What an assignment of a literal assigns; Ellipsis for all else."""
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        try:
            return ast.literal_eval(statement.value)
        except ValueError:
            pass
    return ...


def _is_guard(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(test))


def _stored(tree: ast.AST) -> Iterator[str]:
    """Not within functions and classes: those have names of their own."""
    if isinstance(tree, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield tree.name
        return
    if isinstance(tree, ast.Lambda):
        return
    if isinstance(tree, ast.Name) and isinstance(tree.ctx, ast.Store):
        yield tree.id
    if isinstance(tree, ast.alias):
        yield tree.asname or tree.name.partition(".")[0]
    for child in ast.iter_child_nodes(tree):
        yield from _stored(child)


def _changed(tree: ast.AST, *, under_guard: bool) -> Iterator[str]:
    """Names of which it does more than to read what they stand for. A loop under the guard may change what it
    takes out."""
    reads: set[ast.AST] = set()
    for node in ast.walk(tree):  # each before what is in it
        if (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load)) or (
            isinstance(node, ast.Attribute) and node.attr in _READING
        ):
            reads.add(node.value)
        elif isinstance(node, ast.Compare):
            reads.update(node.comparators)
        elif isinstance(node, ast.For | ast.comprehension) and not under_guard:
            reads.add(node.iter)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _READERS:
            reads.update(node.args)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node not in reads:
            yield node.id

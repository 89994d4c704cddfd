"""The function and its items, in the process that calls it."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import itertools
import math
import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .calling import said

MOST_ITEMS = 100_000
"""Of an iterable that does not say how many it has."""


class Refused(Exception):
    """What was asked for cannot be done, and why: raised as an error in the command."""

    called = False
    """Whether that was found by calling the function."""


class Unfit(Refused):
    """A call of the function came to no result."""

    called = True


def load_target(job: dict[str, Any], say: Callable[[str], None]) -> tuple[Callable[..., Any], list[Any]]:
    """The function and the list of its items.

    Args:
        say: called with what is being done, for the parent if it finds the process dead.

    Raises:
        Refused: one of them cannot be had.
    """
    target, items = job["target"], job["items"]
    say("import")
    names: dict[str, Any] = {}
    if "pickle" in target:
        function = _unpickled(target["pickle"], "the function")
    else:
        module = _module(target["module"])
        names = vars(module)
        function = _attribute(module, target["name"])
    if not callable(function):
        raise Refused(f"{target['label']} is {_a(function)}, which cannot be called: name a function")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise Refused(f"{target['label']} makes generators: name a function that returns its result")
    say("items")
    if "pickle" in items and Path(items["pickle"]).exists():
        found = _unpickled(items["pickle"], "the items")
    else:
        found = _evaluated(items["expression"], names)
    if not found:
        raise Refused("there are no items: give at least one")
    return function, found


def elsewhere(expression: str) -> tuple[str, str] | None:
    """("module", "name") or ("module", "name()") of items that are named as the function is: MODULE:NAME."""
    module, colon, name = expression.strip().partition(":")
    parts = (*module.split("."), *name.removesuffix("()").split("."))
    return (module, name) if colon and all(part.isidentifier() for part in parts) else None


def sequence(calls: int, items: int, begin: int, end: int) -> list[int]:
    """Places of the items of calls ``begin`` to ``end``, of ``calls`` that take the items in turn.

    In an order of which every part is spread evenly over all calls, and which makes no call twice.
    """
    step = max(1, round(calls * 0.618))
    while math.gcd(step, calls) > 1:
        step += 1
    return [number * step % calls % items for number in range(begin, end)]


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (package := _of_another_python(error)) is not None:
            why = f"{name} cannot be imported: {package} is not installed for it"
        elif error.name is not None and not f"{name}.".startswith(f"{error.name}."):
            why = f"{name} cannot be imported: it needs {error.name}, which is not installed"
        else:
            why = f"there is no module {name} here: name one as Python imports it, from its directory"
        raise Refused(why) from error
    except SystemExit as error:
        raise Refused(
            f"{name} ends its process (sys.exit) when it is imported: put what it does as a program under "
            "if __name__ == '__main__'"
        ) from error
    except BaseException as error:
        package = _of_another_python(error)
        why = f"it raised {said(error)}; mend it, or name another module"
        if package is not None:
            why = f"{package} is not installed for it"
        raise Refused(f"{name} cannot be imported: {why}") from error


def _of_another_python(error: BaseException | None) -> str | None:
    """The package that has a compiled module for other interpreters and not for this one.

    What such packages say themselves are forty lines, in each another way. The cause in their chain is the
    same: no module of a name, beside a file of that name and another suffix.
    """
    while error is not None:
        names = (getattr(error, "name", None) or "").split(".") if isinstance(error, ImportError) else []
        if len(names) > 1 and (found := importlib.util.find_spec(names[0])) is not None:
            for place in found.submodule_search_locations or ():
                if any(Path(place, *names[1:-1]).glob(f"{names[-1]}.*.so")):
                    return names[0]
        error = error.__cause__ or error.__context__
    return None


def _attribute(module: Any, path: str) -> Any:
    found = module
    for name in path.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            close = difflib.get_close_matches(name, vars(module), n=1)
            hint = f"did you mean {close[0]}?" if close else "name one that it defines"
            raise Refused(f"{module.__name__} has no {path}: {hint}") from None
    return found


def _evaluated(expression: str, names: dict[str, Any]) -> list[Any]:
    """Items named as the function is, or a Python expression."""
    named = elsewhere(expression)
    try:
        if named is not None:
            module, name = named
            value = _attribute(_module(module), name.removesuffix("()"))
            value = value() if name.endswith("()") else value
        else:
            value = eval(expression, {**names, "__builtins__": __builtins__})
    except Refused:
        raise
    except (SyntaxError, NameError) as error:
        raise Refused(
            f"--items {expression!r} cannot be evaluated ({said(error)}): write MODULE:NAME, "
            "MODULE:NAME() or an expression with the names of the function's module"
        ) from error
    except BaseException as error:
        raise Refused(_not_made(expression, error)) from error
    if not hasattr(value, "__iter__") and not hasattr(value, "__getitem__"):
        hint = f"call it, as '{expression.strip()}()'" if callable(value) else "name an iterable"
        raise Refused(f"--items {expression!r} is {_a(value)}, which has no items: {hint}")
    try:
        return list(itertools.islice(iter(value), MOST_ITEMS))
    except BaseException as error:
        raise Refused(_not_made(expression, error)) from error


def _not_made(expression: str, error: BaseException) -> str:
    return f"--items {expression!r} raised {said(error)}: give items that can be made"


def _unpickled(path: str, what: str) -> Any:
    try:
        return pickle.loads(Path(path).read_bytes())
    except BaseException as error:
        raise Refused(f"{what} cannot be loaded in another process: {said(error)}") from error


def _a(thing: object) -> str:
    name = type(thing).__name__
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"


def interpreter() -> str:
    """ "CPython 3.13.1 free-threaded"."""
    name = {"cpython": "CPython"}.get(sys.implementation.name, sys.implementation.name)
    free = " free-threaded" if not getattr(sys, "_is_gil_enabled", lambda: True)() else ""
    return f"{name} {'.'.join(map(str, sys.version_info[:3]))}{free}"

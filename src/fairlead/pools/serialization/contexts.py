"""Context variables on their way to a worker: by the module and the name that they have there."""

from __future__ import annotations

import importlib
import sys
from contextvars import Context, ContextVar

from fairlead.errors import SerializationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fairlead.pools.engine.contract import Task

    Named = list[tuple[str, str, Any]]


def named(task: Task) -> Named | None:
    """What a worker elsewhere needs to see the task's context, if it is to; raises SerializationError."""
    if task.context is None or task.options.context == "here":
        return None
    from fairlead.pools.engine.contract import CALLER  # not in workers, whose imports are few

    found: Named = []
    for variable, value in task.context.items():
        if variable is CALLER:
            continue
        where = _find(variable)
        if where is not None:
            found.append((*where, value))
        elif task.options.context is not True:
            raise SerializationError(
                f"the context variable {variable.name!r} is not an attribute of a module, and cannot be sent"
            )
    return found


_known: dict[ContextVar[Any], tuple[int, tuple[str, str] | None]] = {}
"""Where each variable was found, or not, when there were so many modules."""
KEPT = 1000


def _find(variable: ContextVar[Any]) -> tuple[str, str] | None:
    count, where = _known.get(variable, (-1, None))
    if where is not None and getattr(sys.modules.get(where[0]), where[1], None) is variable:
        return where
    if where is None and count == len(sys.modules):
        return None
    count = len(sys.modules)
    where = _search(variable)
    if len(_known) >= KEPT:
        _known.clear()
    _known[variable] = count, where
    return where


def _search(variable: ContextVar[Any]) -> tuple[str, str] | None:
    modules = list(sys.modules.values())
    for module in modules:
        names = getattr(module, "__dict__", {})
        if names.get(variable.name) is variable:
            return module.__name__, variable.name
    for module in modules:
        for name, value in list(getattr(module, "__dict__", {}).items()):
            if value is variable:
                return module.__name__, name
    return None


def in_context(named: Named) -> Context:
    """In the worker: a context in which they have their values."""
    context = Context()
    for module, name, value in named:
        context.run(getattr(importlib.import_module(module), name).set, value)
    return context

"""Modules that refuse to be imported in an interpreter of a pool: found in what the import raised."""

from __future__ import annotations

import re

from fairlead.errors import ModuleRefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_SAID = re.compile(r"subinterpreter|more than once per process|sub-interpreter", re.IGNORECASE)
_NAMED = re.compile(r"module '?([\w.]+)'? does not support loading in subinterpreters")


def explained(error: BaseException) -> BaseException:
    """A ModuleRefusedError in place of an ImportError that comes from such a module; any other as it is."""
    if not isinstance(error, ImportError) or isinstance(error, ModuleRefusedError):
        return error
    for one in _chain(error):
        said = str(one)
        if isinstance(one, ImportError) and _SAID.search(said):
            found = _NAMED.search(said)
            name = found[1] if found else one.name or _importing(one)
            refused = ModuleRefusedError(
                f"the module {name} cannot be imported in an interpreter of a pool: it refuses to work in "
                "more than one of a process; ProcessPool and ThreadPool work",
                name=name,
            )
            refused.__cause__ = error
            return refused
    return error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: list[BaseException] = []
    while error is not None and error not in seen:
        yield error
        seen.append(error)
        error = error.__cause__ or error.__context__


def _importing(error: BaseException) -> str:
    """The module whose code was being run."""
    where = error.__traceback__
    name = "?"
    while where is not None:
        name = where.tb_frame.f_globals.get("__name__") or name
        where = where.tb_next
    return name

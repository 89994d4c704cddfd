"""Whether a worker elsewhere would make a function's calls as this process does: with the same values, and
with nothing that a call changes for the others, or for the caller."""

from __future__ import annotations

import importlib
import marshal
import os
import pickle
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from fairlead.pools.choose.effects import Effects
from fairlead.pools.choose.labels import Doubt
from fairlead.pools.choose.state import MISSING, State
from fairlead.pools.serialization.function import named_by

Marks = dict[str, bytes]
Arguments = tuple[tuple[Any, ...], bool]
"""Those of a call; and whether some were given by name: then they are not in order."""
MOST_ELEMENTS = 1000
"""Of a container whose elements' kinds are looked at."""


class Sharing:
    """What calls of a function share, and with which values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            self._before = State(function).look(_mark_or_identity)
        except Exception:  # noqa: BLE001 - objects raise what they like when they are asked; ``doubt`` will say
            self._before = {}
        self._read: tuple[tuple[str, str], ...] = ()
        self._kinds: set[tuple[Any, ...]] = set()
        self.imports: set[str] = set()
        """Modules that its code imports as it runs."""
        self.logs = False
        """Whether its code uses a logger."""
        self.marks: Marks = {}
        """Of what it reads, as it is once ``doubt`` has said that there is none."""

    def doubt(self, calls: Iterable[Arguments]) -> str | None:
        """Why these calls must be made in this process; None if that does not matter to them."""
        kinds = {(*map(kind_of, args), named): (args, named) for args, named in calls}
        new = {kind: call for kind, call in kinds.items() if kind not in self._kinds}
        if not new:
            return None
        try:
            reason = self._doubt(list(new.values()))
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are asked
            reason = f"its code cannot be followed ({type(error).__name__}: {error})"
        if reason is None:
            self._kinds.update(new)
        return reason

    def _doubt(self, calls: list[Arguments]) -> str | None:
        self._state = State(self.function)  # what was imported by the first calls is seen now
        effects = Effects(self._state.is_own)
        reason = effects.of_calls(self.function, calls)
        if reason is None:
            self._read = tuple(sorted(set(self._read) | effects.reads))
            self.imports.update(name for code in effects.codes for name in named_by(code, "IMPORT_NAME"))
            self.logs = self.logs or effects.logs
            reason = None if self._kinds else self._changed()
        return reason

    def _changed(self) -> str | None:
        try:
            self.marks = marks(self._read, self._state)
        except Doubt as doubt:
            return str(doubt)
        for name, mark in self._before.items():
            if self.marks.get(name) != mark:
                return f"its first calls changed {name}"
        return None

    def stays_the_same(self) -> bool:
        """Whether nothing that it reads is another by now."""
        try:
            return self._state.calls_the_same() and marks(self._read, self._state) == self.marks
        except Doubt:
            return False

    def goes_with_it(self) -> bool:
        """Whether there is nothing that a worker has from elsewhere than from the function itself."""
        return not self._read and set(self._state.look(lambda name, _: name)) <= self._state.goes_along

    def question(self) -> tuple[Callable[..., Any], tuple[tuple[str, str], ...], Marks]:
        """The arguments of ``differs``, which is to be called in a worker."""
        return self.function, self._read, self.marks


def differs(function: Callable[..., Any], read: tuple[tuple[str, str], ...], expected: Marks) -> str | None:
    """In a worker: what of all that a function reads is another here; None if nothing is."""
    try:
        found = marks(read, State(function))
    except Doubt as doubt:
        return str(doubt)
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            return f"a worker would have {name} otherwise than this process has it"
    return None


def marks(read: tuple[tuple[str, str], ...], state: State) -> Marks:
    """Equal in two processes only if all that the function reads is equal. Raises Doubt."""
    found = state.look(_mark)
    for name, one in state.functions.items():
        found[f"the code of {name}()"] = _mark_of_code(one.__code__)
    for module, name in read:
        value = getattr(importlib.import_module(module), name, MISSING)
        found[f"{module}.{name}"] = _mark(f"{module}.{name}", dict(value) if value is os.environ else value)
    found["the current directory"] = os.getcwd().encode()  # noqa: PTH109
    return found


def _mark(name: str, value: Any) -> bytes:
    kind = type(value)
    if isinstance(value, set | frozenset):
        return b"s" + b"".join(sorted(_mark(name, one) for one in value))
    try:
        return kind.__name__.encode() + marshal.dumps(value, 0)
    except ValueError:  # no value that marshal knows
        pass
    try:
        return pickle.dumps(value, 5)
    except Exception:  # noqa: BLE001 - objects raise what they like when they are asked
        raise Doubt(f"a call uses {name}, which cannot be compared with what a worker would have") from None


def _mark_or_identity(name: str, value: Any) -> bytes:
    try:
        return _mark(name, value)
    except Doubt:
        return b"%d" % id(value)


def _mark_of_code(code: CodeType) -> bytes:
    constants = [_mark_of_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_freevars, constants)).encode()


def kind_of(value: Any) -> Any:
    """Values of one kind can be changed in the same ways."""
    kind = type(value)
    if kind not in (list, tuple, dict, set, frozenset) or len(value) > MOST_ELEMENTS:
        return kind
    return kind, frozenset(map(type, value.values() if kind is dict else value))

"""Whether a worker elsewhere would make a function's calls as this process does: with the same values, and
with nothing that a call changes for the others, or for the caller."""

from __future__ import annotations

import contextlib
import gc
import importlib
import io
import marshal
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Sequence
from types import CodeType, FunctionType
from typing import Any

from fairlead.pools.choose.effects import Effects
from fairlead.pools.choose.labels import ATOMS, SENT_BY_NAME, Doubt
from fairlead.pools.choose.libraries import SETTINGS
from fairlead.pools.choose.state import MISSING, State
from fairlead.pools.serialization.calls import ByValue
from fairlead.pools.serialization.chunks import call_chunk

Marks = dict[str, bytes]
Arguments = tuple[tuple[Any, ...], bool]
"""Those of a call; and whether some were given by name: then they are not in order."""
MOST_OBJECTS = 10_000
"""Of an argument, that are looked at."""
IN_ORDER = 32
"""Parts of an object whose types are told one by one."""
REMEMBERED = 128
_PLAIN = frozenset(ATOMS)


class Sharing:
    """What calls of a function share, and with which values."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        try:
            self._before = State(function).look(_mark_or_identity)
        except Exception:  # noqa: BLE001 - objects raise what they like when they are asked; ``doubt`` will say
            self._before = {}
        self._read: tuple[tuple[str, str], ...] = ()
        self._kinds: set[Any] = set()
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
        reason = effects.of_calls(self.function, calls) or _replaced(effects)
        if reason is None:
            settings = [
                (name, setting) for name in {*effects.libraries, "sys"} for setting in SETTINGS.get(name, ())
            ]
            self._read = tuple(sorted({*self._read, *effects.reads, *settings}))
            self.imports |= effects.imports
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
        of_modules = [pair for pair in self._read if pair[1] not in SETTINGS.get(pair[0], ())]
        return not of_modules and set(self._state.look(lambda name, _: name)) <= self._state.goes_along

    def question(self) -> tuple[Callable[..., Any], tuple[tuple[str, str], ...], Marks]:
        """The arguments of ``differs``, which is to be called in a worker."""
        return self.function, self._read, self.marks


class KnownFunctions:
    """What functions share whose calls a pool was given. Any thread."""

    def __init__(self) -> None:
        self._shared: dict[Any, Sharing | None] = {}
        """None: its calls stay in this process."""

    def remember(self, function: Callable[..., Any], sharing: Sharing | None) -> None:
        with contextlib.suppress(TypeError):  # it may not be hashable
            while len(self._shared) >= REMEMBERED:
                self._shared.pop(next(iter(self._shared)), None)
            self._shared[function] = sharing

    def may_go(self, called: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether this call, or chunk of calls, comes to the same elsewhere. Of a function about which no
        worker was asked, all that it reads must be sent with it."""
        function, calls = function_of(called, args), calls_of(called, args, kwargs)
        try:
            sharing = self._shared[function]
        except (KeyError, TypeError):
            sharing = Sharing(function)
            may_go = sharing.doubt(calls) is None and sharing.goes_with_it()
            self.remember(function, sharing if may_go else None)
            return may_go
        if sharing is None:
            return False
        if sharing.doubt(calls) is None and sharing.stays_the_same():
            return True
        self.remember(function, None)
        return False


def function_of(called: Callable[..., Any], args: Sequence[Any]) -> Callable[..., Any]:
    """The user's, of a call that may be one of a chunk, or of one that was pickled in advance."""
    function: Callable[..., Any] = args[0] if called is call_chunk else called
    return function.function if isinstance(function, ByValue) else function


def calls_of(called: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> list[Arguments]:
    """Each kind of arguments once."""
    if called is not call_chunk:
        return [((*args, *kwargs.values()), bool(kwargs))]
    _, items, star = args
    return [
        (tuple(item) if star else (item,), False) for item in {kind_of(item): item for item in items}.values()
    ]


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
        value = value() if name in SETTINGS.get(module, ()) else value  # type: ignore[operator]
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
        _Marker(written := io.BytesIO(), 5).dump(value)
        return written.getvalue()
    except Exception:  # noqa: BLE001 - objects raise what they like when they are asked
        raise Doubt(f"a call uses {name}, which cannot be compared with what a worker would have") from None


class _Marker(pickle.Pickler):
    def persistent_id(self, value: Any) -> Any:
        """The program's main module has another name in a worker."""
        return (
            (value.__module__.replace("__mp_", "__"), value.__qualname__) if isinstance(value, type) else None
        )


def _mark_or_identity(name: str, value: Any) -> bytes:
    try:
        return _mark(name, value)
    except Doubt:
        return b"%d" % id(value)


def _mark_of_code(code: CodeType) -> bytes:
    constants = [_mark_of_code(one) if isinstance(one, CodeType) else repr(one) for one in code.co_consts]
    return repr((code.co_code, code.co_names, code.co_freevars, constants)).encode()


def _replaced(effects: Effects) -> str | None:
    """What of the libraries that are used is a function of the user's by now."""
    for path, module in [*sys.modules.items()]:
        if path.partition(".")[0] not in effects.libraries - {"fairlead"}:
            continue
        for name, value in [*getattr(module, "__dict__", {}).items()]:
            inside = [*vars(value).items()] if isinstance(value, type) and value.__module__ == path else []
            for inner, one in [(name, value), *((f"{name}.{part}", one) for part, one in inside)]:
                if isinstance(one, FunctionType) and effects.of_own_code(one):
                    return f"this program has replaced {path}.{inner}"
    return None


def kind_of(value: Any) -> Any:
    """Values of one kind can be changed in the same ways: of what types they are, and all within them."""
    kinds: set[Any] = {type(value)}
    known, level, depth = {id(value)}, [value], 0
    while level and len(known) < MOST_OBJECTS:
        inner = list[Any]()
        for one in level:
            if isinstance(one, (*ATOMS, *SENT_BY_NAME)):
                continue
            parts = one if isinstance(one, list | tuple | set | frozenset) else gc.get_referents(one)
            types = frozenset(map(type, parts))
            in_order = len(parts) < IN_ORDER and not isinstance(one, list | set | frozenset)
            kinds.add((depth, type(one), tuple(map(type, parts)) if in_order else types))
            inner += [] if types <= _PLAIN else parts
        level = [part for part in inner if id(part) not in known]
        known.update(map(id, level))
        depth += 1
    return frozenset(kinds)

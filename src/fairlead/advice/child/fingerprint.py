"""A number for what a value is, equal in different processes for values that a program could not tell apart.

Pickles will not do: they depend on which parts are one object, and on the order in dictionaries and sets.
What cannot be looked into counts by its type; or, within one process, by its identity as well.
"""

from __future__ import annotations

import hashlib
import pickle
import types
from collections.abc import Callable
from typing import Any

MOST = 200_000
"""Parts that are looked at; a value of more is known by these."""

PLAIN_SIZE = object.__basicsize__ + 16
"""Of an object that keeps all that it knows in ``__dict__``."""
_PLAIN = (bool, int, float, complex, type(None), type(...), type(NotImplemented))
_NAMED = (type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodType)


def fingerprint(value: Any, enter: Callable[[type], bool] | None = None) -> str:
    """
    Args:
        enter: for comparing within this process: objects of which classes are looked into. All others, and
            what cannot be looked into, count by identity. None: for comparing between processes.
    """
    return _Walk(enter).of(value).hex()


class _Walk:
    def __init__(self, enter: Callable[[type], bool] | None) -> None:
        self._may_enter = enter
        self._within: list[int] = []
        """What is being looked into, from the outermost on: a cycle leads back to one of these."""
        self._left = MOST

    def of(self, value: Any) -> bytes:
        digest = hashlib.blake2b(digest_size=16)
        for part in self._parts(value):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.digest()

    def _parts(self, value: Any) -> list[bytes]:
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}".encode()
        self._left -= 1
        if self._left < 0:
            return [name]
        if kind in _PLAIN:
            return [name, repr(value).encode()]
        if kind is str:
            return [name, value.encode("utf-8", "surrogatepass")]
        if kind in (bytes, bytearray):
            return [name, bytes(value)]
        if isinstance(value, _NAMED):
            module, called = getattr(value, "__module__", ""), getattr(value, "__qualname__", value)
            return [name, f"{module}.{called}".encode()]
        if id(value) in self._within:
            return [name, self._within.index(id(value)).to_bytes(8, "little")]
        self._within.append(id(value))
        try:
            parts = self._inside(value, name)
        finally:
            self._within.pop()
        return parts if parts is not None else [name, self._opaque(value)]

    def _inside(self, value: Any, name: bytes) -> list[bytes] | None:
        if isinstance(value, dict):
            pairs = [self.of(key) + self.of(entry) for key, entry in list(value.items())]
            return [name, *sorted(pairs)]
        if isinstance(value, set | frozenset):
            return [name, *sorted(self.of(entry) for entry in list(value))]
        if isinstance(value, list | tuple):
            return [name, *(self.of(entry) for entry in list(value))]
        dtype = getattr(value, "dtype", None)  # an array of numpy's
        if hasattr(value, "tobytes") and not getattr(dtype, "hasobject", True):
            return [name, str(dtype).encode(), str(value.shape).encode(), value.tobytes()]
        try:
            return [name, memoryview(value).tobytes()]
        except (TypeError, ValueError, BufferError):
            pass
        if self._may_enter is not None and not self._may_enter(type(value)):
            return None
        state = getattr(value, "__dict__", None)
        slots = [
            slot
            for owner in type(value).__mro__
            for slot in _words(vars(owner).get("__slots__", ()))
            if slot not in ("__dict__", "__weakref__") and hasattr(value, slot)
        ]
        if slots or (isinstance(state, dict) and (state or type(value).__basicsize__ <= PLAIN_SIZE)):
            inside = dict(state or {}) | {slot: getattr(value, slot) for slot in slots}
            if isinstance(value, BaseException):
                inside["args"] = value.args
            return [name, *(key.encode() + self.of(entry) for key, entry in sorted(inside.items()))]
        return None

    def _opaque(self, value: Any) -> bytes:
        try:
            return pickle.dumps(value, 5)
        except Exception:  # noqa: BLE001 - objects raise what they like when they are asked
            pass
        try:
            said = repr(value)
        except Exception:  # noqa: BLE001
            said = " at 0x"
        if " at 0x" not in said:
            return said.encode("utf-8", "replace")
        return b"" if self._may_enter is None else str(id(value)).encode()


def _words(slots: Any) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)

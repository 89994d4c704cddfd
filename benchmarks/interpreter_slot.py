"""The workers' side of interpreter_calls.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead import _native
from fairlead.pools.interpreter.worker import BROKEN, RESULT, UNREADABLE, _by_value, _loads, outcome, packed

_functions: dict[int, Callable[..., Any]] = {}
_slots: list[_native.WorkerSlot] = []
_answers: list[Any] = []


def begin(board: int, answers: int) -> None:
    """For the thread that will call serve(): it can be interrupted from then on."""
    _slots.append(_native.WorkerSlot(board, 1))
    _answers.append(_native.attach(answers))


def initialize(message: bytes) -> bytes:
    """Calls the initializer."""
    try:
        function, args = _loads(message)
        function(*args)
    except BaseException as error:  # noqa: BLE001 - shown where the pool is
        return _native.message((BROKEN, packed(error)))
    return _native.message((RESULT, None))


def serve(message: bytes) -> bytes:
    """Makes a call."""
    try:
        call = _native.from_message(message)
    except Exception as error:  # noqa: BLE001 - whatever unpickling runs
        return _native.message((UNREADABLE, packed(error)))
    kind, value, function = outcome(_functions, call)
    try:
        return _native.message((kind, value))
    except Exception as refusal:  # noqa: BLE001 - objects raise what they like when they are pickled
        return _native.message(_by_value(function, kind, value, refusal))


def answer(message: bytes) -> None:
    """Where a call into an interpreter has no result."""
    _answers[0].put(message)

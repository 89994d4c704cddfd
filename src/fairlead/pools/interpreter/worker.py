"""What a worker does in its interpreter: one call after another, from the board. Keep its imports few.

Everything else that a call may need (pickle, exceptions, contexts, cloudpickle) is imported when it is
needed: an interpreter's start and its memory are mostly imports.
"""

from __future__ import annotations

import sys
import threading

from fairlead import _native
from fairlead.pools.engine.stopped import Stopped, keep_stops
from fairlead.pools.engine.worker_state import finalize, initialize
from fairlead.pools.serialization.chunks import call_chunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Functions = dict[int, Callable[..., Any]]

BEGUN, UNREADABLE, RESULT, CHUNK, PICKLED, FAILED, BROKEN, RECORD, READY = range(9)
"""What news are. The job queue knows the first two; BROKEN: the initializer raised; RECORD: a log record;
READY: the worker with this number has started."""
UNREADABLE_HERE = 255
"""The board's word for a reply that cannot be read where it was to go; its value is the reason."""

KEPT_FUNCTIONS = 256

COPIED = {type(None), bool, int, float, complex, str, bytes, bytearray}
"""Types that need no pickle; large integers, which do, can be read too."""


def main(
    board: int,
    worker: int,
    initializer: bytes | None,
    finalizer: bytes | None,
    most_tasks: int,
    idle_timeout: float | None,
    levels: dict[str, int] | None,
    announces: bool,
    name: str,
) -> None:
    """``levels``: those of the parent's loggers, if log records are to go there. ``announces``: whether to
    say that it is ready. ``name``: its thread's."""
    threading.current_thread().name = name
    keep_stops()
    slot = _native.WorkerSlot(board, worker)
    handler = None
    if levels is not None:
        from fairlead.pools.serialization.records import Forwarding

        handler = Forwarding(levels, lambda record: slot.notify(RECORD, record))
    try:
        try:
            last = None if finalizer is None else _loads(finalizer)[0]
            if initializer is not None:
                begin, args = _loads(initializer)
                initialize(begin, args)
                del begin, args
        except BaseException as error:  # noqa: BLE001 - shown where the pool is
            slot.notify(BROKEN, packed(error))
            return
        if announces:
            slot.notify(READY, worker)
        if _serve(slot, most_tasks, idle_timeout):
            finalize(last)
    finally:
        if handler is not None:
            handler.close()  # threads that a task has left must not use a slot that is gone


def _serve(slot: _native.WorkerSlot, most_tasks: int, idle_timeout: float | None) -> bool:
    """Answers calls until there are no more for it; False: it is about to be interrupted."""
    take, reply = slot.take, slot.reply
    value: Any
    function: Callable[..., Any] | None
    functions: Functions = {}
    tasks = 0
    while True:
        try:
            call = take(idle_timeout)
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever unpickling runs
            kind, value, function = UNREADABLE, packed(error), None
        else:
            if call is None:
                return True
            kind, value, function = outcome(functions, call)
            del call  # what it refers to goes back before the reply comes
        try:
            goes_on = reply(kind, value)
        except Stopped:
            raise
        except BaseException as refusal:  # noqa: BLE001 - objects raise what they like when they are pickled
            goes_on = reply(*_by_value(function, value, refusal))
        value = function = None
        tasks += 1
        if not goes_on or tasks == most_tasks:
            return goes_on


def outcome(functions: Functions, call: tuple[Any, ...]) -> tuple[int, Any, Callable[..., Any] | None]:
    """Makes the call: what came of it, and the function. ``functions`` are those known already."""
    context = None
    try:
        key, shipped, args, kwargs, named, star, pickled = call
        function = functions.get(key) or _unpack(functions, key, shipped)
        if pickled is not None:
            args, kwargs, named = _loads(pickled)
        if named is not None:
            from fairlead.pools.serialization.contexts import in_context

            context = in_context(named)
    except Stopped:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever unpickling runs
        return UNREADABLE, packed(error), None
    try:
        made: Callable[..., Any] = function
        if star is not None:
            made, args = call_chunk, (function, args, star, _failure)
        kwargs = kwargs or {}
        value = made(*args, **kwargs) if context is None else context.run(made, *args, **kwargs)
        if star is None:
            return RESULT, value, function
        outcomes, spent_ns = value
        return CHUNK, (_native_or_apart(function, outcomes), spent_ns), function
    except BaseException as error:  # noqa: BLE001 - the task's
        return FAILED, packed(error), function


def _native_or_apart(function: Callable[..., Any], outcomes: list[Any]) -> Any:
    """What every reader can read; else each pickled by itself."""
    kinds = set(map(type, outcomes))
    if tuple in kinds:
        kinds.discard(tuple)
        for one in outcomes:
            if type(one) is tuple:
                kinds.update(map(type, one))
    if kinds <= COPIED:
        return tuple(outcomes)
    from fairlead.pools.serialization.calls import each
    from fairlead.pools.serialization.messages import pickled_plain

    return each(function, outcomes) if pickled_plain(outcomes) is None else outcomes


def _unpack(functions: Functions, key: int, shipped: str | bytes) -> Callable[..., Any]:
    """A function of its reference (shipping.py) or its pickle."""
    function: Callable[..., Any]
    if isinstance(shipped, str):
        module, _, path = shipped.partition(":")
        __import__(module)
        found: Any = sys.modules[module]
        for name in path.split("."):
            found = getattr(found, name)
        function = found
    else:
        function = _loads(shipped)
    if key:
        while len(functions) >= KEPT_FUNCTIONS:
            del functions[next(iter(functions))]
        functions[key] = function
    return function


def _by_value(function: Callable[..., Any] | None, value: Any, refusal: BaseException) -> tuple[int, bytes]:
    """A reply that plain pickle has refused: by value, or why there is none."""
    from fairlead.pools.serialization import calls, pickling

    try:
        return PICKLED, pickling.dumps(value, by_value=True)
    except Stopped:
        raise
    except BaseException:  # noqa: BLE001 - objects raise what they like when they are pickled
        error = calls.result_refused(function, value, refusal)
        error.__cause__ = refusal
        return FAILED, packed(error)


def _loads(pickled: bytes) -> Any:
    import pickle

    return pickle.loads(pickled)


def packed(error: BaseException) -> bytes:
    import pickle

    return pickle.dumps(_failure(error), 5)


def _failure(error: BaseException) -> Any:
    from fairlead.pools.interpreter.import_refusal import explained
    from fairlead.pools.serialization.failure import Failure

    return Failure(explained(error))

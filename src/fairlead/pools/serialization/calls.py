"""Calls on their way to a worker, and results on their way back.

A call is pickled with functions by reference. What plain pickle refuses (lambdas, closures), and what the
worker cannot find by reference (of a ``__main__`` that it has not got), is sent by value, by cloudpickle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.errors import SerializationError
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.serialization import contexts, of_main, pickling
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Parts, pickled

if TYPE_CHECKING:
    from fairlead.pools.engine.contract import Task

CALL, END, READY, RESULT, FAILED, UNREADABLE, RECORD = range(1, 8)
"""What a message is. To a worker: a call, or the request to end. From it: ready for the first; a result; a
Failure; that the call could not be read there, with the reason; and, of no call, a log record."""

OF_THE_THREAD = (KeyboardInterrupt, Stopped)
"""Meant for the thread that pickles; whatever else comes out of pickling is an object's."""


def pack(task: Task, *, by_value: bool = False) -> Parts:
    """Raises SerializationError, which says what of it cannot be sent."""
    context = contexts.named(task)
    call = (task.function, task.args, task.kwargs, context)
    if not by_value:
        try:
            return pickled(call)
        except OF_THE_THREAD:
            raise
        except BaseException:  # noqa: BLE001 - objects raise what they like when they are asked
            pass
    try:
        return _by_value(call)
    except OF_THE_THREAD:
        raise
    except BaseException as error:
        raise SerializationError(blame(task, error)) from error


def pack_result(function: Callable[..., Any], value: Any) -> Parts:
    """Raises SerializationError."""
    try:
        return pickled(value)
    except Stopped:
        raise
    except BaseException as refusal:  # noqa: BLE001 - objects raise what they like when they are asked
        try:
            return _by_value(value)
        except Stopped:
            raise
        except BaseException:  # noqa: BLE001 - the plain refusal says more
            message = f"the result of {name_of(function)}, a {type(value).__name__}, cannot be sent back"
            raise SerializationError(f"{message}: {said(refusal)}") from refusal


def pack_outcome(function: Callable[..., Any], args: tuple[Any, ...], value: Any) -> tuple[int, Parts]:
    """What a call came to, as a message; what cannot be sent is a failure, and in a chunk only of its own
    item."""
    try:
        return RESULT, pack_result(function, value)
    except Exception as error:  # noqa: BLE001 - what cannot be sent
        if function is not call_chunk:
            return FAILED, pickled(Failure(error))
    return RESULT, pack_result(args[0], _each(args[0], value))


def _each(function: Callable[..., Any], chunk: tuple[list[Any], int]) -> tuple[list[Any], int]:
    """The outcomes of a chunk of which one cannot be sent: a Failure in its place."""
    outcomes, spent_ns = chunk
    for index, outcome in enumerate(outcomes):
        try:
            pack_result(function, outcome)
        except Exception as error:  # noqa: BLE001 - what cannot be sent
            outcomes[index] = Failure(error)
    return outcomes, spent_ns


def _by_value(value: Any) -> Parts:
    import cloudpickle

    parts = Parts()
    cloudpickle.Pickler(parts, 5, buffer_callback=parts.keep).dump(value)
    return parts


class ByValue:
    """A function that was pickled once and for all, for many calls."""

    def __init__(self, function: Callable[..., Any], pickled_function: bytes) -> None:
        self.function = function
        self._pickled = pickled_function
        self.__name__ = name_of(function)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)

    def __reduce__(self) -> Any:
        return _load_by_value, (self._pickled,)


def _load_by_value(pickled_function: bytes) -> ByValue:
    return ByValue(pickling.loads(pickled_function), pickled_function)


def portable(function: Callable[..., Any], *, by_value: bool) -> Callable[..., Any]:
    """The function, or one that does the same and is cheaper to send many times."""
    try:
        if not by_value:
            pickled_function = of_main.dumps(function)
            return ByValue(function, pickled_function) if of_main.goes_by_value(function) else function
    except OF_THE_THREAD:
        raise
    except BaseException:  # noqa: BLE001 - objects raise what they like when they are asked
        pass
    try:
        import cloudpickle

        return ByValue(function, cloudpickle.dumps(function, 5))
    except OF_THE_THREAD:
        raise
    except BaseException:  # noqa: BLE001 - the call will say what is wrong
        return function


def outcome(task: Task, kind: int, value: Any) -> Any:
    """Of a worker's answer: the result; raises what there is in its place."""
    if kind == RESULT:
        return value
    if kind == FAILED:
        raise value.error
    raise unreadable(task, value.error)


def unreadable(task: Task, error: BaseException) -> SerializationError:
    """What becomes of a call that a worker cannot read."""
    refusal = SerializationError(f"the worker cannot read the call of {name_of(task.function)}: {error}")
    refusal.__cause__ = error
    return refusal


def shipped(what: str, function: Callable[..., object], dumps: Callable[[], bytes]) -> bytes:
    """A worker's initializer or finalizer; SerializationError."""
    try:
        return dumps()
    except Exception as error:
        raise SerializationError(
            f"the {what} {name_of(function)} cannot be sent to a worker: {error}"
        ) from error


def name_of(function: Callable[..., Any]) -> str:
    return f"{getattr(function, '__name__', None) or type(function).__name__}()"


def said(refusal: BaseException) -> str:
    """What it says, and of an exit that it is one."""
    return str(refusal) if isinstance(refusal, Exception) else repr(refusal)


def blame(task: Task, error: BaseException) -> str:
    """Which part of the call cannot be sent."""
    function, args, kwargs = task.function, task.args, task.kwargs
    if function is call_chunk:
        function, items, star = args
        alone = [item[0] if star and len(item) == 1 else item for item in items]
        parts = [(f"item {item!r:.60} for", item) for item in alone]
    else:
        parts = [(f"argument {number} of", value) for number, value in enumerate(args, 1)]
        parts += [(f"argument {name!r} of", value) for name, value in kwargs.items()]
    for what, value in (("the function", function), *parts):
        try:
            pickling.dumps(value)
        except OF_THE_THREAD:
            raise
        except BaseException as reason:  # noqa: BLE001 - objects raise what they like when they are asked
            return f"{what} {name_of(function)} cannot be sent to a worker: {said(reason)}"
    return f"the call of {name_of(function)} cannot be sent to a worker: {said(error)}"

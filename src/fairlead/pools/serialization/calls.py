"""Calls on their way to a worker, and results on their way back.

A call is pickled with functions by reference. What plain pickle refuses (lambdas, closures), and what the
worker cannot find by reference (of a ``__main__`` that it has not got), is sent by value, by cloudpickle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.errors import ModuleRefusedError, SerializationError
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.serialization import contexts, of_main, pickling
from fairlead.pools.serialization.chunks import Apart, ChunkCalls, ReadFirst, call_chunk, called, chunk_of
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Parts, pickled, pickled_plain

if TYPE_CHECKING:
    from fairlead.pools.engine.contract import Task

CALL, END, READY, RESULT, FAILED, UNREADABLE, RECORD, PART, APART = range(1, 10)
"""What a message is. To a worker: a call, the request to end, or, the last, to send the outcomes of the chunk
that it has just done again, each pickled by itself. From it: ready for the first; a result; a
Failure; that the call could not be read there, with the reason; of no call, a log record; and the first
outcomes of a chunk that goes on."""

KEPT_BYTES = 256 * 1024
"""Of outcomes that a worker may be asked for again."""

OF_THE_THREAD = (KeyboardInterrupt, Stopped)
"""Meant for the thread that pickles; whatever else comes out of pickling is an object's."""


def pack(task: Task, *, by_value: bool = False) -> Parts:
    """Raises SerializationError, which says what of it cannot be sent; of a chunk, items that cannot be sent
    end, and the others are packed."""
    context = contexts.named(task)
    chunk = chunk_of(task)
    if chunk is not None and chunk.apart:
        return _pack_apart(task, chunk, context)
    args = task.args if chunk is None else _with_suspects(chunk, *task.args)
    call = (task.function, args, task.kwargs, context)
    if not by_value:
        try:
            return _noted(chunk, pickled(call))
        except OF_THE_THREAD:
            raise
        except BaseException:  # noqa: BLE001 - objects raise what they like when they are asked
            pass
    try:
        return _noted(chunk, _by_value(call))
    except OF_THE_THREAD:
        raise
    except BaseException as error:  # noqa: BLE001 - as above
        refuse(task, error)
    return pack(task, by_value=by_value)


def _with_suspects(chunk: ChunkCalls, *args: Any) -> tuple[Any, ...]:
    """What child.py calls call_chunk with."""
    return (*args, len(chunk.suspects)) if chunk.suspects else args


def _noted(chunk: ChunkCalls | None, parts: Parts) -> Parts:
    if chunk is not None:
        chunk.bytes_out = parts.nbytes
    return parts


def apart(task: Task) -> tuple[Callable[..., Any], Apart]:
    """The items of a chunk, each pickled by itself, and the function that reads them and calls the task's.
    Those that cannot be sent end."""
    chunk = chunk_of(task)
    assert chunk is not None
    function, _, star = task.args
    while True:
        try:
            parts = [_either(item) for item in chunk]
        except OF_THE_THREAD:
            raise
        except BaseException as error:  # noqa: BLE001 - objects raise what they like when they are asked
            refuse(task, error)
        else:
            return ReadFirst(function, star), Apart(parts, _cannot_read(task))


def _either(value: Any) -> Parts:
    """By value, or by reference where there is no cloudpickle."""
    try:
        return _by_value(value)
    except ImportError:
        return pickled(value)


def _pack_apart(task: Task, chunk: ChunkCalls, context: Any) -> Parts:
    reading, items = apart(task)
    try:
        return _by_value((task.function, _with_suspects(chunk, reading, items, False), task.kwargs, context))
    except OF_THE_THREAD:
        raise
    except BaseException as error:
        raise SerializationError(blame(task, error)[0]) from error


def refuse(task: Task, error: BaseException) -> None:
    """A call cannot be sent because of this. Raises SerializationError; or, if it is a chunk, ends those of
    its items that are to blame, so that the rest can be packed anew."""
    message, culprits = blame(task, error)
    chunk = chunk_of(task)
    if chunk is None or not culprits:
        raise SerializationError(message) from error
    chunk.end(culprits)


def read_again(task: Task, error: BaseException, *, by_value: bool) -> bool:
    """Whether a worker that could not read a call may be able to if it is packed by value now."""
    if isinstance(error, ModuleRefusedError):
        return False
    if not by_value and isinstance(error, AttributeError | ImportError):
        return True
    chunk = chunk_of(task)
    if chunk is None or chunk.apart:
        return False
    chunk.apart = True
    return True


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
    if function is call_chunk:
        return RESULT, pack_outcomes(args[0], value)
    try:
        return RESULT, pack_result(function, value)
    except Exception as error:  # noqa: BLE001 - what cannot be sent
        return FAILED, pickled(Failure(error))


def pack_outcomes(function: Callable[..., Any], value: tuple[list[Any], int]) -> Parts:
    """What call_chunk returns, so that a result that cannot be read costs no other."""
    parts = pickled_plain(value)
    return pack_each(function, value) if parts is None else parts


def pack_together(function: Callable[..., Any], value: tuple[list[Any], int]) -> tuple[Parts, bool]:
    """As pack_outcomes, but where that takes long: objects of classes, if they are small enough to be kept.
    Whether they are, because they may be asked for again, each by itself."""
    parts = pickled_plain(value)
    if parts is not None:
        return parts, False
    try:
        parts = pickled(value)
    except Stopped:
        raise
    except BaseException:  # noqa: BLE001 - objects raise what they like when they are pickled
        pass
    else:
        if parts.nbytes <= KEPT_BYTES:
            return parts, True
    return pack_each(function, value), False


def pack_each(function: Callable[..., Any], value: tuple[list[Any], int]) -> Parts:
    return pickled((each(function, value[0]), value[1]))


def each(function: Callable[..., Any], outcomes: list[Any]) -> Apart:
    """Outcomes of a function, each pickled by itself; a Failure where one cannot be sent."""
    if isinstance(function, ReadFirst):
        function = function.function
    return Apart(
        [_each(function, one) for one in outcomes], f"the result of {name_of(function)} cannot be read here"
    )


def _each(function: Callable[..., Any], outcome: Any) -> Parts:
    try:
        return pack_result(function, outcome)
    except Stopped:
        raise
    except BaseException as error:  # noqa: BLE001 - what cannot be sent
        return pickled(Failure(error))


def outcomes_of(value: Any) -> list[Any]:
    """Of a chunk, as they have arrived."""
    return value.read() if isinstance(value, Apart) else list(value)


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
        return value if task.function is not call_chunk else (outcomes_of(value[0]), value[1])
    if kind == FAILED:
        raise value.error
    raise unreadable(task, value.error)


def unreadable(task: Task, error: BaseException) -> SerializationError:
    """What becomes of a call that a worker cannot read."""
    refusal = SerializationError(f"{_cannot_read(task)}: {error}")
    refusal.__cause__ = error
    return refusal


def _cannot_read(task: Task) -> str:
    return f"the worker cannot read the call of {name_of(called(task))}"


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


def blame(task: Task, error: BaseException) -> tuple[str, dict[int, Failure]]:
    """Which part of the call cannot be sent; of a chunk, Failures of all items that cannot, by place."""
    function = called(task)
    refusal = _refusal("the function", function, function)
    chunk = chunk_of(task)
    culprits: dict[int, Failure] = {}
    if refusal is None and chunk is not None:
        for place, item in zip(chunk.left[1], chunk.left[0], strict=True):
            if (refusal := _refusal(f"item {item!r:.60} for", function, item)) is not None:
                culprits[place] = Failure(SerializationError(refusal))
    elif refusal is None:
        parts = [(f"argument {number} of", value) for number, value in enumerate(task.args, 1)]
        parts += [(f"argument {name!r} of", value) for name, value in task.kwargs.items()]
        for what, value in parts:
            if (refusal := _refusal(what, function, value)) is not None:
                break
    return refusal or f"the call of {name_of(function)} cannot be sent to a worker: {said(error)}", culprits


def _refusal(what: str, function: Callable[..., Any], value: Any) -> str | None:
    """None: it can be sent."""
    try:
        pickling.dumps(value)
    except OF_THE_THREAD:
        raise
    except BaseException as reason:  # noqa: BLE001 - objects raise what they like when they are asked
        return f"{what} {name_of(function)} cannot be sent to a worker: {said(reason)}"
    return None

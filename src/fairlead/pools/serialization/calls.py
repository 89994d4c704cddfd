"""Calls on their way to a worker, and results on their way back.

A call is pickled with functions by reference. What plain pickle refuses (lambdas, closures), and what the
worker cannot find by reference (of a ``__main__`` that it has not got), is sent by value, by cloudpickle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fairlead.errors import ModuleRefusedError, SerializationError
from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.serialization import contexts, of_main, pickling
from fairlead.pools.serialization.chunks import Apart, ChunkCalls, ReadFirst, call_chunk, called, chunk_of
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Parts, pickled, pickled_plain
from fairlead.pools.serialization.pickling import OF_THE_THREAD, pickled_either_way

if TYPE_CHECKING:
    from fairlead.pools.engine.contract import Task

T = TypeVar("T")

CALL, END, READY, RESULT, FAILED, UNREADABLE, RECORD, PART, APART = range(1, 10)
"""What a message is. To a worker: a call, the request to end, or, the last, to send the outcomes of the chunk
that it has just done again, each pickled by itself. From it: ready for the first; a result; a
Failure; that the call could not be read there, with the reason; of no call, a log record; and the first
outcomes of a chunk that goes on."""

KEPT_BYTES = 256 * 1024
"""Of outcomes that a worker may be asked for again."""


def pack(task: Task, *, by_value: bool = False) -> Parts:
    """Raises SerializationError, which says what of it cannot be sent; of a chunk, items that cannot be sent
    end, and the others are packed."""
    context = contexts.named(task)
    chunk = chunk_of(task)

    def packed() -> Parts:
        args = task.args
        if chunk is not None:
            function, star = on_items(task, chunk)
            args = (function, items_of(task, chunk), star, *([len(chunk.suspects)] if chunk.suspects else ()))
        call = (task.function, args, task.kwargs, context)
        return pickled_either_way(call, by_value=by_value or (chunk is not None and chunk.apart))

    parts = without_refused(task, packed)
    if chunk is not None:
        chunk.bytes_out = parts.nbytes
    return parts


def without_refused(task: Task, pack: Callable[[], T]) -> T:
    """What packs the task, called until no item is left of it, if it is a chunk, that cannot be sent. Raises
    SerializationError."""
    while True:
        try:
            return pack()
        except OF_THE_THREAD:
            raise
        except BaseException as error:  # noqa: BLE001 - objects raise what they like when they are asked
            _refuse(task, error)


def on_items(task: Task, chunk: ChunkCalls) -> tuple[Callable[..., Any], bool]:
    """What is called with the items, and whether each is several arguments."""
    function, _, star = task.args
    return (ReadFirst(function, star), False) if chunk.apart else (function, star)


def items_of(task: Task, chunk: ChunkCalls) -> Any:
    if not chunk.apart:
        return chunk
    return Apart.of([pickled_either_way(item, by_value=True) for item in chunk], _cannot_read(task))


def _refuse(task: Task, error: BaseException) -> None:
    """A call cannot be sent because of this. Raises SerializationError; or, if it is a chunk, ends those of
    its items that are to blame."""
    function = called(task)
    chunk = chunk_of(task)
    refusal = _refusal("the function", function, function)
    if refusal is None and chunk is not None:
        culprits = {}
        for place, item in zip(chunk.left[1], chunk.left[0], strict=True):
            if (said_of_it := _refusal(f"item {item!r:.60} for", function, item)) is not None:
                culprits[place] = Failure(SerializationError(said_of_it))
        if culprits:
            chunk.end(culprits)
            return
    elif refusal is None:
        parts = [(f"argument {number} of", value) for number, value in enumerate(task.args, 1)]
        parts += [(f"argument {name!r} of", value) for name, value in task.kwargs.items()]
        for what, value in parts:  # no generator, which an interrupt would leave open
            refusal = refusal or _refusal(what, function, value)
    raise SerializationError(
        refusal or f"the call of {name_of(function)} cannot be sent to a worker: {said(error)}"
    ) from error


def _refusal(what: str, function: Callable[..., Any], value: Any) -> str | None:
    """None: it can be sent."""
    try:
        pickling.dumps(value)
    except OF_THE_THREAD:
        raise
    except BaseException as reason:  # noqa: BLE001 - objects raise what they like when they are asked
        return f"{what} {name_of(function)} cannot be sent to a worker: {said(reason)}"
    return None


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
        return pickled_either_way(value)
    except Stopped:
        raise
    except BaseException as refusal:
        raise result_refused(function, value, refusal) from refusal


def result_refused(function: object, value: Any, refusal: BaseException) -> SerializationError:
    kind = type(value).__name__
    return SerializationError(
        f"the result of {name_of(function)}, a {kind}, cannot be sent back: {said(refusal)}"
    )


def pack_outcome(
    function: Callable[..., Any], args: tuple[Any, ...], value: Any, *, together: bool = False
) -> tuple[int, Parts]:
    """What a call came to, as a message; what cannot be sent is a failure, and in a chunk only of its own
    item."""
    if function is call_chunk:
        return RESULT, pack_outcomes(args[0], value, together=together)
    try:
        return RESULT, pack_result(function, value)
    except Exception as error:  # noqa: BLE001 - what cannot be sent
        return FAILED, pickled(Failure(error))


def pack_outcomes(
    function: Callable[..., Any], value: tuple[list[Any], int], *, together: bool = False
) -> Parts:
    """What call_chunk returns, so that a result that cannot be read costs no other: each is pickled by itself
    if there are others than of built-in types. That takes long; ``together``: not if they are small enough to
    be kept (KEPT_BYTES), because the worker may be asked for them again."""
    parts = pickled_plain(value)
    if parts is not None:
        return parts
    if together:
        try:
            parts = pickled(value)
            if parts.nbytes <= KEPT_BYTES:
                return parts
        except Stopped:
            raise
        except BaseException:  # noqa: BLE001 - objects raise what they like when they are pickled
            pass
    return pack_each(function, value)


def pack_each(function: Callable[..., Any], value: tuple[list[Any], int]) -> Parts:
    return pickled((each(function, value[0]), value[1]))


def each(function: Callable[..., Any], outcomes: list[Any]) -> Apart:
    """Outcomes of a function, each pickled by itself; a Failure where one cannot be sent."""
    if isinstance(function, ReadFirst):
        function = function.function
    parts = [pack_outcome(function, (), one)[1] for one in outcomes]
    return Apart.of(parts, f"the result of {name_of(function)} cannot be read here")


def outcomes_of(value: Any) -> list[Any]:
    """Of a chunk, as they have arrived."""
    return value.read() if isinstance(value, Apart) else list(value)


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
        parts = pickled_either_way(function, by_value=by_value, whole=True)
    except OF_THE_THREAD:
        raise
    except BaseException:  # noqa: BLE001 - the call will say what is wrong
        return function
    if not parts.by_value and not of_main.takes_along(function):
        return function
    return ByValue(function, b"".join(parts.stream))


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
    """A function that is sent once for many calls. Raises SerializationError."""
    try:
        return dumps()
    except OF_THE_THREAD:
        raise
    except BaseException as error:
        raise SerializationError(
            f"the {what} {name_of(function)} cannot be sent to a worker: {said(error)}"
        ) from error


def name_of(function: object) -> str:
    return f"{getattr(function, '__name__', None) or type(function).__name__}()"


def said(refusal: BaseException) -> str:
    """What it says, and of an exit that it is one."""
    return str(refusal) if isinstance(refusal, Exception) else repr(refusal)

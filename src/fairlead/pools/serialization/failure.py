"""Exceptions on their way out of a worker: their type, attributes and traceback are kept."""

from __future__ import annotations

import os

from fairlead.errors import SerializationError
from fairlead.pools.engine.stopped import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_POOLS = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - workers import this, and pathlib takes long


class WorkerTraceback(Exception):
    """The ``__cause__`` of an exception that came from another process or interpreter; prints its traceback
    there.

    Attributes:
        tb: the traceback as text.
    """

    def __init__(self, tb: str) -> None:
        super().__init__(tb)
        self.tb = tb

    def __str__(self) -> str:
        return f'\n"""\n{self.tb}"""'


class Failure:
    """An exception as a value: of one call among many, or of a whole task. It can be pickled whatever it
    holds."""

    __slots__ = ("error",)

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> Any:
        return _unpack, _pack(self.error)


def note(error: BaseException, text: str) -> None:
    """As ``add_note``, also of an exception that refuses attributes."""
    error.__dict__.setdefault("__notes__", []).append(text)


def cause(error: BaseException, other: BaseException) -> None:
    """Sets ``__cause__``, also of an exception that refuses attributes."""
    vars(BaseException)["__cause__"].__set__(error, other)


def _pack(error: BaseException) -> tuple[str, bytes | None, str, str | None]:
    """Its traceback, its pickle, how it is called, and what is wrong with it."""
    return _text(error), *_pack_without_traceback(error)


def _pack_without_traceback(error: BaseException) -> tuple[bytes | None, str, str | None]:
    from fairlead.pools.serialization import pickling

    kind = type(error)
    name, wrong = _name(error)
    state = {name: value for name, value in error.__dict__.items() if name != "__cause__"}
    args = error.args
    if isinstance(error, BaseExceptionGroup):
        args = (args[0], [_pack_without_traceback(member) for member in error.exceptions], *args[2:])
    parts = (kind, args, state)
    own = kind.__reduce__ not in (BaseException.__reduce__, Failure.__reduce__) or "__reduce_ex__" in vars(
        kind
    )
    if own:
        try:
            return pickling.dumps(error), name, wrong
        except Stopped:
            raise
        except BaseException as reason:  # noqa: BLE001 - it is the exception's own
            wrong = f"it could not be pickled as it wants to be: {_described(reason)}"
    try:
        return pickling.dumps(parts), name, wrong
    except Stopped:
        raise
    except BaseException as reason:  # noqa: BLE001 - whatever pickling its parts raises
        return None, f"{name} ({_described(reason)})", wrong


def _unpack(text: str, pickled: bytes | None, name: str, wrong: str | None) -> Failure:
    error = _unpack_without_traceback(pickled, name, wrong)
    cause(error, WorkerTraceback(text))
    return Failure(error)


def _unpack_without_traceback(pickled: bytes | None, name: str, wrong: str | None) -> BaseException:
    from fairlead.pools.serialization import pickling

    error: BaseException = SerializationError(f"a task raised {name}, and this exception cannot be sent here")
    if pickled is not None:
        try:
            parts = pickling.loads(pickled)
            error = _rebuild(*parts) if isinstance(parts, tuple) else parts
        except Stopped:
            raise
        except BaseException as reason:  # noqa: BLE001 - whatever classes raise when they are made
            note(error, f"it cannot be made again: {_described(reason)}")
    if wrong is not None:
        note(error, wrong)
    return error


def _rebuild(kind: type[BaseException], args: tuple[Any, ...], state: dict[str, Any]) -> BaseException:
    if issubclass(kind, BaseExceptionGroup):
        args = (args[0], [_unpack_without_traceback(*member) for member in args[1]], *args[2:])
    try:
        error = kind(*args)
        alike = error.args == args
    except Exception:  # noqa: BLE001 - its __init__ wants something else than what it gave to Exception's
        alike = False
    if not alike:
        error = kind.__new__(kind, *args)
        vars(BaseException)["args"].__set__(error, args)
    error.__dict__.update(state)
    return error


def _name(error: BaseException) -> tuple[str, str | None]:
    """What it is called in a message, and what is wrong with it."""
    kind = type(error)
    try:
        text = (
            repr(error)
            if kind.__module__ == "builtins"
            else f"{kind.__module__}.{kind.__qualname__}: {error}"
        )
    except Stopped:
        raise
    except BaseException as reason:  # noqa: BLE001 - it is the exception's own
        return f"{kind.__module__}.{kind.__qualname__}", f"its text cannot be had: {_described(reason)}"
    return text, None


def _described(reason: BaseException) -> str:
    """Of what an exception's own methods raise, which may be as odd as it is."""
    try:
        return repr(reason)
    except Stopped:
        raise
    except BaseException:  # noqa: BLE001 - see above
        return type(reason).__qualname__


def _text(error: BaseException) -> str:
    import traceback

    where: TracebackType | None = error.__traceback__
    while where is not None and where.tb_frame.f_code.co_filename.startswith(_POOLS):
        where = where.tb_next
    return "".join(traceback.format_exception(type(error), error, where))

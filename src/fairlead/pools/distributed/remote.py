"""What a worker of a dask cluster does with a call of DaskPool. Imported there, and needs fairlead there."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol import dask_deserialize, dask_serialize

from fairlead._native import recall_exception
from fairlead.pools.engine.stopped import Stopped, send_stop
from fairlead.pools.serialization import calls, contexts
from fairlead.pools.serialization.failure import Failure
from fairlead.pools.serialization.messages import Parts, pickled

_running: dict[str, int] = {}
"""The threads of calls under way, by the calls' numbers."""
_sent: set[str] = set()
"""Calls that have been sent the exception that ends them."""
_early: dict[str, None] = {}
"""Calls that were to be stopped before they were here, the latest: most are another worker's."""

REMEMBERED = 1000


class Parcel:
    """A pickle stream and its buffers, which dask sends out of band."""

    __slots__ = ("buffers", "kind", "stream")

    def __init__(self, kind: int, stream: bytes, buffers: Sequence[Any]) -> None:
        self.kind = kind
        self.stream = stream
        self.buffers = buffers

    @classmethod
    def of(cls, kind: int, parts: Parts) -> Parcel:
        return cls(kind, b"".join(parts.stream), parts.buffers)

    @property
    def nbytes(self) -> int:
        return len(self.stream) + sum(memoryview(buffer).nbytes for buffer in self.buffers)

    def __sizeof__(self) -> int:
        """For dask, which asks what its workers' memory is taken by."""
        return self.nbytes

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Within a graph of dask's."""
        form = pickle.PickleBuffer if protocol >= 5 else bytes
        return Parcel, (self.kind, self.stream, [form(buffer) for buffer in self.buffers])

    def load(self) -> Any:
        return pickle.loads(self.stream, buffers=self.buffers)


@dask_serialize.register(Parcel)  # type: ignore[untyped-decorator]
def _to_frames(parcel: Parcel) -> tuple[dict[str, int], list[Any]]:
    """By itself, as a result: dask would pickle it by a protocol without buffers, where it goes by way of the
    scheduler."""
    return {"kind": parcel.kind}, [parcel.stream, *parcel.buffers]


@dask_deserialize.register(Parcel)  # type: ignore[untyped-decorator]
def _from_frames(header: dict[str, int], frames: list[Any]) -> Parcel:
    stream, *buffers = (memoryview(frame) for frame in frames)
    return Parcel(
        header["kind"], bytes(stream), [bytearray(view) if view.readonly else view for view in buffers]
    )


class Initialize(WorkerPlugin):  # type: ignore[misc] # its class is not typed
    """Calls a function in every worker that there is or will be, before its first task."""

    def __init__(self, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.function = function
        self.args = args

    def setup(self, worker: object) -> None:  # noqa: ARG002 - dask's signature
        self.function(*self.args)


def call(parcel: Parcel, number: str) -> Parcel:
    """Makes the call, in one of the worker's threads."""
    try:
        function, args, kwargs, named = parcel.load()
        context = None if named is None else contexts.in_context(named)
    except Exception as error:  # noqa: BLE001 - whatever unpickling runs
        return Parcel.of(calls.UNREADABLE, pickled(Failure(error)))
    _running[number] = threading.get_ident()
    try:
        _go_on(number)
        value = function(*args, **kwargs) if context is None else context.run(function, *args, **kwargs)
    except BaseException as error:  # noqa: BLE001 - the task's
        _leave(number)
        return Parcel.of(calls.FAILED, pickled(Failure(error)))
    _leave(number)
    return Parcel.of(*calls.pack_outcome(function, args, value))


def _go_on(number: str) -> None:
    """Raises Stopped in a call that was to be stopped before it came."""
    if number in _early:
        raise Stopped


def _leave(number: str) -> None:
    """From now on it is not stopped; what has been sent and has not arrived is taken back."""
    while True:
        try:
            if _running.pop(number, None) is None:
                while number not in _sent:
                    time.sleep(0)
                recall_exception()
        except Stopped:
            continue
        break
    _sent.discard(number)
    _early.pop(number, None)


def stop(number: str) -> None:
    """Has a call end at its next step in Python, if it runs here, or as soon as it comes: it travels by
    another way than this word."""
    _early[number] = None  # first: a call that begins looks for it after it is among those that run
    if (ident := _running.pop(number, None)) is not None:
        send_stop(ident)
        _sent.add(number)
    while len(_early) > REMEMBERED:
        del _early[next(iter(_early))]

"""A pool that makes each call by the interpreters' own machinery: what InterpreterPool is compared with.

A thread of this process per worker, as for processes (worker_manager.py). It sends a call as bytes by
``_interpreters.call`` and gets bytes back; on 3.13, whose ``call`` takes no arguments, by ``exec`` and a
queue.
"""

from __future__ import annotations

import sys
from typing import Any

import interpreter_slot

from fairlead import _native
from fairlead.errors import SerializationError
from fairlead.pools.engine import shutdown
from fairlead.pools.engine.contract import Lost, Task, Worker
from fairlead.pools.engine.worker_manager import WorkerManager
from fairlead.pools.executor.base import Pool
from fairlead.pools.interpreter import worker
from fairlead.pools.interpreter.serialization import Shipping, goes_by_value, read_outcome, unreadable

_PREPARE = """
import sys
sys.path[:] = {path!r}
import interpreter_slot
interpreter_slot.begin({board}, {answers})
"""
_CALLS_WITH_ARGUMENTS = sys.version_info >= (3, 14)


class CallPool(Pool):
    """A thread, and a call, for each task."""

    def __init__(self, workers: int) -> None:
        shipping = Shipping()
        name = "CallPool"
        self._begin(
            WorkerManager(
                "interpreters", workers, lambda: _Called(shipping, None, name), name=name, call_cost_s=300e-6
            )
        )


class _Called(Worker):
    """An interpreter, and the calls into it."""

    __slots__ = (
        "_answers",
        "_board",
        "_bytes_in",
        "_bytes_out",
        "_initializer",
        "_made",
        "_name",
        "_shipping",
    )

    def __init__(self, shipping: Shipping, initializer: bytes | None, name: str) -> None:
        self._shipping = shipping
        self._initializer = initializer
        self._name = name
        self._made: int | None = None
        self._board = (
            _native.JobQueue()
        )  # only to interrupt the worker, and to end its interpreter when no call is in it
        self._answers: _native.SimpleQueue[bytes] = _native.SimpleQueue()
        self._bytes_out = self._bytes_in = 0

    def traffic(self) -> tuple[int, int]:
        return self._bytes_out, self._bytes_in

    def start(self) -> None:
        import _interpreters  # type: ignore[import-not-found]

        self._made = _interpreters.create()
        answers = _native.handle(self._answers)
        program = _PREPARE.format(path=sys.path, board=self._board.number, answers=answers)
        if (failed := _interpreters.exec(self._made, program)) is not None:
            raise RuntimeError(f"a worker's interpreter could not be prepared: {failed.formatted}")
        if self._initializer is not None:
            fine, read = read_outcome(*self._call(interpreter_slot.initialize, self._initializer))
            if not fine:
                raise read

    def run(self, task: Task) -> Any:
        kind, value = self._try(task, by_value=False)
        fine, read = read_outcome(kind, value)
        if kind == worker.UNREADABLE and goes_by_value(read):
            kind, value = self._try(task, by_value=True)
            fine, read = read_outcome(kind, value)
        if fine:
            return read
        raise unreadable(task, read) if kind == worker.UNREADABLE else read

    def _try(self, task: Task, *, by_value: bool) -> tuple[int, Any]:
        call = self._shipping.pack(task, by_value=by_value)
        try:
            message = _native.message(call)
        except Exception:
            if by_value:
                raise
            message = _native.message(self._shipping.pack(task, by_value=True))
        return self._call(interpreter_slot.serve, message)

    def _call(self, function: Any, message: bytes) -> tuple[int, Any]:
        import _interpreters

        self._bytes_out += len(message)
        if _CALLS_WITH_ARGUMENTS:
            answer, failed = _interpreters.call(self._made, function, (message,))
        else:
            _interpreters.set___main___attrs(self._made, {"fairlead_message": message})
            failed = _interpreters.exec(
                self._made, f"interpreter_slot.answer(worker.{function.__name__}(fairlead_message))"
            )
            answer = None if failed is not None else self._answers.get()
        if failed is not None:
            raise Lost(f"the interpreter ended the call: {failed.formatted}")
        self._bytes_in += len(answer)
        try:
            kind, value = _native.from_message(answer)
        except Exception as error:
            raise SerializationError(f"the result cannot be read here: {error!r}") from error
        return kind, value

    def stop(self) -> bool:
        # a thread, because it takes as long as a call into C that keeps the interpreter busy
        shutdown.thread(self._board.interrupt, 1, f"{self._name}-stop").start()
        return False

    def close(self) -> None:
        self._board.leave(1)
        if self._made is not None:
            import _interpreters

            _interpreters.destroy(self._made)

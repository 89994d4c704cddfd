"""What AsyncPool's loop runs: a task's coroutine, which another thread can interrupt while it computes."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections import defaultdict
from collections.abc import Coroutine, Generator
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from fairlead._native import recall_exception
from fairlead.pools.engine.contract import Task
from fairlead.pools.engine.stopped import Stopped, send_stop
from fairlead.pools.serialization.chunks import call_chunk
from fairlead.pools.serialization.failure import Failure

if TYPE_CHECKING:
    from fairlead.pools.event_loop.engine import Loop


class Step(Coroutine[Any, Any, Any]):
    """A task's coroutine, of which other threads see whether it is computing, and can then interrupt that.

    A thread that interrupts takes ``loop.aim``, looks whether the step is ``loop.inside``, and sends the
    exception. The loop's thread leaves in the other order: it takes itself out of ``loop.inside``, waits
    while another aims at it, and takes back what has not arrived. So an exception arrives within ``send`` or
    ``throw``, whose caller is asyncio's task, for which it is the coroutine's end. The interrupting thread
    says so by ``gone`` before it looks, and a step that begins looks at that after it is inside: one of the
    two sees the other.
    """

    __slots__ = ("coroutine", "gone", "handle", "loop", "shot", "task", "told")

    def __init__(self, loop: Loop, task: Task) -> None:
        self.loop = loop
        self.task = task
        self.coroutine = _call(task)
        self.handle: asyncio.Task[Any] | None = None
        self.gone = False
        self.told = False
        """The coroutine has seen that it is cancelled, or is about to."""
        self.shot = False

    def send(self, value: Any) -> Any:
        self.loop.inside = self
        try:
            if self.gone and not self.told:
                self.told = True
                return self.coroutine.throw(asyncio.CancelledError())
            return self.coroutine.send(value)
        except Stopped as stopped:
            return self._pass_on(stopped)
        finally:
            self._leave()

    def throw(
        self,
        kind: Any,
        value: BaseException | object = None,
        traceback: TracebackType | None = None,
    ) -> Any:
        self.loop.inside = self
        try:
            self.told = self.gone
            if value is None and traceback is None:
                return self.coroutine.throw(kind)
            return self.coroutine.throw(kind, value, traceback)
        except Stopped as stopped:
            return self._pass_on(stopped)
        finally:
            self._leave()

    def _pass_on(self, stopped: Stopped) -> Any:
        """It may have come just before the coroutine went on, or just after it had begun to wait."""
        try:
            if inspect.getcoroutinestate(self.coroutine) == inspect.CORO_CLOSED:
                raise stopped
            return self.coroutine.throw(stopped)
        finally:
            del stopped  # its traceback has this frame

    def close(self) -> None:
        self.coroutine.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.coroutine.__await__()

    def _leave(self) -> None:
        loop = self.loop
        late = False
        while True:
            try:
                loop.inside = None
                while loop.aim is self:
                    time.sleep(0)
                late = late or (self.shot and recall_exception())
            except Stopped:
                late = True
                continue
            self.told = self.told or (self.shot and not late)
            return

    def interrupt(self) -> None:
        """From any thread: cancels it, and if it is computing, ends that. Called once, with the loop's
        lock."""
        loop = self.loop
        self.gone = True
        if threading.get_ident() != loop.ident:
            loop.aim = self
            if loop.inside is self:
                self.shot = True
                send_stop(loop.ident)
            loop.aim = None
        loop.soon(self._cancel)

    def _cancel(self) -> None:
        if not self.told and self.handle is not None:
            self.told = True
            self.handle.cancel()


async def _call(task: Task) -> Any:
    """What the task's call comes to, or a Failure: asyncio would let some exceptions end the loop. Of a chunk
    all calls, one after the other, as chunks.call_chunk."""
    begin = time.monotonic_ns()
    chunk = task.function is call_chunk
    function, items, star = task.args if chunk else (task.function, (task.args,), True)
    outcomes: list[Any] = []
    made: dict[None, Any] = {}
    for item in items:
        try:
            # called in C, so that no interrupt comes after the call and before what it returns is known
            made = defaultdict(partial(function, *item, **task.kwargs) if star else partial(function, item))
            value = made[None]
            outcomes.append(await value if inspect.isawaitable(value) else value)
        except Stopped:
            if inspect.iscoroutine(value := made.get(None)):
                value.close()  # Python warns of a coroutine that never begins
            raise
        except (asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as error:  # noqa: BLE001 - the call's outcome
            outcomes.append(Failure(error))
    return (outcomes, time.monotonic_ns() - begin) if chunk else outcomes[0]

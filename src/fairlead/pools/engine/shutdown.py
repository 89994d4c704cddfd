"""How pools end with their program: as the standard library's executors.

At the interpreter's exit pools take no more tasks, and those that they have taken are done; a task that never
ends keeps the program alive. Ctrl-C ends the wait for them: what is queued is cancelled, what runs is
stopped, nothing is waited for that may never end, and a line on stderr says how many tasks were left.

Workers' threads are daemons, because a thread that runs an endless loop can only be left behind then.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # not in Python: no interrupt comes within a call
import atexit
import contextlib
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from fairlead.pools.engine import forks
from fairlead.pools.engine.lock import EngineLock

if TYPE_CHECKING:
    from fairlead.pools.engine.deadlines import DeadlineTimer
    from fairlead.pools.engine.scheduler import Engine

CLOSED = "the pool has been shut down: it takes no more tasks"

PATIENCE_S = 1.0
"""What workers that were told to stop are given at exit."""

over: str | None = None
"""Why no pool takes tasks any more."""


class Accepting(forks.Forked, Protocol):
    """What has tasks that no engine has got yet."""

    def finish(self) -> None:
        """Accepts no more, and submits what there is."""


_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_accepting: weakref.WeakSet[Accepting] = weakref.WeakSet()
_lock = EngineLock()


def remember(engine: Engine) -> None:
    """Ends the engine with the program."""
    forks.remember(engine)
    with _lock:
        _engines.add(engine)


def accepts(intake: Accepting) -> None:
    """Has it finish before the engines do."""
    forks.remember(intake)
    with _lock:
        _accepting.add(intake)


def forget(engine: Engine) -> None:
    """Another engine ends it."""
    with _lock:
        _engines.discard(engine)


def thread(target: Callable[..., Any], argument: object, name: str) -> threading.Thread:
    """A thread, not started, that keeps no program alive by itself."""
    try:
        return threading.Thread(target=target, args=(argument,), name=name, daemon=True)
    except RuntimeError:  # an interpreter without daemon threads
        return threading.Thread(target=target, args=(argument,), name=name, daemon=False)


def with_this_thread(ending: list[threading.Thread]) -> list[threading.Thread]:
    """Those of them that are alive, and the calling thread: nothing is left for it to do but to end."""
    return [*(thread for thread in ending if thread.is_alive()), threading.current_thread()]


def join(
    others: Callable[[], list[threading.Thread]], watch: DeadlineTimer | None, timeout: float | None
) -> bool:
    """Waits for an engine's threads, and then for its watch; False: they have not ended within the time.

    Args:
        others: those that have to end, asked for again and again: one may be given up meanwhile, and its
            thread then never end.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    while True:
        here = threading.current_thread()
        thread = next((one for one in others() if one is not here and one.is_alive()), None)
        if thread is None:
            break
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        thread.join(min(0.05, left))
    if watch is not None:
        watch.end()
        watch.join()
    return True


def _end() -> None:
    global over
    try:
        over = "the interpreter is shutting down: pools take no more tasks"
        with _lock:
            engines, accepting = list(_engines), list(_accepting)
        for intake in accepting:
            intake.finish()
        for engine in engines:
            engine.close()
        for engine in engines:
            engine.join()
        interrupts = _Interrupts()
    except KeyboardInterrupt:
        interrupts = _Interrupts()
        engines = list(_engines)
        _stop(engines)
    for engine in engines:
        if not engine.leave_behind(PATIENCE_S):
            interrupts.end_the_program()
            engine.leave_behind(-1)
    interrupts.restore()


def _stop(engines: list[Engine]) -> None:
    left = 0
    for engine in engines:
        numbers = engine.statistics()
        left += numbers.queued + numbers.running
        engine.terminate()
    for engine in engines:
        engine.join(PATIENCE_S)
    if left and sys.stderr is not None:
        print(f"fairlead: the program was ended before {left} of its pools' tasks", file=sys.stderr)


class _Interrupts:
    """From its making on, Ctrl-C is ignored: a program that goes on to its end while workers are about to
    end may crash."""

    def __init__(self) -> None:
        self._handler: Any = None
        while True:
            try:
                handler = _signal.getsignal(_signal.SIGINT)
                if callable(handler):  # neither ignored, nor the default, nor another language's
                    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
                    self._handler = handler
            except KeyboardInterrupt:
                continue
            except ValueError:  # not the main thread
                pass
            break

    def end_the_program(self) -> None:
        if self._handler is not None:
            _signal.signal(_signal.SIGINT, _signal.SIG_DFL)

    def restore(self) -> None:
        if self._handler is not None:
            _signal.signal(_signal.SIGINT, self._handler)


@forks.in_child
def _renew() -> None:
    global _lock
    _lock = EngineLock()


# before the interpreter waits for its threads, and before what is registered with atexit, as the end of
# multiprocessing; not if it ends already
with contextlib.suppress(RuntimeError):
    threading._register_atexit(_end)  # type: ignore[attr-defined]
atexit.register(_end)  # a further interrupt may have come before the first had begun

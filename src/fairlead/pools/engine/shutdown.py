"""How pools end with their program.

At the interpreter's exit, queued tasks are cancelled and running ones stopped; nothing is waited for that may
never end, so an endless loop in a worker keeps no program alive. Leave a pool by ``with``, or call
``shutdown()``, to have its tasks finished; a program that ends with tasks left is told so on stderr.

Workers' threads are daemons, because a thread that runs an endless loop can only be left behind. Interpreters
that allow no daemons end them before they wait for their threads.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found] # not in Python: no interrupt comes within a call
import atexit
import functools
import math
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead.pools.engine import forks
from fairlead.pools.engine.lock import EngineLock

if TYPE_CHECKING:
    from fairlead.pools.engine.deadlines import DeadlineTimer
    from fairlead.pools.engine.scheduler import TaskScheduler

PATIENCE_S = 1.0
"""What workers that were told to stop are given at exit."""

over: str | None = None
"""Why no pool takes tasks any more."""

_engines: weakref.WeakSet[TaskScheduler] = weakref.WeakSet()
_lock = EngineLock()


def remember(engine: TaskScheduler) -> None:
    """Ends the engine with the program."""
    forks.remember(engine)
    with _lock:
        _engines.add(engine)


def forget(engine: TaskScheduler) -> None:
    """Another engine ends it."""
    with _lock:
        _engines.discard(engine)


def thread(target: Callable[..., Any], argument: object, name: str) -> threading.Thread:
    """A thread, not started, that keeps no program alive."""
    try:
        return threading.Thread(target=target, args=(argument,), name=name, daemon=True)
    except RuntimeError:  # an interpreter without daemon threads, which would wait for this one before _end
        _before_threads_are_joined()
        return threading.Thread(target=target, args=(argument,), name=name, daemon=False)


@functools.cache
def _before_threads_are_joined() -> None:
    threading._register_atexit(_end)  # type: ignore[attr-defined]


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
    interrupts = _Interrupts()
    over = "the interpreter is shutting down: pools take no more tasks"
    with _lock:
        engines = list(_engines)
    left = 0
    for engine in engines:
        numbers = engine.statistics()
        left += numbers.queued + numbers.running
        engine.terminate()
    for engine in engines:
        engine.join(PATIENCE_S)
    if left and sys.stderr is not None:
        print(
            f"fairlead: the program ended before {left} of its pools' tasks; "
            "leave pools by `with`, or call shutdown(), to have them finished",
            file=sys.stderr,
        )
    for engine in engines:
        if not engine.leave_behind(PATIENCE_S):
            interrupts.end_the_program()
            engine.leave_behind(-1)
    interrupts.restore()


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


def last() -> None:
    """Has pools end before whatever was registered with atexit until now, as multiprocessing's own end."""
    atexit.unregister(_end)
    for _ in range(2):  # an interrupt may come before the first has begun
        atexit.register(_end)


last()

"""How pools end with their program, and what becomes of them in a forked child.

At the interpreter's exit, queued tasks are cancelled and running ones stopped; nothing is waited for that may
never end, so an endless loop in a worker keeps no program alive. Leave a pool by ``with``, or call
``shutdown()``, to have its tasks finished; a program that ends with tasks left is told so on stderr.

Workers' threads are daemons, because a thread that runs an endless loop can only be left behind. Interpreters
that allow no daemons end them before they wait for their threads.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.pools.contract import Engine

PATIENCE_S = 1.0
"""What workers that were told to stop are given at exit."""

over: str | None = None
"""Why no pool takes tasks any more."""

_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_lock = threading.Lock()


def remember(engine: Engine) -> None:
    """Ends the engine with the program."""
    with _lock:
        _engines.add(engine)


def forget(engine: Engine) -> None:
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


def _end() -> None:
    global over
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


def _forked() -> None:
    global _lock
    _lock = threading.Lock()
    for engine in list(_engines):
        engine.forget_after_fork()


def last() -> None:
    """Has pools end before whatever was registered with atexit until now, as multiprocessing's own end."""
    atexit.unregister(_end)
    atexit.register(_end)


last()
os.register_at_fork(after_in_child=_forked)

"""A worker's initializer, what it has returned, and the finalizer, in every kind. Workers import this: its
imports are few."""

from __future__ import annotations

from _thread import _local

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class _State(_local):
    value: Any = None


_state = _State()


def initialize(initializer: Callable[..., object] | None, initargs: tuple[Any, ...] = ()) -> object:
    """In the thread that will run the worker's tasks; what it returns is their state from now on."""
    _state.value = None if initializer is None else initializer(*initargs)
    return _state.value


def enter(state: object) -> object:
    """Of this thread, from now on; returns the one before."""
    before, _state.value = _state.value, state
    return before


def worker_state() -> Any:
    """What the initializer of this worker returned: a connection or a model that each of its tasks uses.

    It is for the thread, or the event loop, that runs the task. None elsewhere, and without an initializer.
    """
    return _state.value


def finalize(finalizer: Callable[[], object] | None) -> None:
    """What it raises is logged, because no task is left that could raise it."""
    if finalizer is None:
        return
    try:
        finalizer()
    except BaseException:
        import logging

        logging.getLogger("fairlead.pools").exception("exception calling a worker's finalizer")

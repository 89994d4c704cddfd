"""How a primitive goes to another interpreter of this process: by a number, or by its pickle."""

from __future__ import annotations

import copyreg
import sys

from fairlead import _native
from fairlead._native import (
    Barrier,
    BoundedSemaphore,
    BroadcastRing,
    Condition,
    CountdownEvent,
    Event,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    Semaphore,
    SimpleQueue,
)
from fairlead.errors import WrongProcessError

TYPE_CHECKING = False  # not typing's, which is slow to import
if TYPE_CHECKING:
    from typing import Any
else:
    Any = object

Shared = (
    Barrier
    | BoundedSemaphore
    | CountdownEvent
    | Event
    | LifoQueue[Any]
    | Lock
    | PriorityQueue[Any]
    | Queue[Any]
    | RateLimiter
    | Semaphore
    | SimpleQueue[Any]
    | BroadcastRing[Any]
)


def handle(primitive: Shared) -> int:
    """The number by which :func:`from_handle` finds this primitive in any interpreter of this process.

    It is good as long as some interpreter has the primitive. A queue is to be empty when it is handed over
    for the first time, and carries copies from then on; a ``Barrier`` has neither an action nor a timeout of
    its own. A ``Condition`` and a ``ResourceGuard`` have no number, and go by their pickles.

    Raises:
        TypeError: what cannot be shared: an RLock and whatever has one, an RWLock, what keeps objects or
            functions of its interpreter (CapacityLimiter, once), and all else of ``fairlead.sync.extra``.
        UsageError: a queue with objects in it, or a barrier with an action or a timeout.
    """
    return _native.handle(primitive)


def from_handle(number: int) -> Any:
    """The primitive with this handle, as an object of the interpreter that calls.

    Raises:
        HandleGoneError: no interpreter of this process has it any more.
    """
    return _native.attach(number)


def _elsewhere(name: str, process: tuple[int, int, int], number: int) -> Any:
    if process != _native.process():
        raise WrongProcessError(f"this {name} belongs to another process, and cannot be shared with this one")
    return from_handle(number)


def _reduce(primitive: Any) -> tuple[Any, ...]:
    name = type(primitive).__name__
    context = sys.modules.get("multiprocessing.context")
    if context is not None and context.get_spawning_popen() is not None:
        raise WrongProcessError(
            f"cannot pickle a {name} for another process: it is shared by the interpreters of one"
        )
    return _elsewhere, (name, _native.process(), handle(primitive))


def _condition(lock: Lock, process: tuple[int, int, int], number: int) -> Condition:
    if process != _native.process():
        raise WrongProcessError("this Condition belongs to another process, and cannot be shared with this one")
    return _native.attach(number, lock)  # type: ignore[no-any-return]


def _reduce_condition(condition: Condition) -> tuple[Any, ...]:
    if not isinstance(condition._lock, Lock):
        raise TypeError(
            "cannot pickle 'fairlead.sync.Condition' object: the holder of its RLock is known in one "
            "interpreter only; make it with a Lock"
        )
    return _condition, (condition._lock, _native.process(), _native.handle(condition))


for _type in Shared.__args__:
    copyreg.pickle(getattr(_type, "__origin__", _type), _reduce)
copyreg.pickle(Condition, _reduce_condition)

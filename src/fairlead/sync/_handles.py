"""How a primitive goes to another interpreter of this process: by its pickle."""

from __future__ import annotations

import copyreg
import sys

from fairlead import _native
from fairlead.errors import WrongProcessError

TYPE_CHECKING = False  # not typing's, which is slow to import
if TYPE_CHECKING:
    from typing import Any, TypeVar

    _T = TypeVar("_T")
else:
    Any = object


def share(primitive: _T) -> _T:
    """Makes a primitive common property of the interpreters of this process, and returns it.

    From then on its pickle is the way to it: for ``concurrent.interpreters``, ``InterpreterPoolExecutor``, or
    whatever else passes pickles on; fairlead's pools share what they send by themselves. A queue must be
    empty as it is shared, and carries copies from then on. A ``Condition`` goes with its ``Lock``, an end of
    a channel with its line.

    Raises:
        TypeError: what cannot be shared: an RLock and whatever has one, an RWLock, and what keeps objects or
            functions of its interpreter (CapacityLimiter, once, a channel without room).
        UsageError: a queue with objects in it, or a barrier with an action or a timeout.
    """
    import pickle

    _native.sharing(pickle.dumps, primitive)
    return primitive


def _elsewhere(
    name: str, process: tuple[int, int, int], number: int, lock: _native.Lock | None = None
) -> Any:
    if process != _native.process():
        raise WrongProcessError(f"this {name} belongs to another process, and cannot be shared with this one")
    return _native.attach(number, lock)


def _reduce(primitive: Any) -> tuple[Any, ...]:
    name = type(primitive).__name__
    context = sys.modules.get("multiprocessing.context")
    if context is not None and context.get_spawning_popen() is not None:
        raise WrongProcessError(
            f"cannot pickle a {name} for another process: interpreters of one process share it at most"
        )
    if not _native.is_shared(primitive):
        raise TypeError(
            f"cannot pickle '{name}' object, which belongs to this interpreter: share() it first, or send it "
            "by a pool of fairlead, which does that"
        )
    return _elsewhere, (name, _native.process(), _native.handle(primitive))


def _reduce_condition(condition: _native.Condition) -> tuple[Any, ...]:
    if not isinstance(condition._lock, _native.Lock):
        raise TypeError(
            "cannot pickle 'fairlead.sync.Condition' object: the holder of its RLock is known in one "
            "interpreter only; make it with a Lock"
        )
    function, place = _reduce(condition)
    return function, (*place, condition._lock)


for _type in (
    _native.Barrier,
    _native.BoundedSemaphore,
    _native.BroadcastRing,
    _native.CountdownEvent,
    _native.Event,
    _native.LifoQueue,
    _native.Lock,
    _native.PriorityQueue,
    _native.Queue,
    _native.RateLimiter,
    _native.Semaphore,
    _native.SimpleQueue,
):
    copyreg.pickle(_type, _reduce)
copyreg.pickle(_native.Condition, _reduce_condition)

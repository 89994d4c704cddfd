"""Primitives that threads and tasks share: one object, any mix of waiters.

    from fairlead.sync import Lock

    lock = Lock()

    def thread():
        with lock: ...

    async def task():
        async with lock: ...

Tasks of any number of asyncio, uvloop and trio loops, and threads, may wait for the same object at the
same time. Giving something (release, set, put) never waits, is never a coroutine, and is allowed in signal
handlers and destructors. docs/reference/sync.md tells what each promises.
"""

from __future__ import annotations

import fairlead.wait  # noqa: F401 - from then on tasks can wait
from fairlead._native import (
    Barrier,
    BoundedSemaphore,
    CapacityLimiter,
    Condition,
    CountdownEvent,
    Event,
    LifoQueue,
    Lock,
    PriorityQueue,
    Queue,
    RateLimiter,
    RLock,
    RWLock,
    Semaphore,
    SimpleQueue,
    blocking_in_tasks,
    select,
    select_async,
)
from fairlead._native import (
    BarrierStatistics as BarrierStatistics,
)
from fairlead._native import (
    CapacityLimiterStatistics as CapacityLimiterStatistics,
)
from fairlead._native import (
    ConditionStatistics as ConditionStatistics,
)
from fairlead._native import (
    CountdownStatistics as CountdownStatistics,
)
from fairlead._native import (
    EventStatistics as EventStatistics,
)
from fairlead._native import (
    LockStatistics as LockStatistics,
)
from fairlead._native import (
    QueueStatistics as QueueStatistics,
)
from fairlead._native import (
    RateLimiterStatistics as RateLimiterStatistics,
)
from fairlead._native import (
    RLockStatistics as RLockStatistics,
)
from fairlead._native import (
    RWLockStatistics as RWLockStatistics,
)
from fairlead._native import (
    RWLockView as RWLockView,
)
from fairlead._native import (
    Selected as Selected,
)
from fairlead._native import (
    SemaphoreStatistics as SemaphoreStatistics,
)
from fairlead._native import (
    SimpleQueueStatistics as SimpleQueueStatistics,
)
from fairlead.sync._handles import share

TYPE_CHECKING = False  # not typing's, which takes longer to import than all that is imported here
if TYPE_CHECKING:
    from fairlead.sync._channels import (
        BroadcastReceiver as BroadcastReceiver,
    )
    from fairlead.sync._channels import (
        BroadcastSender as BroadcastSender,
    )
    from fairlead.sync._channels import (
        ChannelStatistics as ChannelStatistics,
    )
    from fairlead.sync._channels import (
        OneshotReceiver as OneshotReceiver,
    )
    from fairlead.sync._channels import (
        OneshotSender as OneshotSender,
    )
    from fairlead.sync._channels import (
        Receiver as Receiver,
    )
    from fairlead.sync._channels import (
        Sender as Sender,
    )
    from fairlead.sync._channels import (
        broadcast,
        channel,
        oneshot,
    )
    from fairlead.sync._deadlocks import Deadlock as Deadlock
    from fairlead.sync._deadlocks import Detector as Detector
    from fairlead.sync._deadlocks import detect_deadlocks
    from fairlead.sync._once import OnceStatistics as OnceStatistics
    from fairlead.sync._once import once
    from fairlead.sync._waits import Actor as Actor
    from fairlead.sync._waits import Wait as Wait
    from fairlead.sync._waits import Waits as Waits
    from fairlead.sync._waits import waits

_WHERE = {
    "Actor": "_waits",
    "BroadcastReceiver": "_channels",
    "BroadcastSender": "_channels",
    "ChannelStatistics": "_channels",
    "Deadlock": "_deadlocks",
    "Detector": "_deadlocks",
    "OnceStatistics": "_once",
    "OneshotReceiver": "_channels",
    "OneshotSender": "_channels",
    "Receiver": "_channels",
    "Sender": "_channels",
    "Wait": "_waits",
    "Waits": "_waits",
    "broadcast": "_channels",
    "channel": "_channels",
    "detect_deadlocks": "_deadlocks",
    "once": "_once",
    "oneshot": "_channels",
    "waits": "_waits",
}
"""What is imported when it is asked for, each with its module."""

__all__ = [
    "Barrier",
    "BoundedSemaphore",
    "CapacityLimiter",
    "Condition",
    "CountdownEvent",
    "Event",
    "LifoQueue",
    "Lock",
    "PriorityQueue",
    "Queue",
    "RLock",
    "RWLock",
    "RateLimiter",
    "Semaphore",
    "SimpleQueue",
    "blocking_in_tasks",
    "broadcast",
    "channel",
    "detect_deadlocks",
    "once",
    "oneshot",
    "select",
    "select_async",
    "share",
    "waits",
]


if not TYPE_CHECKING:  # a type checker would take every name for one that there is

    def __getattr__(name: str) -> object:
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})

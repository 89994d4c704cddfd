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
    CombiningLock,
    Condition,
    CountdownEvent,
    Event,
    Exchanger,
    Latch,
    LifoQueue,
    Lock,
    Phaser,
    PriorityQueue,
    Queue,
    RateLimiter,
    RLock,
    RWLock,
    RWLockView,
    Selected,
    Semaphore,
    SimpleQueue,
    StampedLock,
    StripedCounter,
    blocking_in_tasks,
    select,
    select_async,
)
from fairlead._native import (
    BarrierStatistics as BarrierStatistics,
)
from fairlead._native import (
    CombiningStatistics as CombiningStatistics,
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
    ExchangerStatistics as ExchangerStatistics,
)
from fairlead._native import (
    LockStatistics as LockStatistics,
)
from fairlead._native import (
    PhaserStatistics as PhaserStatistics,
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
    SemaphoreStatistics as SemaphoreStatistics,
)
from fairlead._native import (
    SimpleQueueStatistics as SimpleQueueStatistics,
)
from fairlead._native import (
    StampedLockStatistics as StampedLockStatistics,
)
from fairlead._native import (
    StripedCounterStatistics as StripedCounterStatistics,
)
from fairlead.sync._handles import from_handle, handle

TYPE_CHECKING = False  # not typing's, which takes longer to import than all that is imported here
if TYPE_CHECKING:
    from fairlead.sync._channels import (
        BroadcastReceiver,
        BroadcastSender,
        OneshotReceiver,
        OneshotSender,
        Receiver,
        Sender,
        WatchReceiver,
        WatchSender,
        broadcast,
        channel,
        oneshot,
        watch,
    )
    from fairlead.sync._channels import (
        ChannelStatistics as ChannelStatistics,
    )
    from fairlead.sync._clock import ManualClock
    from fairlead.sync._deadlocks import Deadlock, Detector, detect_deadlocks, find_deadlocks
    from fairlead.sync._limiter import CapacityLimiter
    from fairlead.sync._limiter import CapacityLimiterStatistics as CapacityLimiterStatistics
    from fairlead.sync._once import (
        Flag,
        ResourceGuard,
        once,
    )
    from fairlead.sync._once import (
        FlagStatistics as FlagStatistics,
    )
    from fairlead.sync._once import (
        OnceStatistics as OnceStatistics,
    )
    from fairlead.sync._once import (
        ResourceGuardStatistics as ResourceGuardStatistics,
    )
    from fairlead.sync._startgate import StartGate
    from fairlead.sync._waits import Actor, Wait, dump_waits, waits

_WHERE = {
    "Actor": "_waits",
    "BroadcastReceiver": "_channels",
    "BroadcastSender": "_channels",
    "CapacityLimiter": "_limiter",
    "CapacityLimiterStatistics": "_limiter",
    "ChannelStatistics": "_channels",
    "Deadlock": "_deadlocks",
    "Detector": "_deadlocks",
    "Flag": "_once",
    "FlagStatistics": "_once",
    "ManualClock": "_clock",
    "OnceStatistics": "_once",
    "OneshotReceiver": "_channels",
    "OneshotSender": "_channels",
    "Receiver": "_channels",
    "ResourceGuard": "_once",
    "ResourceGuardStatistics": "_once",
    "Sender": "_channels",
    "StartGate": "_startgate",
    "Wait": "_waits",
    "WatchReceiver": "_channels",
    "WatchSender": "_channels",
    "broadcast": "_channels",
    "channel": "_channels",
    "detect_deadlocks": "_deadlocks",
    "dump_waits": "_waits",
    "find_deadlocks": "_deadlocks",
    "once": "_once",
    "oneshot": "_channels",
    "waits": "_waits",
    "watch": "_channels",
}
"""What is imported when it is asked for, each with its module."""

__all__ = [
    "Actor",
    "Barrier",
    "BoundedSemaphore",
    "BroadcastReceiver",
    "BroadcastSender",
    "CapacityLimiter",
    "CombiningLock",
    "Condition",
    "CountdownEvent",
    "Deadlock",
    "Detector",
    "Event",
    "Exchanger",
    "Flag",
    "Latch",
    "LifoQueue",
    "Lock",
    "ManualClock",
    "OneshotReceiver",
    "OneshotSender",
    "Phaser",
    "PriorityQueue",
    "Queue",
    "RLock",
    "RWLock",
    "RWLockView",
    "RateLimiter",
    "Receiver",
    "ResourceGuard",
    "Selected",
    "Semaphore",
    "Sender",
    "SimpleQueue",
    "StampedLock",
    "StartGate",
    "StripedCounter",
    "Wait",
    "WatchReceiver",
    "WatchSender",
    "blocking_in_tasks",
    "broadcast",
    "channel",
    "detect_deadlocks",
    "dump_waits",
    "find_deadlocks",
    "from_handle",
    "handle",
    "once",
    "oneshot",
    "select",
    "select_async",
    "waits",
    "watch",
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

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
from fairlead.sync._condition import Condition
from fairlead.sync._condition import ConditionStatistics as ConditionStatistics
from fairlead.sync._deadlocks import Deadlock, Detector, detect_deadlocks, find_deadlocks
from fairlead.sync._handles import from_handle, handle
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

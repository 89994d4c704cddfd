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
    BarrierStatistics,
    BoundedSemaphore,
    CombiningLock,
    CombiningStatistics,
    CountdownEvent,
    CountdownStatistics,
    Event,
    EventStatistics,
    Exchanger,
    ExchangerStatistics,
    Latch,
    LifoQueue,
    Lock,
    LockStatistics,
    Phaser,
    PhaserStatistics,
    PriorityQueue,
    Queue,
    QueueStatistics,
    RateLimiter,
    RateLimiterStatistics,
    RLock,
    RLockStatistics,
    RWLock,
    RWLockFace,
    RWLockStatistics,
    Selected,
    Semaphore,
    SemaphoreStatistics,
    SimpleQueue,
    SimpleQueueStatistics,
    StampedLock,
    StampedLockStatistics,
    StripedCounter,
    StripedCounterStatistics,
    select,
    select_async,
)
from fairlead.sync._channels import (
    BroadcastReceiver,
    BroadcastSender,
    ChannelStatistics,
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
from fairlead.sync._clock import ManualClock
from fairlead.sync._condition import Condition, ConditionStatistics
from fairlead.sync._deadlocks import Deadlock, Detector, detect_deadlocks, find_deadlocks
from fairlead.sync._handles import from_handle, handle
from fairlead.sync._limiter import CapacityLimiter, CapacityLimiterStatistics
from fairlead.sync._once import (
    Flag,
    FlagStatistics,
    OnceStatistics,
    ResourceGuard,
    ResourceGuardStatistics,
    once,
)
from fairlead.sync._startgate import StartGate
from fairlead.sync._waits import Party, Wait, dump_waits, waits

__all__ = [
    "Barrier",
    "BarrierStatistics",
    "BoundedSemaphore",
    "BroadcastReceiver",
    "BroadcastSender",
    "CapacityLimiter",
    "CapacityLimiterStatistics",
    "ChannelStatistics",
    "CombiningLock",
    "CombiningStatistics",
    "Condition",
    "ConditionStatistics",
    "CountdownEvent",
    "CountdownStatistics",
    "Deadlock",
    "Detector",
    "Event",
    "EventStatistics",
    "Exchanger",
    "ExchangerStatistics",
    "Flag",
    "FlagStatistics",
    "Latch",
    "LifoQueue",
    "Lock",
    "LockStatistics",
    "ManualClock",
    "OnceStatistics",
    "OneshotReceiver",
    "OneshotSender",
    "Party",
    "Phaser",
    "PhaserStatistics",
    "PriorityQueue",
    "Queue",
    "QueueStatistics",
    "RLock",
    "RLockStatistics",
    "RWLock",
    "RWLockFace",
    "RWLockStatistics",
    "RateLimiter",
    "RateLimiterStatistics",
    "Receiver",
    "ResourceGuard",
    "ResourceGuardStatistics",
    "Selected",
    "Semaphore",
    "SemaphoreStatistics",
    "Sender",
    "SimpleQueue",
    "SimpleQueueStatistics",
    "StampedLock",
    "StampedLockStatistics",
    "StartGate",
    "StripedCounter",
    "StripedCounterStatistics",
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

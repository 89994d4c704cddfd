"""The interpreter's own tests of threading's primitives over fairlead.sync's."""

from __future__ import annotations

from typing import Any

from test import lock_tests

from fairlead import sync


def _tests(name: str, attribute: str, kind: Any) -> type:
    return type(name, (getattr(lock_tests, name),), {attribute: staticmethod(kind)})


LockTests = _tests("LockTests", "locktype", sync.Lock)
RLockTests = _tests("RLockTests", "locktype", sync.RLock)
EventTests = _tests("EventTests", "eventtype", sync.Event)
ConditionTests = _tests("ConditionTests", "condtype", sync.Condition)
SemaphoreTests = _tests("SemaphoreTests", "semtype", sync.Semaphore)
BoundedSemaphoreTests = _tests("BoundedSemaphoreTests", "semtype", sync.BoundedSemaphore)
BarrierTests = _tests("BarrierTests", "barriertype", sync.Barrier)

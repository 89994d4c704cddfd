"""The interpreter's own tests of the module queue over fairlead.sync's queues."""

from __future__ import annotations

import queue
import types

import test.test_queue as tests

from fairlead import sync

facade = types.SimpleNamespace(**{name: getattr(queue, name) for name in queue.__all__})
for _name in ("Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"):
    setattr(facade, _name, getattr(sync, _name))


def _tests(name: str) -> type:
    return type(name, (getattr(tests, name),), {"queue": facade})


QueueTest = _tests("CQueueTest")
LifoQueueTest = _tests("CLifoQueueTest")
PriorityQueueTest = _tests("CPriorityQueueTest")
SimpleQueueTest = _tests("CSimpleQueueTest")

"""The interpreter's own tests of queue and asyncio's queues, run against ours, where it ships them."""

from __future__ import annotations

import pytest
from suites import run_suite, ships

THREADS = """
import queue, sys, types, unittest
import test.test_queue as suite
from fairlead import sync

facade = types.SimpleNamespace(**{name: getattr(queue, name) for name in queue.__all__})
facade.Queue, facade.LifoQueue, facade.PriorityQueue = sync.Queue, sync.LifoQueue, sync.PriorityQueue
facade.SimpleQueue = sync.SimpleQueue
for name in "CQueueTest", "CLifoQueueTest", "CPriorityQueueTest", "CSimpleQueueTest":
    getattr(suite, name).queue = facade
names = "CQueueTest", "CLifoQueueTest", "CPriorityQueueTest", "CSimpleQueueTest"
"""

TASKS = '''
import asyncio, sys, unittest
from fairlead import sync

def face(kind):
    """The class as asyncio has it: its methods are coroutine functions."""

    class Face:
        def __init__(self, maxsize=0):
            self.line = kind(maxsize)
        async def put(self, item):
            return await self.line.put_async(item)
        async def get(self):
            return await self.line.get_async()
        async def join(self):
            return await self.line.join_async()
        def __getattr__(self, name):
            return getattr(self.line, name)
        __class_getitem__ = kind.__class_getitem__
    return Face

asyncio.Queue, asyncio.LifoQueue, asyncio.PriorityQueue = map(
    face, (sync.Queue, sync.LifoQueue, sync.PriorityQueue)
)
import test.test_asyncio.test_queues as suite
names = [
    name for name, one in vars(suite).items() if isinstance(one, type) and issubclass(one, unittest.TestCase)
]
'''

RUN = """
load = unittest.defaultTestLoader.loadTestsFromTestCase
tests = unittest.TestSuite(load(getattr(suite, name)) for name in names)
chosen = unittest.TestSuite()
for case in tests:
    for one in case:
        name = one.id().rpartition(".")[2]
        if name not in LEFT_OUT:
            chosen.addTest(one)
result = unittest.TextTestRunner(stream=sys.stdout).run(chosen)
sys.exit(not result.wasSuccessful() or result.testsRun == 0)
"""

LEFT_OUT = {"test_simplequeue_sizeof": "its size is its own"}

TASKS_LEFT_OUT = {
    "test_repr": "a repr says how many objects there are, and not what they are",
    "test_str": "as test_repr",
    "test_format": "asks a private method",
    "test_float_maxsize": "a maxsize is a whole number",
    "test_get_with_putters": "puts a future of its own into a private list",
    "test_cancelled_getters_not_being_held_in_self_getters": "looks into a private list",
    "test_cancelled_puts_not_being_held_in_self_putters": "looks into a private list",
}


@pytest.mark.long
@pytest.mark.skipif(not ships("test.test_queue"), reason="this interpreter comes without its tests")
def test_queues_pass_the_tests_of_the_module_queue() -> None:
    run_suite(THREADS + RUN, LEFT_OUT)


@pytest.mark.long
@pytest.mark.skipif(
    not ships("test.test_asyncio.test_queues"), reason="this interpreter comes without its tests"
)
def test_queues_pass_the_tests_of_asyncio() -> None:
    run_suite(TASKS + RUN, TASKS_LEFT_OUT)

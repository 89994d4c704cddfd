"""The interpreter's own tests of asyncio's locks, against ours behind its faces; with the differences."""

from __future__ import annotations

import pytest
from suites import run_suite, ships

PROGRAM = '''
import asyncio, sys, unittest, warnings
from fairlead import errors, sync

warnings.simplefilter("ignore")  # of what is deprecated in the tests

class Face:
    """A primitive as asyncio has it: what waits is a coroutine function."""

    def __init__(self, *args, **words):
        self.inner = self.kind(*args, **words)
    def __getattr__(self, name):
        return getattr(self.inner, name)

class Taken(Face):
    async def acquire(self):
        return await self.inner.acquire_async()
    async def __aenter__(self):
        await self.acquire()
    async def __aexit__(self, *_):
        self.inner.release()

class Lock(Taken):
    kind = sync.Lock

class Semaphore(Taken):
    kind = sync.Semaphore

class BoundedSemaphore(Taken):
    kind = sync.BoundedSemaphore

class Event(Face):
    kind = sync.Event
    async def wait(self):
        return await self.inner.wait_async()

class Condition(Taken):
    def __init__(self, lock=None):
        self.lock = lock or Lock()
        self.inner = sync.Condition(self.lock.inner)
    async def wait(self):
        return await self.inner.wait_async()
    async def wait_for(self, predicate):
        return await self.inner.wait_for_async(predicate)

class Barrier(Face):
    kind = sync.Barrier
    async def wait(self):
        try:
            return await self.inner.wait_async()
        except errors.BrokenBarrierError as error:
            raise asyncio.BrokenBarrierError from error
    async def reset(self):
        self.inner.reset()
    async def abort(self):
        self.inner.abort()
    async def __aenter__(self):
        return await self.wait()
    async def __aexit__(self, *_):
        pass

for face in Lock, Semaphore, BoundedSemaphore, Event, Condition, Barrier:
    setattr(asyncio, face.__name__, face)
import test.test_asyncio.test_locks as suite

chosen = unittest.TestSuite()
for case in vars(suite).values():
    if isinstance(case, type) and issubclass(case, unittest.TestCase):
        for one in unittest.defaultTestLoader.loadTestsFromTestCase(case):
            name = one.id().rpartition("test_locks.")[2]
            if name not in LEFT_OUT and name.rpartition(".")[2] not in LEFT_OUT:
                chosen.addTest(one)
result = unittest.TextTestRunner(stream=sys.stdout).run(chosen)
sys.exit(not result.wasSuccessful() or result.testsRun < 40)
'''

PRIVATE = "looks at a private name"
REPR = "a repr shows the state and how many wait, in one way for all"
ONE_BY_ONE = "a notified waiter wakes the next when it has the lock, and so a turn later"
DRAINING = "who comes while others leave an asyncio.Barrier waits for them; here it waits for the next time"

LEFT_OUT = {
    "test_repr": REPR,
    "BarrierTests.test_barrier": REPR,
    "BarrierTests.test_filling_task_by_task": REPR,
    "LockTests.test_lock_doesnt_accept_loop_parameter": "the message has the name of asyncio's class",
    "LockTests.test_acquire_cancel": PRIVATE,
    "LockTests.test_cancel_race": PRIVATE,
    "LockTests.test_finished_waiter_cancelled": PRIVATE,
    "EventTests.test_clear_with_waiters": PRIVATE,
    "EventTests.test_wait_cancel": PRIVATE,
    "ConditionTests.test_wait_cancel": PRIVATE,
    "ConditionTests.test_explicit_lock": PRIVATE,
    "SemaphoreTests.test_acquire": PRIVATE,
    "SemaphoreTests.test_acquire_cancel": PRIVATE,
    "SemaphoreTests.test_semaphore": PRIVATE,
    "ConditionTests.test_notify": ONE_BY_ONE,
    "ConditionTests.test_notify_all": ONE_BY_ONE,
    "ConditionTests.test_ambiguous_loops": "a primitive belongs to no loop, so that nothing is ambiguous",
    "LockTests.test_cancel_release_race": "what is released outside of a task arrives a turn later",
    "SemaphoreTests.test_acquire_fifo_order_2": "who releases may take again before the one it went to runs",
    "BarrierTests.test_filling_tasks_cancel_one": "a cancellation breaks a barrier for all",
    "BarrierTests.test_draining_state": DRAINING,
    "BarrierTests.test_abort_barrier_when_tasks_half_draining_half_blocking": DRAINING,
    "BarrierTests.test_reset_barrier_when_tasks_half_draining": DRAINING,
    "BarrierTests.test_reset_barrier_when_tasks_half_draining_half_blocking": DRAINING,
    "BarrierTests.test_reset_barrier_while_tasks_draining": DRAINING,
}
"""Tests that fail, by name or by class and name, with the reason."""


@pytest.mark.long
@pytest.mark.skipif(
    not ships("test.test_asyncio.test_locks"), reason="this interpreter comes without its tests"
)
def test_locks_pass_the_tests_of_asyncio_but_for_the_listed_differences() -> None:
    run_suite(PROGRAM, LEFT_OUT)

"""fairlead.sync inside interpreters with a GIL of their own."""

from __future__ import annotations

import asyncio
import copyreg
import operator
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
from blocked import Blocked
from blockingcalls import CALLS, Call
from waiting import PATIENCE_S, Thread, until

from fairlead._native import attach, handle
from fairlead.errors import HandleGoneError, TooManyReleasesError, WrongProcessError
from fairlead.sync import BoundedSemaphore, Event, Lock, SimpleQueue, share

PROGRAM = """
import asyncio, threading
from fairlead.sync import Event, Lock, Semaphore, SimpleQueue
lock, line, event = Lock(), SimpleQueue(), Event()
inside = [0]

def work():
    for _ in range(100):
        with lock:
            seen = inside[0]
            inside[0] = seen + 1
    line.put(None)
    event.wait()

async def main():
    for _ in range(2):
        await line.get_async()
    async with lock:
        event.set()

threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
asyncio.run(main())
for thread in threads:
    thread.join()
assert inside == [200] and not lock.locked()
"""


not_on_312 = pytest.mark.skipif(
    sys.version_info[:2] == (3, 12),
    reason="asyncio in an interpreter of 3.12 corrupts tuples of the main one (python/cpython gh-112140)",
)


@not_on_312
@pytest.mark.skipif(
    sys.version_info < (3, 12), reason="further interpreters of Python 3.11 may not start threads"
)
def test_primitives_work_in_each_interpreter(new_interpreter: Callable[[], Any]) -> None:
    first, second = new_interpreter(), new_interpreter()
    first.run(PROGRAM)
    second.run(PROGRAM)
    first.run(PROGRAM)


@not_on_312
def test_interpreter_that_ends_with_waiting_tasks_takes_its_ports_along(
    new_interpreter: Callable[[], Any],
) -> None:
    interpreter = new_interpreter()
    interpreter.run(
        "import asyncio\n"
        "from fairlead.sync import Lock\n"
        "lock = Lock()\n"
        "lock.acquire()\n"
        "loop = asyncio.new_event_loop()\n"
        "async def body():\n"
        "    async with lock: pass\n"
        "task = loop.create_task(body())\n"
        "task._log_destroy_pending = False\n"
        "loop.run_until_complete(asyncio.sleep(0))\n"
        "assert lock.statistics().waiting == 1\n"
        "loop.close()\n"
        "assert lock.statistics().waiting == 0\n"
    )


def test_primitives_are_shared_by_interpreters(new_interpreter: Callable[[], Any]) -> None:
    lock, semaphore, event = Lock(fair=True), BoundedSemaphore(2), Event()
    other = new_interpreter()
    other.give(lock=lock, semaphore=semaphore, event=event)
    lock.acquire()
    other.run(
        "assert lock.locked() and not lock.acquire(False) and lock.statistics().fair\n"
        "lock.release()\n"
        "assert semaphore.acquire(n=2) and not event.is_set()\n"
        "event.set()\n"
    )
    assert not lock.locked()
    assert semaphore.locked()
    assert event.wait(0)
    semaphore.release(2)
    with pytest.raises(TooManyReleasesError):
        semaphore.release()
    assert handle(lock) == handle(attach(handle(lock)))


def held(_: int) -> Blocked:
    lock = Lock()
    lock.acquire()
    return Blocked(lock, lock.acquire, lock.acquire_async, lambda: lock.statistics().waiting, bool)


ENDS = {
    "held Lock": "one.release()",
    "Semaphore": "one.release(2)",
    "fair Semaphore": "one.release(2)",
    "BoundedSemaphore": "one.release(2)",
    "Event": "one.set()",
    "CountdownEvent": "assert one.value == 1; one.count_down()",
    "Barrier": "assert one.parties == 2 and one.wait() == 1",
    "Condition over a Lock": "with one: one.notify()",
    "SimpleQueue.get": "one.put('it')",
    "Queue.get": "one.put('it')",
    "fair Queue.get": "one.put('it')",
    "LifoQueue.get": "one.put('it')",
    "PriorityQueue.get": "one.put('it')",
    "Queue.peek": "one.put('it')",
}


def test_waiters_of_one_interpreter_are_let_go_on_by_another(new_interpreter: Callable[[], Any]) -> None:
    other, tried = new_interpreter(), []
    for call in [Call("held Lock", held), *CALLS]:
        for how in ("thread", "task") if call.name in ENDS else ():
            tried.append(call.name)
            blocked = call.make(1)
            other.run(f"import pickle\none = pickle.loads({pickle.dumps(share(blocked.primitive))!r})")
            waiter = Thread(blocked.take) if how == "thread" else Thread(asyncio.run, blocked.take_async())
            until(lambda: blocked.waiting() == 1)  # noqa: B023
            other.run(ENDS[call.name])
            assert blocked.got(waiter.result()), (call.name, how)
            assert blocked.waiting() == 0
    assert set(tried) == set(ENDS)


def test_task_that_runs_another_interpreter_is_woken_in_its_own(new_interpreter: Callable[[], Any]) -> None:
    """The thread is the loop's, and the interpreter that releases is not."""
    lock = Lock()
    other = new_interpreter()
    other.give(lock=lock)

    async def waits() -> str:
        async with lock:
            return "taken"

    async def main() -> None:
        await lock.acquire_async()
        task = asyncio.ensure_future(waits())
        await asyncio.sleep(0)
        assert lock.statistics().waiting == 1
        other.run("lock.release()")
        assert await asyncio.wait_for(task, PATIENCE_S) == "taken"

    asyncio.run(main())


def test_deep_tuple_is_refused_and_not_half_sent() -> None:
    queue: SimpleQueue[Any] = SimpleQueue()
    handle(queue)
    deep: Any = ()
    for _ in range(200_000):
        deep = (deep,)
    with pytest.raises(RecursionError):
        queue.put(deep)
    assert queue.empty()
    while deep:  # taken apart here: its destruction must not depend on the C stack
        (deep,) = deep


def test_handle_of_what_is_gone_is_refused_and_never_means_another() -> None:
    lock = Lock()
    number = handle(lock)
    copy = attach(number)
    del lock
    assert copy.acquire(False)
    del copy
    later = [Lock() for _ in range(100)]
    assert len({handle(one) for one in later}) == 100
    for gone in (number, 0, 2**64 - 1, -1):
        with pytest.raises(HandleGoneError, match="no interpreter"):
            attach(gone)
    with pytest.raises(TypeError, match="a dict cannot be handed"):
        handle({})  # type: ignore[arg-type]


@not_on_312
@pytest.mark.parametrize("fair", [False, True])
def test_interpreter_that_ends_leaves_no_task_in_a_shared_queue_and_passes_its_grant_on(
    new_interpreter: Callable[[], Any], fair: bool
) -> None:
    lock = Lock(fair=fair)
    lock.acquire()
    other = new_interpreter()
    other.give(lock=lock)
    other.run(
        "import asyncio\n"
        "loop = asyncio.new_event_loop()\n"
        "async def body():\n"
        "    async with lock: raise SystemError('never resumed')\n"
        "tasks = [loop.create_task(body()) for _ in range(3)]\n"
        "for task in tasks: task._log_destroy_pending = False\n"
        "loop.run_until_complete(asyncio.sleep(0))\n"
        # as a leak would keep the loop: the end does not wait for a collection
        "import gc; gc.freeze()\n"
    )
    assert lock.statistics().waiting == 3
    lock.release()  # granted to a loop that will not run, or nudged
    other.close()
    assert lock.acquire(timeout=PATIENCE_S)
    assert lock.statistics() == (True, 0, fair)


@pytest.mark.skipif(
    sys.version_info < (3, 13),
    reason="Python 3.12 itself waits for ever when a thread ends an interpreter that has had threads",
)
@pytest.mark.parametrize("fair", [False, True])
def test_interpreter_with_threads_that_wait_may_have_no_daemons_and_ends_when_they_have_been_served(
    new_interpreter: Callable[[], Any], fair: bool
) -> None:
    """So none of its threads stays in a queue: isolated interpreters have no daemon threads."""
    lock, queue, gone = Lock(fair=fair), SimpleQueue(), Event()
    lock.acquire()
    other = new_interpreter()
    other.give(lock=lock, queue=queue)
    other.run(
        "import threading\n"
        "try: threading.Thread(target=lock.acquire, daemon=True).start()\n"
        "except RuntimeError as error: assert 'daemon' in str(error)\n"
        "else: raise AssertionError('it has daemon threads')\n"
        "def hold():\n"
        "    with lock: pass\n"
        "for wait in hold, queue.get: threading.Thread(target=wait).start()\n"
    )
    until(lambda: lock.statistics().waiting == queue.statistics().waiting == 1)

    def end() -> None:
        other.close()
        gone.set()

    ender = Thread(end)
    assert not gone.wait(0)
    lock.release()
    queue.put(1)
    ender.result()
    assert gone.is_set()
    assert lock.acquire(timeout=PATIENCE_S)
    assert lock.statistics() == (True, 0, fair)
    assert queue.statistics() == (0, 0)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="concurrent.interpreters came with Python 3.14")
def test_primitives_are_arguments_of_concurrent_interpreters(importable: str) -> None:
    from concurrent import interpreters

    lock, queue, event = Lock(), SimpleQueue(), Event()
    lock.acquire()
    interpreter = interpreters.create()
    try:
        interpreter.exec(importable)
        interpreter.call(operator.methodcaller("release"), share(lock))
        assert not lock.locked()
        interpreter.call(operator.methodcaller("put", ("called", 1)), share(queue))
        assert queue.get(timeout=PATIENCE_S) == ("called", 1)
        interpreter.prepare_main(number=handle(event))
        interpreter.exec("from fairlead._native import attach; attach(number).set()")
        assert event.is_set()
    finally:
        interpreter.close()


def test_pickle_of_an_earlier_process_of_the_same_number_is_refused() -> None:
    lock = Lock()
    arrive, (name, (pid, forks, since), number) = copyreg.dispatch_table[Lock](share(lock))
    assert handle(arrive(name, (pid, forks, since), number)) == handle(lock)
    for process in ((pid, forks + 1, since), (pid, forks, since - 1)):
        with pytest.raises(WrongProcessError, match="this Lock belongs to another process"):
            arrive(name, process, number)

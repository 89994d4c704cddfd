"""A task whose loop goes on in a forked child: what it waited for, and what it had been granted."""

from __future__ import annotations

import pytest
from syncprograms import run

pytestmark = pytest.mark.ends_and_free

LOOP = """
from fairlead.lowlevel import Mailbox, add_loop

class Future:
    completed = False
    def done(self):
        return self.completed
    def set_result(self, value):
        self.completed = True
    def __await__(self):
        yield self

timers = []
class Timer:
    def __init__(self, seconds, function):
        self.function = function
        timers.append(self)
    def cancel(self):
        timers.remove(self)

port = Mailbox(Future, None, Timer)
add_loop(lambda: port)

def ends(ticket, value=True):
    try:
        ticket.send(None)
    except StopIteration as stop:
        assert stop.value == value, stop.value
        return True
"""


def run_in_a_loop(program: str) -> str:
    return run(LOOP + program)


def test_task_that_was_notified_takes_what_is_there_in_the_child() -> None:
    run_in_a_loop("""
semaphore = Semaphore(1)
semaphore.acquire()
before = [start(semaphore.acquire)]
until(lambda: semaphore.statistics().waiting == 1)
ticket = semaphore.acquire_async()
ticket.send(None)
before.append(start(semaphore.acquire))
until(lambda: semaphore.statistics().waiting == 3)
semaphore.release(); before[0].join()
semaphore.release()  # the task is to look

def child():
    assert semaphore.statistics().waiting == 0
    port()
    assert ends(ticket)
    assert semaphore.statistics()[:2] == (0, 0)
    other = start(semaphore.acquire)
    until(lambda: semaphore.statistics().waiting == 1)
    semaphore.release()
    other.join()
    assert semaphore.statistics()[:2] == (0, 0)

in_child(child)
""")


def test_task_that_waits_for_a_rate_is_served_in_the_child() -> None:
    run_in_a_loop("""
limiter = RateLimiter(1000, 1)
ticket = limiter.acquire_async()
while ends(ticket):  # on a slow machine the next permit has come by then
    ticket = limiter.acquire_async()

def child():
    until(lambda: timers and (timers[0].function(), ends(ticket))[1])

in_child(child)
""")


@pytest.mark.parametrize("make", ["SimpleQueue()", "Queue()", "PriorityQueue()", "Queue(2)"])
@pytest.mark.parametrize("first", ["the task", "others"])
def test_object_that_a_task_was_granted_reaches_that_task_alone_in_the_child(make: str, first: str) -> None:
    run_in_a_loop(
        f"queue, first = {make}, {first!r}"
        """
ticket = queue.get_async()
ticket.send(None)
queue.put(1)
port()  # the task is granted it, and has yet to resume

def child():
    if first == "others":
        assert queue.qsize() == 0 and queue.empty()
    assert ends(ticket, 1)
    queue.put(2); queue.put(3)
    assert (queue.get(), queue.get(), queue.qsize()) == (2, 3, 0)

in_child(child)
"""
    )


def test_room_that_a_task_was_granted_is_the_tasks_in_the_child() -> None:
    run_in_a_loop("""
queue = Queue(1)
queue.put(1)
ticket = queue.put_async(2)
ticket.send(None)
assert queue.get() == 1
port()

def child():
    try:
        queue.put_nowait(3)
    except Exception as error:
        assert type(error).__name__ == "QueueFull", error
    else:
        raise AssertionError("the task's room was given to another")
    assert ends(ticket, None)
    assert (queue.get(), queue.qsize()) == (2, 0)
    queue.put_nowait(4)

in_child(child)
""")


@pytest.mark.parametrize("make", ["RLock()", "RWLock().writing"])
def test_what_a_task_holds_is_held_in_the_child_by_no_thread(make: str) -> None:
    run(f"""
import asyncio
from fairlead.errors import NotHeldError
lock = {make}

def child():
    assert not lock.acquire(False)
    try:
        lock.release()
    except NotHeldError:
        return
    raise AssertionError

async def main():
    with lock:
        in_child(child)

asyncio.run(main())
""")


def test_what_a_task_of_another_threads_loop_was_granted_is_there_for_the_child() -> None:
    run("""
import asyncio
empty, full = Queue(fair=True), Queue(1, fair=True)
full.put(0)
wait, go_on = threading.Event(), threading.Event()

async def main():
    tasks = [asyncio.ensure_future(one) for one in (get(), put())]
    while not empty.statistics().getting == full.statistics().putting == 1:
        await asyncio.sleep(0)
    wait.set()
    go_on.wait()  # and no task resumes
    await asyncio.gather(*tasks)

async def get():
    assert await empty.get_async() == 1

async def put():
    await full.put_async(2)

loop = start(asyncio.run, main())
wait.wait()
empty.put(1)
assert full.get() == 0

def child():
    assert empty.get_nowait() == 1
    full.put_nowait(3)
    assert full.get_nowait() == 3

in_child(child)
go_on.set()
loop.join()
assert full.get_nowait() == 2
""")

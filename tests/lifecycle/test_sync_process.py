"""What a fork, an exit and a signal leave of the primitives: each a program of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

PRELUDE = """
import os, signal, sys, threading, warnings
from fairlead.sync import *
warnings.simplefilter("ignore", DeprecationWarning)  # of fork with threads

def until(state):
    while not state():
        os.sched_yield()

def start(function, *args):
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread

def in_child(function):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            function()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""


def run(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", PRELUDE + program],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
def test_forked_child_finds_a_lock_of_another_thread_free_and_its_own_held(fair: bool) -> None:
    run(
        f"fair = {fair}"
        + """
theirs, mine = Lock(fair=fair), Lock(fair=fair)
mine.acquire()
start(theirs.acquire).join()
start(mine.acquire); start(mine.acquire)
until(lambda: mine.statistics().waiting == 2)

def child():
    assert not theirs.locked() and theirs.acquire(False)
    assert mine.statistics() == (True, 0, fair)
    assert not mine.acquire(timeout=0.001)
    mine.release()
    other = start(mine.acquire)
    other.join()
    assert mine.locked()
    waiter = start(theirs.acquire)
    until(lambda: theirs.statistics().waiting == 1)
    theirs.release()
    waiter.join()

in_child(child)
assert theirs.locked() and mine.statistics().waiting == 2
mine.release()
"""
    )


def test_forked_child_finds_an_rlock_of_another_holder_free_and_its_own_as_deep_as_it_was() -> None:
    run("""
import asyncio
theirs, mine, tasks = RLock(), RLock(), RLock()
mine.acquire(); mine.acquire()
start(theirs.acquire).join()

def loop():
    async def main():
        await tasks.acquire_async()
    asyncio.run(main())

start(loop).join()

def child():
    assert mine.statistics() == (True, 2, 0, False)
    mine.release(); mine.release()
    for lock in theirs, mine, tasks:
        assert lock.statistics()[:3] == (False, 0, 0)
        with lock, lock:
            other = start(lock.acquire)
            until(lambda: lock.statistics().waiting == 1)
        other.join()
        assert lock.statistics().depth == 1

in_child(child)
assert theirs.locked() and tasks.locked()
""")


def test_forked_child_can_use_semaphores_events_and_queues() -> None:
    run("""
semaphore, event, queue = Semaphore(2), Event(), SimpleQueue()
semaphore.acquire()
queue.put("before")
start(semaphore.acquire, True, None, 2); start(event.wait)
empty = SimpleQueue()
start(empty.get)
until(lambda: semaphore.statistics().waiting == event.statistics().waiting == empty.statistics().waiting == 1)

def child():
    assert semaphore.statistics() == (1, 0, False)
    assert semaphore.acquire(False) and not semaphore.acquire(False)
    waiter = start(event.wait)
    until(lambda: event.statistics().waiting == 1)
    event.set()
    waiter.join()
    assert queue.get() == "before" and queue.empty()
    empty.put("mine")
    assert empty.get() == "mine"

in_child(child)
assert semaphore.statistics() == (1, 1, False)
event.set()
""")


def test_forks_while_threads_use_a_lock_leave_every_child_a_lock_that_works() -> None:
    """Other threads are anywhere in it at the moment of the fork, inside its own locks included."""
    run("""
lock, stop = Lock(), []
inside = [0]

def work():
    while not stop:
        if lock.acquire(timeout=0.0001):
            inside[0] += 1
            lock.release()

threads = [start(work) for _ in range(4)]

def child():
    assert lock.acquire(timeout=20)
    lock.release()
    assert lock.statistics() == (False, 0, False)

for _ in range(40):
    seen = inside[0]
    until(lambda: inside[0] > seen)
    in_child(child)
stop.append(True)
for thread in threads:
    thread.join()
""")


def test_daemon_threads_that_wait_do_not_hinder_the_exit() -> None:
    out = run("""
lock, event, queue, semaphore = Lock(), Event(), SimpleQueue(), Semaphore(0)
lock.acquire()

class Last:
    def __del__(self, lock=lock, event=event, semaphore=semaphore, queue=queue, write=os.write):
        # finalization is on its way; whoever waits may be woken and will not come back
        lock.release(); event.set(); semaphore.release(3); queue.put(1)
        write(1, b"released")

threads = [start(lock.acquire), start(event.wait), start(queue.get), start(semaphore.acquire)]
def impatient():
    while True:
        semaphore.acquire(timeout=0.0005)
        lock.acquire(timeout=0.0005)
threads.append(start(impatient))
until(lambda: lock.statistics().waiting and event.statistics().waiting and queue.statistics().waiting)
sys.last = Last()
""")
    assert out == "released"


def test_loop_that_ends_with_its_tasks_waiting_does_not_hinder_the_exit() -> None:
    run("""
import asyncio
lock = Lock()
lock.acquire()

async def body():
    async with lock:
        pass

async def main():
    kept.append(asyncio.ensure_future(body()))
    while not lock.statistics().waiting:
        await asyncio.sleep(0)

kept = []
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
lock.release()
# neither closed nor drained
""")


def test_ctrl_c_ends_a_wait_for_ever() -> None:
    run("""
lock = Lock()
lock.acquire()

def press():
    until(lambda: lock.statistics().waiting == 1)
    os.kill(os.getpid(), signal.SIGINT)

start(press)
try:
    lock.acquire()
except KeyboardInterrupt:
    assert lock.statistics() == (True, 0, False)
else:
    raise AssertionError("not interrupted")
""")


def test_forked_child_finds_a_combining_lock_free_and_the_section_it_was_forked_in_held() -> None:
    run("""
from fairlead.sync import CombiningLock
theirs, mine = CombiningLock(), CombiningLock()
begun, go = Event(), Event()
start(theirs.run, lambda: (begun.set(), go.wait()))
begun.wait()
start(theirs.run, int)
until(lambda: theirs.statistics().waiting == 1)

def child():
    assert theirs.statistics()[:2] == (False, 0)
    assert theirs.run(lambda: 3) == 3
    assert mine.locked()

def section():
    start(mine.run, int)
    until(lambda: mine.statistics().waiting == 1)
    in_child(child)
    return "whole"

assert mine.run(section) == "whole"
mine.run(int)
go.set()
theirs.run(int)
""")


def test_gate_starts_processes_that_were_forked_or_spawned() -> None:
    run("""
import multiprocessing
from fairlead.sync import StartGate

gate = StartGate(processes=True)
children = []
for _ in range(5):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        os._exit(0 if gate.wait() else 1)
    children.append(child)
spawned = multiprocessing.get_context("spawn").Process(target=gate.behind(sys.exit), args=(7,))
spawned.start()
assert not gate.is_open()
gate.open()
for child in children:
    assert os.waitpid(child, 0)[1] == 0
spawned.join()
assert spawned.exitcode == 7
""")

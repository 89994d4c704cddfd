"""fairlead.sync.shared in several processes, some of which are killed: each test a program of its own.

The same a thousand times, at random moments: tools/shared_stress.py.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from syncprograms import run

pytestmark = pytest.mark.ends_and_free

SHARED = """
from fairlead.sync import shared
from fairlead.errors import *
def fork(function):
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            function()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child
def kill(child):
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
def done(child):
    assert os.waitpid(child, 0)[1] == 0
def asleep(child):
    return open(f"/proc/{child}/stat").read().rpartition(")")[2].split()[0] == "S"
def forked(done, then=signal.pause):
    # a child that has done this, and goes on with that
    ready, tell = os.pipe()
    def body():
        done()
        os.write(tell, b".")
        then()
    child = fork(body)
    os.read(ready, 1)
    return child
"""


def run_shared(program: str) -> str:
    return run(SHARED + program)


METHODS = """
import multiprocessing, sys
from fairlead.sync import shared

def add(lock, path, times):
    for _ in range(times):
        with lock:
            with open(path) as file:
                number = int(file.read())
            with open(path, "w") as file:
                file.write(str(number + 1))

if __name__ == "__main__":
    path, lock, workers = sys.argv[1], shared.Lock(), []
    for method in ("spawn", "forkserver", "fork"):
        context = multiprocessing.get_context(method)
        workers.append(context.Process(target=add, args=(lock, path, 100)))
    for worker in workers:
        worker.start()
    add(lock, path, 100)
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0, worker
    with open(path) as file:
        assert file.read() == "400"
"""


def test_lock_goes_to_processes_of_every_start_method(tmp_path: Path) -> None:
    program, number = tmp_path / "program.py", tmp_path / "number"
    program.write_text(METHODS)
    number.write_text("0")
    done = subprocess.run(
        [sys.executable, program, number], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr  # nor has a resource tracker anything to say


def test_death_with_the_lock_is_reported_until_a_process_recovers_it() -> None:
    run_shared("""
lock = shared.Lock()
child = forked(lock.acquire)
assert not lock.acquire(False) and lock.statistics() == (True, child, True, 0)
os.kill(child, signal.SIGKILL)  # not waited for: a zombie is dead, too
for acquire in (lock.acquire, lambda: lock.acquire(False), lock.__enter__, lambda: lock.acquire(timeout=30)):
    until(lambda: not lock.statistics().owner_alive)
    try:
        acquire()
    except OwnerDiedError as error:
        assert error.pid == child
    else:
        raise AssertionError
os.waitpid(child, 0)
assert "which is dead" in repr(lock)
assert lock.recover() is True
assert lock.statistics() == (True, os.getpid(), True, 1)
lock.release()
with lock:
    pass
kept = shared.Lock(take_over=True)
kill(forked(kept.acquire))
with kept:
    assert kept.statistics().deaths == 1
""")


def test_waiting_threads_and_tasks_learn_of_the_owners_death() -> None:
    run_shared("""
import asyncio
lock = shared.Lock()
child = forked(lock.acquire)
told = []
def wait():
    try:
        lock.acquire()
    except OwnerDiedError as error:
        told.append(error.pid)
threads = [start(wait), start(wait)]
async def body():
    task = asyncio.ensure_future(lock.acquire_async())
    await asyncio.sleep(0)
    kill(child)
    try:
        await task
    except OwnerDiedError as error:
        told.append(error.pid)
    for thread in threads:  # before it is recovered
        thread.join()
    assert await lock.recover_async() is True
asyncio.run(asyncio.wait_for(body(), 30))
assert told == [child] * 3
""")


def test_waiters_that_are_killed_keep_no_process_from_the_lock() -> None:
    run_shared("""
lock = shared.Lock(take_over=True)
def once():
    with lock:
        pass
for turn in range(20):
    lock.acquire()
    first, second = fork(once), fork(once)
    until(lambda: asleep(first) and asleep(second))
    if turn % 2:
        lock.release()  # the first to sleep has been woken
        os.kill(first, signal.SIGKILL)
    else:
        os.kill(first, signal.SIGKILL)
        lock.release()
    os.waitpid(first, 0)
    done(second)
once()
""")


def test_owned_permits_come_back_from_the_dead_and_events_stay() -> None:
    run_shared("""
import asyncio
semaphore, event = shared.Semaphore(2, owned=True), shared.Event()
child = forked(lambda: (semaphore.acquire(), semaphore.acquire(), event.set()))
assert not semaphore.acquire(False) and semaphore.locked()
waits = start(semaphore.acquire)
async def body():
    task = asyncio.ensure_future(semaphore.acquire_async())
    await asyncio.sleep(0)
    kill(child)
    assert await asyncio.wait_for(task, 30)
asyncio.run(body())
waits.join()
assert semaphore.statistics() == (0, 2) and event.is_set()
event.clear()
children = [fork(event.wait) for _ in range(3)]
until(lambda: all(map(asleep, children)))
kill(children.pop(0))
event.set()
for child in children:
    done(child)
""")


def test_death_at_an_end_of_a_queue_is_reported_once_and_leaves_it_whole() -> None:
    run_shared("""
def killed_with_the_lock(take_over, gets):
    # until one is killed in the middle: most of the time of a large copy it has the lock
    queue = shared.Queue(capacity_bytes=1 << 23, take_over=take_over)
    message = bytes(1 << 22)
    while True:
        if gets:
            queue.put(message)
        def body():
            while True:
                queue.get() if gets else queue.put(message)
                queue.put(message) if gets else queue.get()
        child = forked(bool, body)
        kill(child)
        try:
            while not queue.empty():
                assert queue.get() == message
            queue.put(b"next")
            assert queue.get() == b"next"
        except OwnerDiedError as error:
            assert error.pid == child and not take_over
            while not queue.empty():
                queue.get()
            queue.put(b"next")
            assert queue.get() == b"next"
            return
        if take_over and sum(queue.statistics()[3:]):
            return
killed_with_the_lock(False, False)
killed_with_the_lock(True, True)
""")


def test_killed_getters_keep_no_message_from_the_others() -> None:
    run_shared("""
queue = shared.Queue()
def get():
    assert queue.get() == b"message"
for _ in range(10):
    first, second = fork(get), fork(get)
    until(lambda: asleep(first) and asleep(second))
    kill(first)
    queue.put(b"message")
    done(second)
assert queue.empty()
""")


def test_death_of_a_process_that_waits_at_a_barrier_breaks_it() -> None:
    run_shared("""
import asyncio
barrier = shared.Barrier(4)
told = []
def wait():
    try:
        barrier.wait()
    except BrokenBarrierError as error:
        told.append(str(error))
child = fork(wait)
thread = start(wait)
async def body():
    task = asyncio.ensure_future(barrier.wait_async())
    while barrier.n_waiting < 3:
        await asyncio.sleep(0)
    kill(child)
    await asyncio.wait([task], timeout=30)
    assert isinstance(task.exception(), BrokenBarrierError)
    told.append(str(task.exception()))
asyncio.run(body())
thread.join()
assert len(told) == 2 and any(str(child) in text for text in told), told
barrier.reset()
children = [fork(barrier.wait) for _ in range(3)]
barrier.wait()
for child in children:
    done(child)
""")


def test_forked_child_holds_nothing_and_its_parents_lock_is_its_parents() -> None:
    run_shared("""
lock = shared.Lock()
lock.acquire()
def body():
    try:
        lock.release()
    except NotHeldError:
        pass
    else:
        raise AssertionError
    assert not lock.acquire(False)
done(fork(body))
lock.release()
def take():
    import asyncio
    with lock:
        pass
    async def body():
        lock.acquire()
        task = asyncio.ensure_future(lock.acquire_async())
        await asyncio.sleep(0)
        lock.release()
        await task
        lock.release()
    asyncio.run(asyncio.wait_for(body(), 20))
done(fork(take))
take()
done(fork(take))  # whose parent has a thread that waits for its tasks, which did not come along
""")


def test_forked_childs_task_does_not_wait_behind_a_task_of_its_parent() -> None:
    run_shared("""
import asyncio
event = shared.Event()
async def wait_and(then):
    task = asyncio.ensure_future(event.wait_async())
    while not waits():
        await asyncio.sleep(0)
    then()
    await asyncio.wait_for(task, 20)
def in_child():
    start(lambda: asyncio.run(wait_and(event.set))).join()
asyncio.run(wait_and(lambda: done(fork(in_child))))
""")


def test_name_outlives_its_maker_and_goes_with_the_last() -> None:
    name = run_shared("""
name = f"last-{os.getpid()}"
path = f"/dev/shm/fairlead-{os.getuid()}-{name}"
held, here = shared.Lock(name), os.pipe()
def body():
    os.read(here[0], 1)
    assert shared.Lock(name).locked() is False and held.acquire(False)
child = fork(body)
del held
assert os.path.exists(path)  # the child has it
os.write(here[1], b".")
done(child)
shared.sweep()
assert not os.path.exists(path)  # which os._exit leaves
def use():
    lock = shared.Lock(name)
    lock.acquire()
    signal.pause()
child = fork(use)
until(lambda: os.path.exists(path) and shared.Lock(name).locked())
kill(child)
assert not shared.Lock(name).locked()  # nobody had it: it is made anew
assert not os.path.exists(path)
kept = shared.Lock(name)  # and a module's, until the end of the process
print(name, end="")
""")
    assert not list(Path("/dev/shm").glob(f"fairlead-*-{name}"))


def test_ctrl_c_ends_a_wait() -> None:
    run_shared("""
lock = shared.Lock()
lock.acquire()
def body():
    try:
        lock.acquire()
    except KeyboardInterrupt:
        os._exit(0)
child = forked(bool, body)
until(lambda: asleep(child))
os.kill(child, signal.SIGINT)
done(child)
""")


def test_daemon_threads_and_tasks_that_wait_do_not_hinder_the_exit() -> None:
    name = run_shared("""
import asyncio
lock, named = shared.Lock(), shared.Lock(f"exit-{os.getpid()}")
lock.acquire()
named.acquire()
start(lock.acquire)
start(named.acquire)
async def body():
    global task
    task = asyncio.ensure_future(lock.acquire_async())
    await asyncio.sleep(0.01)
loop = asyncio.new_event_loop()
loop.run_until_complete(body())
print(f"exit-{os.getpid()}", end="")
""")
    assert not list(Path("/dev/shm").glob(f"fairlead-*-{name}"))

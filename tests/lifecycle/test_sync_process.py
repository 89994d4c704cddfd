"""What an exit and a signal leave of the primitives: each a program of its own."""

from __future__ import annotations

import pytest
from syncprograms import run

pytestmark = pytest.mark.ends_and_free


def test_daemon_threads_that_wait_do_not_hinder_the_exit() -> None:
    out = run("""
from blockingcalls import CALLS
from waiting import Thread

def impatient():
    while True:
        for blocked, late in timed:
            try:
                blocked.wait(timeout=0.0001)
            except late:
                pass

calls = [call for call in CALLS if not call.by_others]  # an end that joins a thread would wait for ever
all_blocked = [call.make(1) for call in calls]
timed = [(call.make(1), call.late or ()) for call in calls if call.late is not None]
threads = [start(blocked.take) for blocked in all_blocked] + [start(call.make(1).take) for call in CALLS]
until(lambda: all(blocked.waiting() == 1 for blocked in all_blocked))
start(impatient)

# a clock and a condition are Python, whose modules are empty by then
python = RateLimiter, Condition
ends = [blocked.end for blocked in all_blocked if not isinstance(blocked.primitive, python)]

class Last:
    def __del__(self, ends=ends, write=os.write):
        # finalization has begun: the waiters are woken, and do not run any more
        for end in ends:
            end()
        write(1, b"ended")

sys.last = Last()
""")
    assert out == "ended"


def test_loops_that_end_with_tasks_that_wait_or_were_granted_do_not_hinder_the_exit() -> None:
    run("""
import asyncio
from blockingcalls import CALLS
from endings import queued

kept = []
for call in CALLS:
    for ends in False, True:
        print(call.name, ends, flush=True)
        blocked, loop = call.make(1), asyncio.new_event_loop()
        kept.append((blocked, loop, loop.run_until_complete(queued(blocked))))
        if ends:
            blocked.end()
# neither closed nor drained
""")


def test_ctrl_c_ends_every_wait_and_takes_nothing() -> None:
    run("""
from blockingcalls import CALLS
from waiting import main_thread_sleeps

def press():
    until(lambda: blocked.waiting() == 1 and main_thread_sleeps())
    os.kill(os.getpid(), signal.SIGINT)

for call in CALLS:
    print(call.name, flush=True)
    blocked = call.make(1)
    before = blocked.left()
    thread = start(press)
    try:
        blocked.wait()
    except KeyboardInterrupt:
        thread.join()
    else:
        raise AssertionError("not interrupted")
    assert blocked.left() == before and blocked.waiting() == 0
    blocked.end() if call.stays else None
""")


@pytest.mark.parametrize("others", ["", "import trio"])
def test_release_in_a_signal_handler_wakes_a_task_while_its_loop_sleeps(others: str) -> None:
    """The handler runs inside the loop's wait for events, which nothing but the port's descriptor ends.

    Where the program has no trio, native code asks asyncio itself which loop runs.
    """
    run(
        f"""
import asyncio
{others}
from waiting import main_thread_sleeps
semaphore = Semaphore(0)

def press():
    until(lambda: semaphore.statistics().waiting == 1 and main_thread_sleeps())
    os.kill(os.getpid(), signal.SIGUSR1)

async def main():
    await semaphore.acquire_async()

signal.alarm(30)  # without a timer, which would wake the loop, too
signal.signal(signal.SIGUSR1, lambda *_: semaphore.release())
assert ("trio" in sys.modules) == {bool(others)}
for _ in range(2):
    start(press)
    asyncio.run(main())
"""
    )


def test_signal_handler_puts_and_gets_while_the_main_thread_compares() -> None:
    run("""
class Ranked:
    def __init__(self, rank):
        self.rank = rank
    def __lt__(self, other):
        global pressed
        if not pressed:
            pressed = True
            signal.raise_signal(signal.SIGUSR2)
        return self.rank < other.rank

ranked, pressed = PriorityQueue(), False
signal.signal(signal.SIGUSR2, lambda *_: (ranked.put_nowait(Ranked(-1)), ranked.get_nowait().rank))
for rank in (3, 2, 1):
    pressed = False
    ranked.put(Ranked(rank))
pressed = False
assert [ranked.get().rank for _ in range(ranked.qsize())] == sorted(range(1, 4))
""")


def test_errors_of_queues_are_those_of_asyncio_once_it_has_been_imported() -> None:
    run("""
import sys, types
from fairlead import errors

def empty():
    try:
        queue.get_nowait()
    except errors.QueueEmpty as error:
        return error

queue = SimpleQueue()
assert "asyncio" not in sys.modules and type(empty()) is errors.QueueEmpty
sys.modules["asyncio.queues"] = types.ModuleType("asyncio.queues")  # as another thread begins to import it
assert type(empty()) is errors.QueueEmpty
del sys.modules["asyncio.queues"]
import asyncio
assert isinstance(empty(), asyncio.QueueEmpty) and type(empty()) is type(empty())
import pickle
assert type(pickle.loads(pickle.dumps(empty()))) is errors.QueueEmpty
""")


def test_pickle_for_another_process_is_refused_by_name() -> None:
    run("""
import multiprocessing, pickle
from fairlead.errors import WrongProcessError
from fairlead._native import handle
from fairlead.sync import share

lock = Lock()
try:
    multiprocessing.get_context("spawn").Process(target=lock.acquire).start()
except WrongProcessError as error:
    assert "Lock" in str(error), error
else:
    raise AssertionError("went through")
pickled = pickle.dumps(share(lock))

def child():
    try:
        pickle.loads(pickled)
    except WrongProcessError as error:
        assert isinstance(error, TypeError) and "Lock" in str(error), error
    else:
        raise AssertionError("went through")
    assert handle(pickle.loads(pickle.dumps(lock))) == handle(lock)

in_child(child)
""")


def test_tasks_of_a_trio_that_keeps_its_running_task_elsewhere_are_distinguished() -> None:
    """Asked by the function that the adapter then has: in a program of its own, for it is asked for once."""
    out = run("""
import trio
from fairlead.lowlevel import current_task
from fairlead.sync import RLock
from fairlead.wait import _trio

_trio.run_context = _trio.task
lock = RLock()

async def other():
    print(current_task() is trio.lowlevel.current_task(), lock.acquire(False), end=" ")

async def main():
    async with lock, trio.open_nursery() as nursery:
        nursery.start_soon(other)
    print(lock.locked(), end="")

trio.run(main)
""")
    assert out == "True False False"

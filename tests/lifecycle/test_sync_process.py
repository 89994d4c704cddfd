"""What an exit and a signal leave of the primitives: each a program of its own."""

from __future__ import annotations

from syncprograms import run

QUEUES = "from fairlead.sync import LifoQueue, PriorityQueue, Queue\n"


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


def test_signal_handler_puts_while_the_main_thread_gets_or_compares() -> None:
    run(
        QUEUES
        + """
line, ranked = Queue(), PriorityQueue()
signal.signal(signal.SIGUSR1, lambda *_: line.put_nowait("from a handler"))

def press():
    until(lambda: line.statistics().getting == 1)
    os.kill(os.getpid(), signal.SIGUSR1)

for _ in range(20):
    thread = start(press)
    assert line.get() == "from a handler"
    thread.join()

class Ranked:
    def __init__(self, rank):
        self.rank = rank
    def __lt__(self, other):
        global pressed
        if not pressed:
            pressed = True
            signal.raise_signal(signal.SIGUSR2)
        return self.rank < other.rank

pressed = False
signal.signal(signal.SIGUSR2, lambda *_: (ranked.put_nowait(Ranked(-1)), ranked.get_nowait().rank))
for rank in (3, 2, 1):
    pressed = False
    ranked.put(Ranked(rank))
pressed = False
assert [ranked.get().rank for _ in range(ranked.qsize())] == sorted(range(1, 4))
"""
    )


def test_ctrl_c_ends_a_put_a_get_and_a_join_and_takes_nothing() -> None:
    run(
        QUEUES
        + """
full, empty = Queue(1), Queue()
full.put(1)
for call, line, place in ((lambda: full.put(2), full, 3), (empty.get, empty, 2), (full.join, full, 4)):
    def press():
        until(lambda: line.statistics()[place] == 1)
        os.kill(os.getpid(), signal.SIGINT)
    thread = start(press)
    try:
        call()
    except KeyboardInterrupt:
        thread.join()
    else:
        raise AssertionError("not interrupted")
    assert line.statistics()[2:5] == (0, 0, 0)
assert full.get_nowait() == 1 and full.empty() and empty.empty()
"""
    )


def test_daemon_threads_in_queues_do_not_hinder_the_exit() -> None:
    out = run(
        QUEUES
        + """
from fairlead.errors import QueueEmpty

empty, full = Queue(), PriorityQueue(1)
full.put(1)

class Last:
    def __del__(self, empty=empty, full=full, write=os.write):
        # finalization has begun: the waiters are woken, and do not run any more
        empty.put_nowait(1); full.shutdown(immediate=True); empty.shutdown()
        write(1, b"shut down")

def impatient():
    while True:
        try:
            empty.get(timeout=0.0005)
        except QueueEmpty:
            continue
        os.write(1, b"got an object of no one")

threads = [start(empty.get), start(full.put, 2), start(full.join), start(impatient)]
until(lambda: empty.statistics().getting and full.statistics().putting and full.statistics().joining)
sys.last = Last()
"""
    )
    assert out == "shut down"


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
from fairlead.sync import handle

lock = Lock()
try:
    multiprocessing.get_context("spawn").Process(target=lock.acquire).start()
except WrongProcessError as error:
    assert "Lock" in str(error), error
else:
    raise AssertionError("went through")
pickled = pickle.dumps(lock)

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


def test_signal_that_another_thread_receives_is_handled_by_the_main_thread_that_waits() -> None:
    """As one that comes in the instant before the main thread sleeps, it interrupts no sleep."""
    run("""
lock, event, turn = Lock(), Event(), Event()
lock.acquire()
handled = []

def handle(*_):
    handled.append(threading.get_ident())
    lock.release()
    event.set()

signal.signal(signal.SIGUSR1, handle)

def receive():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGUSR1])
    until(lambda: lock.statistics().waiting == 1 and open("/proc/self/stat").read().split()[2] == "S")
    signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
    turn.wait()

signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
thread = start(receive)
assert lock.acquire()
assert event.wait()
turn.set()
thread.join()
assert handled == [threading.get_ident()]
""")


def test_signal_handler_wakes_a_task_whose_loop_sleeps_in_a_program_without_trio() -> None:
    """Where trio is imported, as by a plugin of pytest, fairlead.wait says whether a task runs."""
    run("""
import asyncio
semaphore = Semaphore(0)

def asleep():
    with open(f"/proc/self/task/{os.getpid()}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"

def interrupt():
    until(lambda: semaphore.statistics().waiting == 1 and asleep())
    os.kill(os.getpid(), signal.SIGUSR1)

async def main():
    start(interrupt)
    await semaphore.acquire_async()

signal.signal(signal.SIGUSR1, lambda *_: semaphore.release())
for _ in range(2):
    asyncio.run(asyncio.wait_for(main(), 20))
assert "trio" not in sys.modules
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

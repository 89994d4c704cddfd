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


def test_forked_child_is_inside_a_readers_writer_lock_as_its_thread_was_and_nobody_else() -> None:
    run("""
import asyncio
mine, theirs, tasks = RWLock(), RWLock(), RWLock()
mine.upgradable.acquire(); mine.reading.acquire()
stay, inside = threading.Event(), threading.Barrier(3)

def hold(face):
    with face:
        inside.wait(30)
        stay.wait(30)

start(hold, mine.reading); start(hold, theirs.writing)
inside.wait(30)
start(lambda: theirs.reading.acquire())
until(lambda: theirs.statistics().waiting == 1)

def loop():
    async def main():
        await tasks.writing.acquire_async()
    asyncio.run(main())

start(loop).join()

def child():
    def other():
        assert not mine.writing.acquire(False) and not mine.upgradable.acquire(False)
        with theirs.writing, tasks.writing:
            pass
    first = start(other)  # whoever looks first
    first.join()
    assert mine.statistics() == (0, True, False, 0)
    with mine.writing:  # who read beside it is not here
        waiter = start(mine.reading.acquire)
        until(lambda: mine.statistics().waiting == 1)
    waiter.join()
    mine.reading.release(); mine.upgradable.release()
    assert mine.statistics() == (1, False, False, 0)
    assert theirs.statistics() == tasks.statistics() == (0, False, False, 0)

in_child(child)
assert mine.statistics() == (1, True, False, 0) and theirs.statistics() == (0, False, True, 1)
stay.set()
""")


def test_forked_child_has_channels_of_its_own_as_they_were() -> None:
    run("""
sender, receiver = channel(2)
casts, listener = broadcast(2)
sender.send("before"); casts.send("before")
others = [start(listener.clone().receive), start(lambda: [receiver.receive() for _ in range(3)])]
until(lambda: receiver.statistics().receiving == 1)

def child():
    assert receiver.statistics()[3:] == (0, 0, False) and listener.statistics().receiving == 0
    assert listener.receive() == "before"
    waiter = start(listener.receive)
    until(lambda: listener.statistics().receiving == 1)
    casts.send("mine"); sender.send("mine")
    waiter.join()
    assert receiver.receive() == "mine"
    sender.close(); casts.close()
    assert list(receiver) == list(listener) == []

in_child(child)
sender.send(1); sender.send(2)
for other in others: other.join()
assert listener.receive() == "before"
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


@pytest.mark.parametrize("lock", ["Lock", "RLock"])
def test_forked_child_can_use_a_condition_whoever_held_its_lock_or_waited(lock: str) -> None:
    run(
        f"theirs, mine = Condition({lock}()), Condition({lock}())"
        + """
def wait(condition):
    with condition:
        assert condition.wait()

def hold():
    theirs.acquire()
    held.set()
    done.wait()
    theirs.release()

held, done = threading.Event(), threading.Event()
waiters = [start(wait, condition) for condition in (theirs, mine, mine)]
until(lambda: theirs.statistics().waiting == 1 and mine.statistics().waiting == 2)
holder = start(hold)
held.wait()
mine.acquire()

def child():
    assert theirs.statistics().waiting == mine.statistics().waiting == 0
    assert not theirs.locked() and mine.locked()
    mine.notify_all()  # nobody: who waited is not here
    mine.release()
    for condition in theirs, mine:
        waiter = start(wait, condition)
        until(lambda: condition.statistics().waiting == 1)
        with condition:
            condition.notify()
        waiter.join()
        with condition:
            assert not condition.wait(0.001)

in_child(child)
mine.notify_all()
mine.release()
done.set()
holder.join()
with theirs:
    theirs.notify()
for waiter in waiters:
    waiter.join()
"""
    )


def test_forked_child_finds_barriers_empty_and_latches_as_they_were() -> None:
    run("""
barrier, latch, countdown, gate = Barrier(2), Latch(2), CountdownEvent(1), StartGate()
latch.count_down()
waiters = [start(one.wait) for one in (barrier, latch, countdown, gate)]
until(lambda: barrier.n_waiting == 1)
until(lambda: all(one.statistics().waiting == 1 for one in (latch, countdown, gate)))

def child():
    assert barrier.statistics() == (2, 0, False)
    assert latch.statistics() == (1, 0) and countdown.statistics() == (1, 0)
    assert gate.statistics() == (False, 0)
    others = [start(one.wait) for one in (barrier, latch, countdown, gate)]
    until(lambda: barrier.n_waiting == 1)
    assert barrier.wait() == 1
    latch.count_down()
    countdown.down()
    gate.open()
    for other in others:
        other.join()
    try:
        barrier.wait(0.001)
    except threading.BrokenBarrierError:
        barrier.reset()
    assert not barrier.broken

in_child(child)
assert barrier.wait() == 1
latch.count_down()
countdown.down()
gate.open()
for waiter in waiters:
    waiter.join()
""")


def test_forks_while_parties_meet_leave_every_child_a_barrier_and_a_condition_that_work() -> None:
    run("""
barrier, condition, going = Barrier(2), Condition(), [True]

def meet():
    while going[0]:
        try:
            barrier.wait(10)
        except threading.BrokenBarrierError:
            return
        with condition:
            condition.notify_all()
            condition.wait(0.0001)

threads = [start(meet) for _ in range(2)]

def child():
    assert barrier.n_waiting == 0
    barrier.reset()
    other = start(barrier.wait)
    until(lambda: barrier.n_waiting == 1)
    assert barrier.wait() == 1
    other.join()
    with condition:
        condition.notify_all()
        assert not condition.wait(0.001)

for _ in range(20):
    in_child(child)
going[0] = False
barrier.abort()
for thread in threads:
    thread.join()
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


QUEUES = "from fairlead.sync import LifoQueue, PriorityQueue, Queue\n"


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue"])
def test_forked_child_finds_a_queue_whole_though_others_had_been_granted_something(
    kind: str,
) -> None:
    """The thread that holds a permit or a slot, and not the object yet, exists in the parent only."""
    run(
        QUEUES
        + f"kind = {kind}"
        + """
line, simple = kind(2, fair=True), SimpleQueue()
line.put(0); line.get()
full = kind(1, fair=True)
full.put(1)
start(line.get); start(full.put, 2); start(simple.get); start(full.join)
until(lambda: line.statistics().getting == full.statistics().putting == full.statistics().joining == 1)
until(lambda: simple.statistics().waiting == 1)
sys.setswitchinterval(1000)  # nobody who is woken gets the GIL before the fork
line.put(3); full.get(); simple.put(4)

def child():
    assert line.statistics()[2:5] == (0, 0, 0) and full.statistics()[2:5] == (0, 0, 0)
    assert (line.get_nowait(), simple.get_nowait()) == (3, 4)
    for one, held in ((line, 0), (full, 0)):
        assert one.qsize() == held
        while one.qsize() < one.maxsize:
            one.put_nowait(one.qsize())
        assert one.full()
        getter = start(one.get)
        getter.join()
        one.put_nowait(7)
    waiter = start(simple.get)
    until(lambda: simple.statistics().waiting == 1)
    simple.put(5)
    waiter.join()
    line.shutdown(immediate=True)
    assert line.join(0) in (True, False)

if sys._is_gil_enabled() if hasattr(sys, "_is_gil_enabled") else True:
    in_child(child)
"""
    )


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
    run(
        QUEUES
        + """
empty, full = Queue(), PriorityQueue(1)
full.put(1)

class Last:
    def __del__(self, empty=empty, full=full):
        empty.put_nowait(1); full.shutdown(immediate=True); empty.shutdown()

def impatient():
    while True:
        try:
            empty.get(timeout=0.0005)
        except Exception:
            pass

threads = [start(empty.get), start(full.put, 2), start(full.join), start(impatient)]
until(lambda: empty.statistics().getting and full.statistics().putting and full.statistics().joining)
sys.last = Last()
"""
    )


def test_pickle_for_another_process_is_refused_by_name() -> None:
    run("""
import multiprocessing, pickle
from fairlead.errors import OtherProcess
from fairlead.sync import handle

lock = Lock()
try:
    multiprocessing.get_context("spawn").Process(target=lock.acquire).start()
except OtherProcess as error:
    assert "Lock" in str(error), error
else:
    raise AssertionError("went through")
pickled = pickle.dumps(lock)

def child():
    try:
        pickle.loads(pickled)
    except OtherProcess as error:
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

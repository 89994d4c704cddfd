"""What a fork leaves of the primitives: each a program of its own."""

from __future__ import annotations

import sysconfig

import pytest
from syncprograms import run

pytestmark = pytest.mark.ends_and_free

CHECK = """
import asyncio
from blockingcalls import CALLS
from holdings import HOLDINGS, LIMITER
from waiting import Inside, Thread, main_thread_sleeps

def begin(call, blocked):
    return [Thread(blocked.take) for _ in range(1 if call.alone else 2)]

def all_wait(call, blocked, waiters):
    until(lambda: call.by_others or blocked.waiting() == len(waiters))

def end(call, blocked, waiters):
    for left in range(len(waiters), 0, -1):
        blocked.end()
        until(lambda: not call.each or sum(waiter.is_alive() for waiter in waiters) < left)
        if not call.each:
            break
    assert all(blocked.got(waiter.result()) for waiter in waiters)

def works(call, blocked):
    waiters = begin(call, blocked)
    all_wait(call, blocked, waiters)
    end(call, blocked, waiters)
"""


def run_check(program: str) -> str:
    return run(CHECK + program)


def test_forked_child_finds_no_waiter_and_what_other_threads_held_is_free() -> None:
    run_check("""
for call in CALLS:
    print(call.name, flush=True)
    blocked = call.make(2)
    before = blocked.left()
    waiters = begin(call, blocked)
    until(lambda: blocked.waiting() == len(waiters))

    def child():
        assert blocked.waiting() == 0
        assert call.by_others or blocked.left() == before, (before, blocked.left())
        works(call, blocked)

    in_child(child)
    assert blocked.waiting() == len(waiters)
    end(call, blocked, waiters)
""")


def test_forked_child_holds_what_its_thread_held_and_nothing_else_even_if_a_new_thread_looks_first() -> None:
    run_check("""
for holding in [*HOLDINGS, LIMITER]:
    print(holding.name, flush=True)
    blocked = holding.blocked(mine=True)
    if holding.kind == "RLock":
        blocked.primitive.acquire()
    before = blocked.left()
    others = []
    if holding.taken == "reading":
        others.append(Inside(blocked.primitive.reading).wait())
    waiters = [Thread(blocked.take) for _ in range(2)]
    until(lambda: blocked.waiting() == 2)

    def leave():
        if holding.kind == "RLock":
            blocked.primitive.release()
        blocked.end()

    def child():
        assert not Thread(blocked.wait, timeout=0).result()
        assert blocked.left() == before
        leave()
        assert blocked.got(Thread(blocked.take).result()) and blocked.got(blocked.take())

    in_child(child)
    assert not Thread(blocked.wait, timeout=0).result()
    for other in others:
        other.go()
    leave()
    assert all(blocked.got(waiter.result()) for waiter in waiters)
""")


def test_forked_child_finds_free_what_a_task_of_another_thread_held() -> None:
    run_check("""
for holding in HOLDINGS:
    print(holding.name, flush=True)
    lock = holding.make()
    _, take, _ = holding.calls(lock, holding.taken)

    async def main():
        await take()

    Thread(asyncio.run, main()).result()
    wait, _, undo = holding.calls(lock, holding.wanted)
    in_child(lambda: undo(wait(timeout=20)))
    assert not wait(timeout=0)
""")


@pytest.mark.skipif(
    bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
    reason="a fork may leave the child any object's own lock, a dict's too, handed to a thread it has not",
)
def test_forks_while_threads_are_anywhere_inside_leave_every_child_a_primitive_that_works() -> None:
    run_check("""
for call in CALLS:
    print(call.name, flush=True)
    if call.late is None:
        continue
    blocked, stop = call.make(2), []

    def churn():
        while not stop:
            try:
                if blocked.got(value := blocked.wait(timeout=1e-5)):
                    blocked.undo(value)
            except Exception as error:
                assert isinstance(error, call.late), error

    if call.by_others:
        blocked.end()
    threads = [Thread(churn) for _ in range(2)]

    def child():
        blocked.mend()
        works(call, blocked)

    for _ in range(4):
        in_child(child)
    stop.append(True)
    for thread in threads:
        thread.result()
""")


def test_wait_of_which_a_signal_handler_forks_goes_on_in_both_processes() -> None:
    run_check("""
def fork(*_):
    global child
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        ends_soon()
    else:
        assert os.waitpid(child, 0)[1] == 0
        ends_soon()

def ends_soon():
    def body():
        until(lambda: blocked.waiting() == 1)
        blocked.end()
    start(body)

def send():
    until(lambda: blocked.waiting() == 1 and main_thread_sleeps())
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

signal.signal(signal.SIGUSR1, fork)
for call in CALLS:
    if call.by_others:
        continue
    print(call.name, flush=True)
    blocked = call.make(1)
    sender = start(send)
    assert blocked.got(blocked.take())
    if child == 0:
        os._exit(0)
    sender.join()
""")


def test_forked_child_has_ends_of_channels_of_its_own_that_close_only_there() -> None:
    run("""
sender, receiver = channel(2)
casts, listener = broadcast(2)
sender.send("before"); casts.send("before")

def child():
    sender.send("mine"); casts.send("mine")
    sender.close(); casts.close()
    assert list(receiver) == list(listener) == ["before", "mine"]

in_child(child)
assert sender.statistics()[:3] == (1, 1, 1) and casts.statistics()[1:3] == (1, 1)
assert receiver.receive() == listener.receive() == "before"
""")


def test_forked_child_finds_a_rate_limiter_with_what_was_taken_and_nothing_that_is_due_to_others() -> None:
    run("""
from fairlead.sync.extra import ManualClock
clock = ManualClock()
limiter = RateLimiter(1, burst=2, clock=clock)
assert limiter.acquire(False, n=2)
others = [start(limiter.acquire) for _ in range(2)]
large = RateLimiter(1, burst=3, clock=clock)
assert large.acquire(n=2)
others.append(start(lambda: large.acquire(n=3)))
until(lambda: limiter.statistics().waiting == 2 and large.statistics().waiting == 1)

def child():
    assert large.acquire(False)  # which was kept for the one that waits for three
    assert limiter.delay() == 1
    clock.advance(1)
    assert limiter.acquire(False) and limiter.delay() == 1

in_child(child)
clock.advance(2)
for other in others: other.join()
""")


@pytest.mark.parametrize("lock", ["Lock", "RLock"])
def test_forked_child_finds_free_the_lock_of_a_condition_that_another_thread_held(lock: str) -> None:
    run(
        f"condition = Condition({lock}())"
        + """
def wait():
    with condition:
        assert condition.wait(20)

def hold():
    with condition:
        held.set()
        done.wait()

held, done = threading.Event(), threading.Event()
waiter = start(wait)
until(lambda: condition.statistics().waiting == 1)
holder = start(hold)
held.wait()

def child():
    assert condition.statistics().waiting == 0 and not condition.locked()
    other = start(wait)
    until(lambda: condition.statistics().waiting == 1)
    with condition:
        condition.notify_all()
    other.join()

in_child(child)
done.set()
with condition:
    condition.notify()
waiter.join()
"""
    )


def test_forked_child_is_in_the_section_that_it_was_forked_in_even_if_a_new_thread_looks_first() -> None:
    run("""
from fairlead.sync.extra import Combiner
lock = Combiner()

def child():
    seen = []
    start(lambda: seen.append(lock.statistics()[:2])).join()
    assert seen == [(True, 0)]

def section():
    start(lock.run, int)
    until(lambda: lock.statistics().waiting == 1)
    in_child(child)
    return "whole"

assert lock.run(section) == "whole"
lock.run(int)
""")


def test_forks_while_threads_count_leave_every_child_a_counter_that_works() -> None:
    run("""
from fairlead.sync.extra import StripedCounter
counter, stop = StripedCounter(), []

def count():
    while not stop:
        counter.increment()
        counter.add(2**40)
        counter.sum()

threads = [start(count) for _ in range(3)]

def child():
    before = counter.sum_and_reset()
    assert before > 0
    counter.increment()
    counter.add(2**40)
    assert counter.sum() == 2**40 + 1

until(counter.sum)
for _ in range(10):
    in_child(child)
stop.append(True)
for thread in threads:
    thread.join()
counter.reset()
assert counter.sum() == 0
""")


@pytest.mark.parametrize("kind", ["Queue", "LifoQueue", "PriorityQueue"])
def test_forked_child_finds_a_queue_whole_though_others_had_been_granted_something(
    kind: str,
) -> None:
    """The thread that holds a permit or a slot, and not the object yet, exists in the parent only."""
    run(
        f"kind = {kind}"
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

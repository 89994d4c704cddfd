"""What a fork leaves of the primitives that are no locks: each a program of its own."""

from __future__ import annotations

import pytest
from syncprograms import run

QUEUES = "from fairlead.sync import LifoQueue, PriorityQueue, Queue\n"


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


def test_forks_while_threads_count_leave_every_child_a_counter_that_works() -> None:
    run("""
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


def test_forked_child_finds_a_rate_limiter_as_it_was_without_waiters() -> None:
    run("""
clock = ManualClock()
limiter = RateLimiter(1, burst=2, clock=clock)
assert limiter.acquire(False, n=2)
others = [start(limiter.acquire) for _ in range(2)]
until(lambda: limiter.statistics().waiting == 2)

def child():
    assert limiter.statistics() == (0, 2, 0) and limiter.delay() == 1
    waiter = start(limiter.acquire)
    until(lambda: limiter.statistics().waiting == 1)
    clock.advance(1)
    waiter.join()
    assert limiter.delay() == 1

in_child(child)
assert limiter.statistics() == (0, 2, 2)
clock.advance(2)
for other in others: other.join()
""")


@pytest.mark.parametrize("lock", ["Lock", "RLock"])
def test_forked_child_can_use_a_condition_that_other_threads_held_or_waited_for(lock: str) -> None:
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
    countdown.count_down()
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
countdown.count_down()
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
opened_by_a_child = StartGate(processes=True)
in_child(opened_by_a_child.open)
assert opened_by_a_child.is_open() and opened_by_a_child.wait(0)
""")


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


def test_forked_child_has_a_rendezvous_channel_of_its_own_without_waiters() -> None:
    run("""
sender, receiver = channel(0)
others = [start(sender.send, number) for number in range(2)]
until(lambda: sender.statistics().sending == 2)

def child():
    assert sender.statistics()[:5] == (0, 1, 1, 0, 0)
    other = start(receiver.receive)
    until(lambda: receiver.statistics().receiving == 1)
    sender.send_nowait("mine")
    other.join()
    assert sender.statistics()[:5] == (0, 1, 1, 0, 0)

in_child(child)
assert sorted([receiver.receive(), receiver.receive()]) == [0, 1]
for other in others: other.join()
""")


def test_forked_child_has_an_exchanger_without_waiters() -> None:
    run("""
exchanger = Exchanger()
other = start(exchanger.exchange, "of the parent")
until(lambda: exchanger.statistics().waiting == 1)

def child():
    assert exchanger.statistics() == (0, False)
    mine = start(exchanger.exchange, 1)
    assert exchanger.exchange(2) == 1
    mine.join()

in_child(child)
assert exchanger.exchange("mine") == "of the parent"
other.join()
""")


def test_forked_child_has_a_phaser_with_its_counts_and_one_that_was_just_advancing_is_terminated() -> None:
    run("""
phaser, go_on, inside = Phaser(3), threading.Event(), threading.Event()
other = start(phaser.arrive_and_wait)
until(lambda: phaser.statistics().waiting == 1)
busy = Phaser(1, on_advance=lambda *_: inside.set() or go_on.wait(30) and None)
last = start(busy.arrive)
inside.wait(30)

def child():
    assert phaser.statistics() == (0, 3, 1, 0, False)
    mine = start(phaser.arrive_and_wait)
    assert phaser.arrive_and_wait() == 1
    mine.join()
    assert busy.terminated and busy.register() is None

in_child(child)
go_on.set()
last.join()
assert busy.statistics() == (1, 1, 0, 0, False)
assert phaser.arrive() == 0 and phaser.arrive() == 0
other.join()

forking = Phaser(1, on_advance=lambda *_: in_child(lambda: None))
assert forking.arrive() == 0 and forking.phase == 1
""")


@pytest.mark.parametrize(
    ("made", "wait", "waiting", "wake"),
    [
        ("Barrier(2)", "one.wait()", "one.n_waiting", "one.wait()"),
        ("Condition(Lock())", "one.acquire() and one.wait()", "one.statistics().waiting", "notify(one)"),
        ("Event()", "one.wait()", "one.statistics().waiting", "one.set()"),
        (
            "Event()",
            "select(one.wait_async(), Event().wait_async())",
            "one.statistics().waiting",
            "one.set()",
        ),
        ("Queue()", "one.get()", "one.statistics().getting", "one.put(1)"),
    ],
    ids=["barrier", "condition", "event", "select", "queue"],
)
def test_signal_handler_that_forks_leaves_a_waiter_in_the_child_too(
    made: str, wait: str, waiting: str, wake: str
) -> None:
    run(
        f"one = {made}"
        + f"""
children = []

def notify(condition):
    with condition:
        condition.notify()

def wake_it():
    until(lambda: {waiting} == 1)
    {wake}

def fork(*_):
    children.append(os.fork())
    if children == [0]:
        signal.alarm(30)
        start(wake_it)

def interrupt():
    until(lambda: {waiting} == 1)
    os.kill(os.getpid(), signal.SIGUSR1)
    until(lambda: children)
    wake_it()

signal.signal(signal.SIGUSR1, fork)
waker = start(interrupt)
{wait}
if children == [0]:
    os._exit(0)
waker.join()
assert os.waitpid(children[0], 0)[1] == 0
"""
    )

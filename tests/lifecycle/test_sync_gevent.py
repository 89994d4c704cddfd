"""gevent's greenlets as waiters and holders: each a program of its own, because a hub belongs to its thread
for good."""

from __future__ import annotations

import sys

import pytest
import syncprograms

pytestmark = pytest.mark.ends_and_free

pytest.importorskip("gevent", exc_type=ImportError, reason="gevent has no wheel for this interpreter")
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    pytest.skip("gevent needs a GIL", allow_module_level=True)


def run(program: str, first: str = "") -> None:
    syncprograms.run(program, greenlets=True, first=first)


CHECK = """
from blockingcalls import CALLS, EXTRA
from holdings import HOLDINGS, LIMITER
from waiting import Thread

CALLS = [call for call in [*CALLS, *EXTRA] if call.greenlets]

def waiter(blocked, behind=0):
    greenlet = gevent.spawn(blocked.take)
    until(lambda: blocked.waiting() == behind + 1)
    return greenlet
"""


def run_check(program: str) -> None:
    run(CHECK + program)


def test_greenlet_waits_while_others_run_and_goes_on_when_a_greenlet_or_a_thread_lets_it() -> None:
    run_check("""
for call in CALLS:
    print(call.name, flush=True)
    for end in lambda: blocked.end(), lambda: Thread(blocked.end).result():
        blocked = call.make(1)
        waits = waiter(blocked)
        end()
        assert blocked.got(waits.get(timeout=40))
        assert blocked.waiting() == 0
        if call.stays:
            blocked = call.make(1)
            blocked.end()
            assert blocked.got(blocked.take())
""")


def test_greenlet_that_times_out_or_is_killed_leaves_nothing_behind() -> None:
    run_check("""
class OutOfTime(Exception):
    pass

def times_out():
    try:
        assert blocked.wait(timeout=0.001) == call.late
    except Exception as error:
        assert call.late and isinstance(error, call.late), error

def is_killed():
    killed = waiter(blocked)
    killed.kill()
    assert isinstance(killed.value, gevent.GreenletExit)

def is_interrupted(exception=False):
    try:
        with gevent.Timeout(0.001, exception):
            blocked.wait()
            raise AssertionError("it did not wait")
    except OutOfTime:
        pass

for call in CALLS:
    print(call.name, flush=True)
    blocked = call.make(1)
    before = blocked.left()
    for leave in times_out, is_killed, is_interrupted, lambda: is_interrupted(OutOfTime):
        if leave is times_out and call.late is None:
            continue
        leave()
        assert blocked.left() == before and blocked.waiting() == 0, leave
    waits = waiter(blocked)
    blocked.end()
    assert blocked.got(waits.get(timeout=40))
""")


def test_greenlet_that_was_granted_and_is_killed_before_it_resumes_passes_that_on() -> None:
    run_check("""
for call in CALLS:
    if call.alone:
        continue
    print(call.name, flush=True)
    blocked = call.make(2)
    first, second = waiter(blocked), waiter(blocked, 1)
    blocked.end()
    first.kill()
    if call.final:
        blocked.end()
    assert blocked.got(second.get(timeout=40))
    assert blocked.waiting() == 0
""")


def test_greenlets_of_one_thread_hold_and_wait_each_for_itself() -> None:
    run_check("""
def is_refused(release):
    try:
        release()
    except NotHeldError:
        return True

def hold(holding):
    blocked = holding.blocked(mine=True)
    assert not gevent.spawn(blocked.wait, timeout=0).get()
    if holding.kind in ("RLock", "RWLock", "CapacityLimiter"):
        before = blocked.left()
        assert gevent.spawn(is_refused, blocked.end).get() and blocked.left() == before
    waits = waiter(blocked)
    gevent.sleep(0)
    blocked.end()
    assert blocked.got(waits.get(timeout=40))

for holding in [*HOLDINGS, LIMITER]:
    print(holding.name, flush=True)
    hold(holding)
    gevent.spawn(hold, holding).get(timeout=40)
    if holding.taken == "reading":
        most = []
        def read():
            with holding.block(lock, "reading"), lock.reading:
                most.append(lock.statistics().readers)
                gevent.sleep(0)
        lock = holding.make()
        gevent.joinall([gevent.spawn(read) for _ in range(3)], raise_error=True)
        assert most == [1, 2, 3]
    lock, inside = holding.make(), [0]
    def body():
        for _ in range(20):
            with holding.block(lock, holding.taken if holding.taken != "reading" else "writing"):
                seen = inside[0]
                gevent.sleep(0)
                inside[0] = seen + 1
    gevent.joinall([gevent.spawn(body) for _ in range(4)], raise_error=True)
    assert inside == [80]
""")


def test_greenlets_wait_for_a_rate_by_a_timer_of_the_hub() -> None:
    run("""
real = RateLimiter(1000)
gevent.joinall([gevent.spawn(real.acquire) for _ in range(5)], raise_error=True)
assert real.statistics().waiting == 0
hour = RateLimiter(1, 3600)
assert hour.acquire() and not hour.acquire(timeout=3599)
with gevent.Timeout(0.001, False):
    hour.acquire()
    raise AssertionError
assert hour.statistics().waiting == 0
""")


def test_greenlet_that_is_killed_at_a_phaser_has_arrived_and_at_a_barrier_breaks_it() -> None:
    run("""
from fairlead.sync.extra import Phaser
phaser, barrier = Phaser(2), Barrier(3)
killed = gevent.spawn(phaser.arrive_and_wait)
until(lambda: phaser.statistics().waiting == 1)
killed.kill()
assert phaser.statistics() == (0, 2, 1, 0, False)
assert phaser.arrive() == 0
def breaks():
    try:
        barrier.wait()
    except threading.BrokenBarrierError:
        return True
killed, other = [gevent.spawn(breaks) for _ in range(2)]
until(lambda: barrier.n_waiting == 2)
killed.kill()
assert other.get(timeout=40)
""")


def test_kill_and_time_out_that_are_too_late_for_a_meeting_come_at_the_next_switch() -> None:
    run("""
sender, receiver = channel(0)
told = []
def send():
    sender.send("late")
    told.append("sent")
    gevent.sleep(100)
killed = gevent.spawn(send)
until(lambda: sender.statistics().sending == 1)
killed.kill(block=False)
assert receiver.receive_nowait() == "late"
killed.join()
assert told == ["sent"] and isinstance(killed.value, gevent.GreenletExit)

def within():
    with gevent.Timeout(3600) as limit:
        limits.append(limit)
        sender.send("in time")
    gevent.sleep(0)
    return True
limits = []
late = gevent.spawn(within)
until(lambda: sender.statistics().sending == 1)
gevent.get_hub().loop.run_callback(late.throw, limits[0])
assert receiver.receive_nowait() == "in time"
assert late.get() is True
""")


def test_greenlets_and_threads_and_tasks_share() -> None:
    run("""
import asyncio
lock, queue, inside = Lock(), SimpleQueue(), [0]
def body(pause):
    for _ in range(100):
        with lock:
            seen = inside[0]
            pause()
            inside[0] = seen + 1
    queue.put(1)
async def task():
    for _ in range(100):
        async with lock:
            seen = inside[0]
            await asyncio.sleep(0)
            inside[0] = seen + 1
    queue.put(1)
threads = [
    threading.Thread(target=body, args=(lambda: None,)),
    threading.Thread(target=lambda: asyncio.run(task())),
]
for thread in threads: thread.start()
greenlets = [gevent.spawn(body, lambda: gevent.sleep(0)) for _ in range(2)]
for _ in range(4): queue.get(timeout=40)
assert inside == [400]
""")


def test_stale_wake_up_does_not_disturb_a_greenlet_that_went_on() -> None:
    run("""
lock = Lock(fair=True)
def impatient():
    for _ in range(200):
        if lock.acquire(timeout=0.0001):
            gevent.sleep(0)
            lock.release()
        before = len(seen)
        gevent.sleep(0.0001)
        seen.append(before)
seen = []
gevent.joinall([gevent.spawn(impatient) for _ in range(4)], raise_error=True)
assert len(seen) == 800 and lock.statistics()[:2] == (False, 0)
""")


def test_primitives_work_with_threading_patched_by_gevent() -> None:
    run(
        """
lock, queue, order = Lock(), Queue(2), []
def body(number):
    for _ in range(20):
        with lock:
            order.append(number)
            gevent.sleep(0)
    queue.put(number)
threads = [threading.Thread(target=body, args=(number,)) for number in range(4)]
for thread in threads: thread.start()
assert sorted(queue.get() for _ in threads) == [0, 1, 2, 3]
for thread in threads: thread.join()
assert len(order) == 80 and not lock.locked()
real = gevent.get_hub().threadpool.apply(lambda: (lock.acquire(), lock.release()))
assert real == (True, None)
""",
        first="from gevent import monkey; monkey.patch_all()\n",
    )


def test_waits_of_greenlets_are_seen_with_their_stacks() -> None:
    run("""
lock = RLock()
def want():
    with lock:
        pass
def hold():
    with lock:
        waiting = gevent.spawn(want)
        until(waits)
        [wait] = waits()
        assert wait.waiter.is_task and wait.waiter.task.startswith("Greenlet"), wait
        assert "want" in [place.name for place in wait.waiter.stack]
        [owner] = wait.owners
        assert owner.is_task and owner.task == str(gevent.getcurrent().name), owner
    waiting.join()
gevent.spawn(hold).get()
assert waits() == ()
""")


def test_notify_all_wakes_every_greenlet_and_thread() -> None:
    run("""
condition, woken = Condition(), []
def wait():
    with condition:
        assert condition.wait()
        woken.append(1)
greenlets = [gevent.spawn(wait) for _ in range(3)]
until(lambda: condition.statistics().waiting == 3)
start(wait)
until(lambda: condition.statistics().waiting == 4)
with condition:
    condition.notify_all()
gevent.joinall(greenlets, timeout=40, raise_error=True)
until(lambda: len(woken) == 4)
""")


def test_first_greenlet_of_a_thread_is_the_thread_also_before_there_is_a_hub() -> None:
    run("""
lock = RLock()
lock.acquire()
gevent.sleep(0)
with lock:
    lock.release()
assert not lock.locked()
""")


def test_rlock_of_a_condition_is_the_threads_again_after_the_wait_of_its_first_greenlet() -> None:
    run("""
condition = Condition(RLock())
def notify():
    with condition:
        condition.notify()
greenlet = gevent.spawn(notify)
with condition:
    assert condition.wait(40)
    assert condition.wait(0.01) is False
    with condition:
        pass
assert not condition.locked()
greenlet.get()
""")


def test_greenlet_that_ended_as_holder_is_reported() -> None:
    run_check("""
warnings.simplefilter("error")
for holding in [*HOLDINGS, LIMITER]:
    if holding.kind not in ("RLock", "RWLock", "CapacityLimiter"):
        continue
    print(holding.name, flush=True)
    lock = holding.make()
    gevent.spawn(holding.calls(lock, holding.taken)[0]).get(timeout=40)
    try:
        holding.calls(lock, holding.wanted)[0]()
    except OwnerDeathWarning as warning:
        assert "has ended" in str(warning)
    else:
        raise AssertionError
""")


def test_rlock_that_the_hub_would_wait_for_is_reported() -> None:
    run("""
lock, seen = RLock(), []
def in_the_hub():
    try:
        lock.acquire()
    except DeadlockError as error:
        seen.append(error)
def body():
    with lock:
        gevent.get_hub().loop.run_callback(in_the_hub)
        until(lambda: seen)
gevent.spawn(body).get(timeout=40)
assert not lock.locked()
""")


def test_hub_comes_to_its_end_after_its_greenlets_have_waited() -> None:
    """gevent.wait() returns when nothing is left that could wake a greenlet."""
    run("""
lock = Lock()
lock.acquire()
waiters = [gevent.spawn(lock.acquire, True, timeout) for timeout in (0.001, None)]
until(lambda: lock.statistics().waiting == 2)
assert waiters[0].get(timeout=40) is False
lock.release()
assert waiters[1].get(timeout=40) is True
assert gevent.wait(timeout=40) is True
""")

"""gevent's greenlets as holders of locks: each a program of its own."""

from __future__ import annotations

import sys

import pytest
from greenletprograms import run

pytest.importorskip("gevent", exc_type=ImportError, reason="gevent has no wheel for this interpreter")
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    pytest.skip("gevent needs a GIL", allow_module_level=True)


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
def test_greenlets_of_one_thread_wait_while_others_run(fair: bool) -> None:
    run(
        f"lock = Lock(fair={fair})"
        + """
inside = [0]
def body():
    for _ in range(50):
        with lock:
            seen = inside[0]
            gevent.sleep(0)
            inside[0] = seen + 1
gevent.joinall([gevent.spawn(body) for _ in range(5)], raise_error=True)
assert inside == [250] and lock.statistics()[:2] == (False, 0)
"""
    )


def test_greenlets_take_turns_at_a_stamped_lock() -> None:
    run("""
lock, values, looked = StampedLock(), [0, 0], [0]
def write():
    for _ in range(10):
        with lock.writing:
            values[0] += 1
            gevent.sleep(0)
            values[1] += 1
def look():
    while values[1] < 20:
        stamp = lock.optimistic_read()
        seen = values[0]
        gevent.sleep(0)
        if lock.validate(stamp):
            assert seen == values[1]
            looked[0] += 1
gevent.joinall([gevent.spawn(body) for body in (write, look, write)], raise_error=True)
assert values == [20, 20] and lock.statistics() == (0, False, 0)
""")


def test_greenlets_read_together_and_write_alone_and_are_holders_of_their_own() -> None:
    run("""
lock, value, most = RWLock(), [0, 0], [0]
def reader():
    for _ in range(20):
        with lock.reading, lock.reading:
            seen = value[0]
            most[0] = max(most[0], lock.statistics().readers)
            gevent.sleep(0)
            assert value == [seen, seen]
        gevent.sleep(0)
def writer():
    for _ in range(20):
        with lock.upgradable:
            gevent.sleep(0)
            with lock.writing:
                value[0] += 1
                gevent.sleep(0)
                value[1] += 1
def other():
    try:
        lock.reading.release()
    except NotHeldError:
        return
    raise AssertionError
gevent.joinall([gevent.spawn(one) for one in (reader, writer, reader, writer, reader)], raise_error=True)
assert value == [40, 40] and most[0] > 1
with lock.reading:
    gevent.spawn(other).get()
with lock.writing:
    killed = gevent.spawn(lock.reading.acquire)
    until(lambda: lock.statistics().waiting == 1)
    killed.kill()
    with gevent.Timeout(0.01, False):
        gevent.spawn(lock.reading.acquire).get()
        raise AssertionError
assert lock.statistics()[1:] == (False, False, 0)
""")


def test_rlock_is_held_by_a_greenlet_and_not_by_its_thread() -> None:
    run("""
lock, order = RLock(), []
def body(number):
    for _ in range(20):
        with lock, lock:
            order.append(number)
            gevent.sleep(0)
            assert lock._is_owned() and lock._recursion_count() == 2
            order.append(number)
        assert not lock._is_owned()
        gevent.sleep(0)
gevent.joinall([gevent.spawn(body, number) for number in range(4)], raise_error=True)
assert len(order) == 160 and order[::2] == order[1::2]
lock.acquire()  # in the thread's first greenlet, which is the thread
def other():
    assert not lock.acquire(False) and not lock.acquire(timeout=0.01)
    try:
        lock.release()
    except NotHeldError:
        return "refused"
assert gevent.spawn(other).get(timeout=40) == "refused"
has, leave = gevent.event.Event(), gevent.event.Event()
def stay():
    with lock:
        has.set()
        leave.wait()
waiter = gevent.spawn(stay)
until(lambda: lock.statistics().waiting == 1)
lock.release()
assert has.wait(timeout=40) and lock.locked()
killed = gevent.spawn(lock.acquire)
until(lambda: lock.statistics().waiting == 1)
killed.kill()
assert lock.statistics() == (True, 1, 0, False)
leave.set()
waiter.join()
assert not lock.locked()
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


def test_condition_and_barrier_block_only_the_greenlet_that_waits() -> None:
    run("""
for lock in Lock(), RLock():
    condition, woken = Condition(lock), []
    def wait():
        with condition:
            assert condition.wait()
            woken.append(1)
    def wait_in_vain():
        with condition:
            assert not condition.wait(0.01) and not condition.wait(0)
            assert lock.locked()
    waiters = [gevent.spawn(wait) for _ in range(2)]
    until(lambda: condition.statistics().waiting == 2)
    gevent.spawn(wait_in_vain).get(timeout=40)
    with condition:
        condition.notify()
    until(lambda: woken == [1])
    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: condition.statistics().waiting == 2)
    with condition:
        condition.notify_all()
    gevent.joinall(waiters, raise_error=True)
    thread.join()
    assert woken == [1, 1, 1] and not lock.locked()
    killed = gevent.spawn(wait)
    until(lambda: condition.statistics().waiting == 1)
    killed.kill()
    assert condition.statistics().waiting == 0 and not lock.locked()

barrier = Barrier(3)
parties = [gevent.spawn(barrier.wait) for _ in range(2)]
until(lambda: barrier.n_waiting == 2)
assert barrier.wait() == 2
assert sorted(party.get(timeout=40) for party in parties) == [0, 1]
def wait_for_nobody():
    try:
        barrier.wait()
    except threading.BrokenBarrierError:
        return "broken"
late = gevent.spawn(wait_for_nobody)
until(lambda: barrier.n_waiting == 1)
try:
    barrier.wait(0.01)
except threading.BrokenBarrierError:
    pass
else:
    raise AssertionError
assert late.get(timeout=40) == "broken"
""")


@pytest.mark.parametrize("kind", ["RLock", "RWLock"])
def test_greenlet_that_ended_as_a_holder_is_reported_to_waiters(kind: str) -> None:
    run(
        f"lock = {kind}()"
        + """
taken = lock.writing if isinstance(lock, RWLock) else lock
gevent.spawn(taken.acquire).join()
warnings.simplefilter("error")
def wait():
    try:
        taken.acquire(timeout=40)
    except OwnerDeathWarning as told:
        return "a task that has ended" in str(told)
assert wait() and gevent.spawn(wait).get(timeout=40)
assert lock.statistics()[-1 if isinstance(lock, RWLock) else 2] == 0
"""
    )

"""gevent's greenlets as waiters: each a program of its own, because a hub belongs to its thread for good."""

from __future__ import annotations

import sys

import pytest
from greenletprograms import run

pytest.importorskip("gevent", exc_type=ImportError, reason="gevent has no wheel for this interpreter")
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    pytest.skip("gevent needs a GIL", allow_module_level=True)


def test_greenlets_wait_for_a_rate_while_others_run_and_time_out() -> None:
    run("""
clock = ManualClock()
limiter, log = RateLimiter(1, clock=clock), []
assert limiter.acquire()
def body(name):
    assert limiter.acquire()
    log.append(name)
greenlets = [gevent.spawn(body, name) for name in "abc"]
gevent.sleep(0)
assert limiter.statistics().waiting == 3 and limiter.acquire(timeout=3.9) is False
greenlets[0].kill()
clock.advance(1)
greenlets[1].join()
clock.advance(1)
gevent.joinall(greenlets)
assert log == ["b", "c"]
real = RateLimiter(1000)  # by a timer of the hub
gevent.joinall([gevent.spawn(real.acquire) for _ in range(5)], raise_error=True)
assert real.statistics().waiting == 0
hour = RateLimiter(1, 3600)
assert hour.acquire() and not hour.acquire(timeout=3599)
with gevent.Timeout(0.001, False):
    hour.acquire()
    raise AssertionError
assert hour.statistics().waiting == 0
""")


def test_greenlets_send_and_receive_while_others_run() -> None:
    run("""
sender, receiver = channel(1)
casts, listener = broadcast(2)
def send():
    with sender:
        for number in range(20):
            sender.send(number)
def listen(end):
    return list(end)
listeners = [gevent.spawn(listen, end) for end in (listener, listener.clone())]
got = gevent.spawn(list, receiver)
until(lambda: listener.statistics().receiving == 2)
gevent.spawn(send)
assert got.get(timeout=40) == list(range(20))
casts.send("a")
casts.send("b")
casts.close()
for one in listeners:
    assert one.get(timeout=40) == ["a", "b"]
""")


def test_greenlets_select_while_others_run() -> None:
    run("""
event, queue, lock = Event(), Queue(), Lock()
lock.acquire()
chosen = gevent.spawn(lambda: select(event.wait_async(), queue.get_async(), lock.acquire_async()))
until(lambda: event.statistics().waiting == 1 and queue.statistics().getting == 1)
gevent.spawn(queue.put, 1)
assert chosen.get(timeout=40) == (1, 1)
assert select(event.wait_async(), lock.acquire_async(), timeout=0.01) is None
killed = gevent.spawn(lambda: select(event.wait_async(), lock.acquire_async()))
until(lambda: lock.statistics().waiting == 1)
killed.kill()
assert event.statistics().waiting == queue.statistics().getting == lock.statistics().waiting == 0
""")


def test_greenlets_and_threads_and_tasks_share() -> None:
    run("""
import asyncio
lock, queue, event, inside = Lock(), SimpleQueue(), Event(), [0]
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
waiter = gevent.spawn(event.wait)
for _ in range(4): queue.get(timeout=40)
assert inside == [400]
threads[0].join()
other = threading.Thread(target=event.set)
until(lambda: event.statistics().waiting == 1)
other.start()
assert waiter.get(timeout=40) is True
""")


def test_times_out_is_killed_and_interrupted_without_taking_anything() -> None:
    run("""
lock, queue = Lock(), SimpleQueue()
lock.acquire()
assert lock.acquire(timeout=0.01) is False
try:
    queue.get(timeout=0.01)
except QueueEmpty:
    pass
else:
    raise AssertionError
with gevent.Timeout(0.01, False):
    lock.acquire()
    raise AssertionError("acquired")
try:
    with gevent.Timeout(0.01):
        with lock: pass
except gevent.Timeout:
    pass
killed = gevent.spawn(lock.acquire)
until(lambda: lock.statistics().waiting == 1)
killed.kill()
assert isinstance(killed.value, gevent.GreenletExit)
assert lock.statistics()[:2] == (True, 0)
lock.release()
assert lock.acquire(False)
""")


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
def test_grant_to_a_greenlet_that_is_killed_before_it_resumes_is_passed_on(fair: bool) -> None:
    run(
        f"lock = Lock(fair={fair})"
        + """
lock.acquire()
first, second = gevent.spawn(lock.acquire), gevent.spawn(lock.acquire)
until(lambda: lock.statistics().waiting == 2)
lock.release()
first.kill()
assert second.get(timeout=40) is True
assert lock.statistics()[:2] == (True, 0)
"""
    )


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


def test_thread_without_a_hub_waits_as_a_thread() -> None:
    run("""
lock = Lock()
lock.acquire()
taken = []
thread = threading.Thread(target=lambda: taken.append(lock.acquire(timeout=40)))
thread.start()
until(lambda: lock.statistics().waiting == 1)
lock.release()
thread.join()
assert taken == [True]
""")


def test_limiter_lends_to_greenlets() -> None:
    run("""
limiter, most, inside = CapacityLimiter(2), [0], [0]
def body():
    for _ in range(10):
        with limiter:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            gevent.sleep(0)
            inside[0] -= 1
gevent.joinall([gevent.spawn(body) for _ in range(5)], raise_error=True)
assert most == [2] and limiter.borrowed_tokens == 0
""")


def test_greenlets_meet_in_a_channel_without_room_and_a_kill_that_is_too_late_comes_at_the_next_switch() -> (
    None
):
    run("""
sender, receiver = channel(0)
got = gevent.spawn(lambda: [receiver.receive() for _ in range(3)])
for number in range(3):
    sender.send(number)
assert got.get() == [0, 1, 2]
for call, args, error in (sender.send, (1, True, 0.01), QueueFull), (receiver.receive, (1, 0.01), QueueEmpty):
    try:
        call(*args)
    except error:
        pass
    else:
        raise AssertionError
assert sender.statistics()[:5] == (0, 1, 1, 0, 0)

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

killed = gevent.spawn(receiver.receive)
until(lambda: receiver.statistics().receiving == 1)
sender.send_nowait("for the next")
killed.kill()
assert receiver.receive() == "for the next"

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


def test_greenlets_exchange_and_one_that_is_killed_or_late_keeps_its_item() -> None:
    run("""
exchanger = Exchanger()
other = gevent.spawn(exchanger.exchange, "a")
assert exchanger.exchange("b") == "a" and other.get() == "b"
try:
    exchanger.exchange("c", timeout=0.01)
except WaitTimeoutError:
    pass
else:
    raise AssertionError
killed = gevent.spawn(exchanger.exchange, "d")
until(lambda: exchanger.statistics().waiting == 1)
killed.kill()
assert exchanger.statistics() == (0, False)
thread = threading.Thread(target=exchanger.exchange, args=("of a thread",))
thread.start()
assert exchanger.exchange("of a greenlet") == "of a thread"
thread.join()
""")


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


def test_greenlets_are_parties_of_a_phaser_and_one_that_is_killed_has_arrived() -> None:
    run("""
phaser = Phaser(3)
others = [gevent.spawn(phaser.arrive_and_wait) for _ in range(2)]
assert phaser.arrive_and_wait() == 1
assert [other.get() for other in others] == [1, 1]
killed = gevent.spawn(phaser.arrive_and_wait)
until(lambda: phaser.statistics().waiting == 1)
killed.kill()
assert phaser.statistics() == (1, 3, 1, 0, False)
try:
    phaser.arrive_and_wait(timeout=0.01)
except WaitTimeoutError:
    pass
else:
    raise AssertionError
watching = gevent.spawn(phaser.wait_phase, 1)
until(lambda: phaser.statistics().waiting == 1)
assert phaser.arrive() == 1 and watching.get() == 2
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

"""What a fork leaves of locks, readers-writer locks and sections: each a program of its own."""

from __future__ import annotations

import pytest
from syncprograms import run


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


def test_forked_child_holds_a_readers_writer_lock_as_its_thread_did_and_no_other_does() -> None:
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


def test_forked_child_holds_a_stamped_lock_as_its_thread_did_and_no_other_does() -> None:
    run("""
from fairlead.errors import NotHeldError
mine, theirs = StampedLock(), StampedLock()
stamp, looked, theirs_too = mine.acquire_read(), mine.optimistic_read(), []
start(lambda: theirs_too.append((mine.acquire_read(), theirs.acquire_write()))).join()
start(lambda: theirs.acquire_read())
until(lambda: theirs.statistics().waiting == 1)

def child():
    seen = []
    start(lambda: seen.append(mine.acquire_write(False))).join()  # whoever looks first
    assert seen == [0] and mine.validate(stamp) and mine.validate(looked)
    assert mine.statistics() == (1, False, 0) and theirs.statistics() == (0, False, 0)
    for lock, gone in zip((mine, theirs), theirs_too[0]):
        assert not lock.validate(gone)
        try:
            lock.release(gone)
        except NotHeldError:
            pass
        else:
            raise AssertionError
    writes = mine.try_convert_to_write(stamp)
    assert writes and not mine.validate(looked)
    mine.release(writes)
    now = theirs.optimistic_read()
    assert now and theirs.validate(now)
    with theirs.writing:
        pass
    assert not theirs.validate(now)

in_child(child)
assert mine.statistics() == (2, False, 0) and theirs.statistics() == (0, True, 1)
mine.release(stamp)
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


@pytest.mark.parametrize("kind", ["Lock", "RLock"])
def test_forked_child_holds_its_own_lock_even_if_a_new_thread_checks_first(kind: str) -> None:
    run(
        f"mine = {kind}()"
        + """
mine.acquire()

def child():
    got = []
    start(lambda: got.append(mine.acquire(False))).join()
    assert got == [False]
    mine.release()
    start(lambda: got.append(mine.acquire(False))).join()
    assert got == [False, True]

in_child(child)
"""
    )


def test_forked_child_is_in_its_own_section_even_if_a_new_thread_checks_first() -> None:
    run("""
from fairlead.sync import CombiningLock
mine = CombiningLock()

def child():
    seen = []
    start(lambda: seen.append(mine.locked())).join()
    assert seen == [True]

mine.run(lambda: in_child(child))
mine.run(int)
""")

"""StampedLock: looking without the lock, stamps that are good and those that are not, who may be inside."""

from __future__ import annotations

import threading

import pytest
from waiting import Inside, Thread, run, until, waiting_task

from fairlead.errors import NotHeldError, UsageError
from fairlead.sync.extra import StampedLock

pytestmark = pytest.mark.ends_and_free


def test_optimistic_reader_learns_whether_a_write_began() -> None:
    lock = StampedLock()
    stamp = lock.optimistic_read()
    assert stamp > 0
    with lock.reading:
        assert lock.validate(stamp)  # reading changes nothing
    assert lock.validate(stamp)
    with lock.writing as writing:
        assert lock.optimistic_read() == 0
        assert not lock.validate(stamp)
        assert lock.validate(writing)
    assert not lock.validate(stamp)
    assert not lock.validate(writing)
    assert lock.validate(lock.optimistic_read())
    assert lock.validate(0) is False
    assert lock.statistics() == (0, False, 0)


def test_validated_optimistic_read_never_sees_half_a_write() -> None:
    """Threads that change two values one after another, and some that look at both."""
    lock, values, seen = StampedLock(), [0, 0], [0]
    done = threading.Event()

    def write() -> None:
        for _ in range(300):
            with lock.writing:
                values[0] += 1
                values[1] += 1

    def look() -> None:
        while not done.is_set() or not seen[0]:
            stamp = lock.optimistic_read()
            first, second = values
            if lock.validate(stamp):
                assert first == second
                seen[0] += 1

    looking, writing = [Thread(look) for _ in range(2)], [Thread(write) for _ in range(2)]
    for thread in writing:
        thread.result()
    done.set()
    for thread in looking:
        thread.result()
    assert values == [600, 600]


def test_conversions_need_no_wait_or_return_nothing() -> None:
    lock = StampedLock()
    looked = lock.optimistic_read()
    reads = lock.try_convert_to_read(looked)
    assert lock.statistics() == (1, False, 0)
    assert lock.try_convert_to_read(reads) == reads
    writes = lock.try_convert_to_write(reads)
    assert lock.statistics() == (0, True, 0)
    assert lock.try_convert_to_write(writes) == writes
    assert lock.try_convert_to_write(looked) == 0
    assert lock.try_convert_to_read(0) == 0
    reads = lock.try_convert_to_read(writes)
    other = lock.acquire_read()
    assert lock.try_convert_to_write(reads) == 0  # not alone
    assert lock.validate(reads)
    looked = lock.try_convert_to_optimistic_read(other)
    assert lock.try_convert_to_optimistic_read(looked) == looked
    assert lock.try_convert_to_write(looked) == 0  # somebody reads
    lock.release(reads)
    writes = lock.try_convert_to_write(looked)
    assert writes > 0
    assert lock.try_convert_to_optimistic_read(looked) == 0
    assert lock.validate(lock.try_convert_to_optimistic_read(writes))
    assert lock.statistics() == (0, False, 0)


def test_stamps_that_hold_nothing_are_refused() -> None:
    lock = StampedLock()
    stamp, second = lock.acquire_read(), lock.acquire_read()
    lock.release(stamp)
    for wrong in (stamp, 0, lock.optimistic_read()):
        with pytest.raises(NotHeldError, match="holds nothing"):
            lock.release(wrong)  # though another reads
    with pytest.raises(NotHeldError, match="holds nothing"):
        lock.try_convert_to_write(stamp)
    assert lock.acquire_write(timeout=0) == 0
    assert Thread(lock.release, second).result() is None  # any thread may
    visit = lock.reading
    with visit, pytest.raises(UsageError, match="entered before"), visit:
        pass
    with pytest.raises(NotHeldError):
        lock.reading.__exit__()
    assert lock.statistics() == (0, False, 0)


def test_waiters_are_served_in_order_and_readers_that_follow_each_other_together() -> None:
    lock, log = StampedLock(), []  # type: ignore[var-annotated]
    writing = lock.acquire_write()
    inside = []
    for at, (name, block) in enumerate(
        [("r", lock.reading), ("s", lock.reading), ("W", lock.writing), ("t", lock.reading)]
    ):
        inside.append(Inside(block, log, name))
        until(lambda at=at: lock.statistics().waiting == at + 1)  # type: ignore[misc]
    lock.release(writing)
    for reader in inside[:2]:
        reader.wait()
    assert (sorted(log), lock.statistics()) == (["r", "s"], (2, False, 2))
    inside[0].go()
    inside[1].go()
    inside[2].wait()
    assert lock.statistics() == (0, True, 1)
    inside[2].go()
    inside[3].wait().go()
    assert log[2:] == ["W", "t"]


def test_granted_then_cancelled_before_it_resumes_passes_on_and_has_written_nothing() -> None:
    async def main() -> None:
        lock = StampedLock()
        looked = lock.optimistic_read()
        stamp = lock.acquire_read()
        tasks = [await waiting_task(lock, wait(lock)) for _ in range(2)]
        lock.release(stamp)
        assert lock.statistics() == (0, True, 1)
        tasks[0].cancel()
        assert lock.validate(looked)
        await tasks[1]
        assert tasks[0].cancelled()
        assert not lock.validate(looked)
        assert lock.statistics() == (0, False, 0)

    async def wait(lock: StampedLock) -> None:
        async with lock.writing:
            pass

    run(main())


def test_conversion_and_release_of_one_stamp_at_once_leave_the_lock_free() -> None:
    lock, rounds = StampedLock(), 300

    async def enter() -> list[int]:
        return [await lock.acquire_read_async() for _ in range(rounds)]

    stamps = run(enter())
    together = threading.Barrier(2)

    def convert() -> list[int]:
        together.wait(30)
        got = []
        for stamp in stamps:
            try:
                got.append(lock.try_convert_to_write(stamp))
            except NotHeldError:
                got.append(0)
        return got

    converting = Thread(convert)
    together.wait(30)
    left = []
    for stamp in stamps:
        try:
            lock.release(stamp)
        except NotHeldError:  # just converted, or about to be given back as it was
            left.append(stamp)
    for stamp in [*converting.result(), *left]:
        if stamp and lock.validate(stamp):
            lock.release(stamp)
    assert lock.statistics() == (0, False, 0)

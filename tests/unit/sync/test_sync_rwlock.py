"""RWLock: who may be inside with whom, phases, going from one mode to another, and what is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from waiting import Inside, Thread, run, until, until_async, waiting_task

from fairlead import errors
from fairlead.sync import RWLock

pytestmark = pytest.mark.ends_and_free


@pytest.fixture
def lock() -> Iterator[RWLock]:
    made = RWLock()
    yield made
    assert made.statistics() == (0, False, False, 0)


def waits(lock: RWLock, count: int) -> None:
    until(lambda: lock.statistics().waiting == count)


def test_no_other_writer_comes_between_the_read_and_the_write_of_an_upgrade(lock: RWLock) -> None:
    log: list[str] = []
    lock.upgradable.acquire()
    reader = Inside(lock.reading).wait()
    writer = Inside(lock.writing, log, "writer")
    waits(lock, 1)
    late = Inside(lock.reading, log, "reader")
    waits(lock, 2)
    going = Thread(reader.go)
    with lock.writing:  # before the writer that came first
        log.append("upgraded")
    lock.upgradable.release()
    going.result()
    late.wait().go()  # a phase of writing has ended: who waits to read comes first
    writer.wait().go()
    assert log == ["upgraded", "reader", "writer"]


def test_phases_of_reading_and_writing_alternate(lock: RWLock) -> None:
    log: list[str] = []
    with lock.reading:
        writers = []
        for name in "AB":
            writers.append(Inside(lock.writing, log, name))
            waits(lock, len(writers))
        readers = []
        for name in "rs":  # come while a writer waits: kept out
            readers.append(Inside(lock.reading, log, name))
            waits(lock, 2 + len(readers))
    writers[0].wait()
    assert log == ["A"]
    writers[0].go()
    for reader in readers:
        reader.wait()
    assert sorted(log[1:]) == ["r", "s"]
    for reader in readers:
        reader.go()
    writers[1].wait().go()
    assert log[3] == "B"


def test_writer_is_not_starved_by_readers_that_take_turns(lock: RWLock) -> None:
    """The next reader comes before the last one has gone, and has to wait for the writer all the same."""
    log: list[str] = []
    reader = Inside(lock.reading).wait()
    for turn in range(5):
        writer = Inside(lock.writing, log, f"writer {turn}")
        waits(lock, 1)
        after = Inside(lock.reading, log, f"reader {turn}")
        waits(lock, 2)
        reader.go()
        writer.wait().go()
        reader = after.wait()
    reader.go()
    assert log == [f"{who} {turn}" for turn in range(5) for who in ("writer", "reader")]


def test_reader_can_read_again_while_a_writer_waits(lock: RWLock) -> None:
    with lock.reading:
        writer = Inside(lock.writing)
        waits(lock, 1)
        assert Thread(lock.reading.acquire, False).result() is False
        with lock.reading, lock.reading:
            assert lock.statistics() == (1, False, False, 1)
    writer.wait().go()


def test_reader_can_neither_write_nor_become_upgradable(lock: RWLock) -> None:
    async def main() -> None:
        async with lock.reading:
            with pytest.raises(errors.DeadlockError, match="begin with `upgradable`"):
                async with lock.writing:
                    pass

    with lock.reading:
        for face in (lock.writing, lock.upgradable):
            with pytest.raises(errors.DeadlockError, match="begin with `upgradable`"), face:
                pass
            with pytest.raises(errors.DeadlockError):
                face.acquire(False)
    run(main())


def test_thread_that_is_kept_out_by_a_writer_that_waits_for_its_own_task_gets_an_error(lock: RWLock) -> None:
    async def reads() -> None:
        with pytest.raises(errors.DeadlockError), lock.reading:
            pass

    async def main() -> None:
        async with lock.reading:
            writer = Inside(lock.writing)
            await until_async(lambda: lock.statistics().waiting)
            await asyncio.ensure_future(reads())
        writer.wait().go()

    run(main())


def test_readers_in_threads_and_tasks_never_see_half_a_write_and_an_upgrade_loses_none(lock: RWLock) -> None:
    value, turns = [0, 0], 60

    def thread() -> None:
        for _ in range(turns):
            with lock.upgradable:
                seen = value[0]
                with lock.writing:
                    assert value == [seen, seen]
                    value[:] = seen + 1, seen + 1
            with lock.reading:
                assert value[0] == value[1]

    async def task() -> None:
        for _ in range(turns):
            async with lock.writing:
                value[0] += 1
                await asyncio.sleep(0)
                value[1] += 1
            async with lock.reading:
                seen = value[0]
                await asyncio.sleep(0)
                assert value == [seen, seen]

    async def tasks() -> None:
        await asyncio.gather(task(), task())

    for one in [Thread(thread), Thread(run, tasks()), Thread(thread)]:
        one.result()
    assert value == [4 * turns] * 2


def test_upgrade_cancelled_after_it_was_granted_leaves_its_task_upgradable(lock: RWLock) -> None:
    async def upgrade() -> tuple[int, bool, bool, int]:
        async with lock.upgradable:
            try:
                async with lock.writing:
                    raise AssertionError("cancelled before")
            except asyncio.CancelledError:
                return lock.statistics()

    async def main() -> None:
        await lock.reading.acquire_async()
        task = await waiting_task(lock, upgrade())
        lock.reading.release()
        assert lock.statistics() == (0, False, True, 0)
        task.cancel()
        assert await task == (0, True, False, 0)

    run(main())


def test_upgrades_that_time_out_leave_nothing_behind(lock: RWLock) -> None:
    reader = Inside(lock.reading).wait()
    with lock.upgradable:
        for _ in range(200):
            assert lock.writing.acquire(timeout=1e-9) is False
        assert lock.statistics() == (1, True, False, 0)
    reader.go()


def test_many_holders_are_distinguished(lock: RWLock) -> None:
    """More than the table of holders has room for at first, and they go in another order."""
    readers = [Inside(lock.reading) for _ in range(60)]
    for one in readers:
        one.wait()
    for step in (3, 2, 1):
        assert lock.statistics().readers == len(readers)
        for one in readers[::step]:
            one.go()
        del readers[::step]

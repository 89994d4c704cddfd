"""RWLock: who may be inside with whom, phases, going from one mode to another, and what is left behind."""

from __future__ import annotations

import asyncio
import gc
import pickle
import signal
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
import trio
import trio.testing
from rwlocks import Inside, end, queued, waits
from waiting import Thread, until_async

from fairlead import errors
from fairlead.sync import RWLock, RWLockView


@pytest.fixture
def lock() -> Iterator[RWLock]:
    made = RWLock()
    yield made
    assert made.statistics() == (0, False, False, 0)


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 40))


def test_readers_are_inside_together_and_a_writer_alone(lock: RWLock) -> None:
    first, second = Inside(lock.reading).wait(), Inside(lock.reading).wait()
    assert lock.statistics() == (2, False, False, 0)
    assert lock.writing.acquire(False) is False
    assert lock.writing.acquire(timeout=1e-6) is False
    first.go()
    second.go()
    with lock.writing:
        assert lock.statistics() == (0, False, True, 0)
        assert Thread(lock.reading.acquire, False).result() is False
        assert Thread(lock.upgradable.acquire, False).result() is False
        assert Thread(lock.writing.acquire, False).result() is False
    assert not any(face.locked() for face in (lock.reading, lock.upgradable, lock.writing))


def test_one_upgradable_reads_beside_others_and_writes_when_they_have_gone(lock: RWLock) -> None:
    reader = Inside(lock.reading).wait()
    with lock.upgradable:
        assert lock.statistics() == (1, True, False, 0)
        assert Thread(lock.upgradable.acquire, False).result() is False
        assert lock.writing.acquire(False) is False
        going = Thread(reader.go)
        with lock.writing:
            assert lock.statistics() == (0, False, True, 0)
        going.result()
        assert lock.statistics() == (0, True, False, 0)
        Inside(lock.reading).wait().go()


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


def test_downgrade_lets_readers_in_and_no_writer(lock: RWLock) -> None:
    log: list[str] = []
    lock.writing.acquire()
    writer = Inside(lock.writing, log, "writer")
    waits(lock, 1)
    reader = Inside(lock.reading, log, "reader")
    waits(lock, 2)
    lock.downgrade()
    reader.wait()
    assert lock.statistics() == (2, False, False, 1)
    lock.reading.release()
    reader.go()
    writer.wait().go()
    assert log == ["reader", "writer"]
    with pytest.raises(errors.NotHeldError, match="cannot downgrade"):
        lock.downgrade()
    lock.upgradable.acquire()
    lock.downgrade()
    assert lock.statistics() == (1, False, False, 0)
    lock.reading.release()


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


def test_writer_can_acquire_every_view_and_keep_reading_after_its_write(lock: RWLock) -> None:
    with lock.writing, lock.writing, lock.upgradable, lock.reading:
        assert lock.statistics() == (0, False, True, 0)
    lock.writing.acquire()
    lock.reading.acquire()
    lock.upgradable.acquire()
    lock.writing.release()
    assert lock.statistics() == (0, True, False, 0)
    lock.upgradable.release()
    assert lock.statistics() == (1, False, False, 0)
    lock.reading.release()


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


@pytest.mark.parametrize("name", ["reading", "upgradable", "writing"])
def test_release_without_acquire_is_refused_and_changes_nothing(lock: RWLock, name: str) -> None:
    face: RWLockView = getattr(lock, name)

    async def other() -> None:
        with pytest.raises(errors.NotHeldError):
            face.release()

    async def main() -> None:
        async with face:
            await asyncio.ensure_future(other())
            with pytest.raises(errors.NotHeldError):
                Thread(face.release).result()

    with pytest.raises(errors.NotHeldError, match="not acquired"):
        face.release()
    with face:
        before = lock.statistics()
        with pytest.raises(RuntimeError):
            Thread(face.release).result()
        wrong = lock.writing if name != "writing" else lock.reading
        with pytest.raises(errors.NotHeldError):
            wrong.release()
        assert lock.statistics() == before
    run(main())


def test_thread_that_would_wait_for_its_own_loops_task_gets_an_error(lock: RWLock) -> None:
    async def other() -> None:
        with pytest.raises(errors.DeadlockError, match="inside this lock"), lock.writing:
            pass
        assert lock.writing.acquire(timeout=1e-6) is False
        with lock.reading:
            pass

    async def goes_on_to_write() -> None:
        with pytest.raises(errors.DeadlockError, match="inside this lock"), lock.upgradable:
            pass
        assert lock.upgradable.acquire(timeout=1e-6) is False

    async def reads() -> None:
        with pytest.raises(errors.DeadlockError), lock.reading:
            pass

    async def main() -> None:
        async with lock.reading:
            await asyncio.ensure_future(other())
        async with lock.upgradable:
            await asyncio.ensure_future(goes_on_to_write())
        log: list[str] = []
        async with lock.writing:
            task = await queued(lock, lock.writing, log, "")
        with pytest.raises(errors.DeadlockError), lock.reading:  # the task's before it has resumed
            pass
        await end(task)
        async with lock.reading:
            writer = Inside(lock.writing)
            await until_async(lambda: lock.statistics().waiting)
            await asyncio.ensure_future(reads())  # kept out by the writer, which waits for this thread
        writer.wait().go()

    run(main())


def test_threads_and_tasks_of_two_libraries_exclude_each_other(lock: RWLock) -> None:
    value = [0, 0]

    def thread() -> None:
        for i in range(60):
            if i % 3 == 0:
                with lock.upgradable:
                    seen = value[0]
                    with lock.writing:
                        assert value == [seen, seen]
                        value[0], value[1] = seen + 1, seen + 1
            else:
                with lock.reading:
                    assert value[0] == value[1]

    async def task(checkpoint: Any) -> None:
        for i in range(60):
            if i % 3 == 0:
                async with lock.writing:
                    value[0] += 1
                    await checkpoint()
                    value[1] += 1
            else:
                async with lock.reading:
                    seen = value[0]
                    await checkpoint()
                    assert value == [seen, seen]

    async def tasks() -> None:
        await asyncio.gather(*(task(lambda: asyncio.sleep(0)) for _ in range(2)))

    async def trio_tasks() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task, trio.lowlevel.checkpoint)
            nursery.start_soon(task, trio.lowlevel.checkpoint)

    threads = [Thread(thread), Thread(run, tasks()), Thread(trio.run, trio_tasks), Thread(thread)]
    for one in threads:
        one.result()
    assert value == [120, 120]


def test_granted_then_cancelled_before_it_resumes_passes_on(lock: RWLock) -> None:
    async def main() -> None:
        log: list[str] = []
        async with lock.writing:
            reader = await queued(lock, lock.reading, log, "reader")
            first = await queued(lock, lock.writing, log, "first")
            second = await queued(lock, lock.writing, log, "second")
        assert lock.statistics() == (1, False, False, 2)  # the reader's, which has not resumed
        await end(reader)
        await until_async(lambda: log == ["first"])
        first.cancel()
        await asyncio.wait([first])
        await until_async(lambda: log == ["first", "second"])
        await end(second)

    run(main())


def test_upgrade_cancelled_after_it_was_granted_leaves_its_task_upgradable(lock: RWLock) -> None:
    async def upgrade(begun: asyncio.Event) -> tuple[int, bool, bool, int]:
        async with lock.upgradable:
            begun.set()
            try:
                async with lock.writing:
                    raise AssertionError("cancelled before")
            except asyncio.CancelledError:
                return lock.statistics()

    async def main() -> None:
        begun = asyncio.Event()
        await lock.reading.acquire_async()
        task = asyncio.ensure_future(upgrade(begun))
        await until_async(lambda: lock.statistics().waiting == 1)
        lock.reading.release()
        assert lock.statistics() == (0, False, True, 0)
        task.cancel()
        assert await task == (0, True, False, 0)

    run(main())


def test_writer_that_gives_up_lets_in_the_readers_behind_it(lock: RWLock) -> None:
    async def main() -> None:
        log: list[str] = []
        async with lock.reading:
            writer = await queued(lock, lock.writing, log, "writer")
            reader = await queued(lock, lock.reading, log, "reader")
            await end(writer)
            await until_async(lambda: log == ["reader"])
            await end(reader)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await asyncio.ensure_future(lock.writing.acquire_async())
        assert lock.statistics().waiting == 0

    run(main())


def test_timeouts_leave_nothing_behind(lock: RWLock) -> None:
    with lock.reading:

        def give_up() -> None:
            for _ in range(200):
                assert lock.writing.acquire(timeout=1e-9) is False
            with lock.upgradable:
                for _ in range(200):
                    assert lock.writing.acquire(timeout=1e-9) is False
            with lock.reading:
                pass

        Thread(give_up).result()


def test_exception_of_a_signal_handler_ends_the_wait_outside(lock: RWLock) -> None:
    def handler(*_: object) -> None:
        raise KeyError

    reader = Inside(lock.reading).wait()
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        main = threading.main_thread().ident
        assert main is not None

        def send() -> None:
            waits(lock, 1)
            signal.pthread_kill(main, signal.SIGUSR1)

        sender = Thread(send)
        with pytest.raises(KeyError), lock.writing:
            pass
        sender.result()
    finally:
        signal.signal(signal.SIGUSR1, before)
    reader.go()


def test_destructor_may_release(lock: RWLock) -> None:
    class Holder:
        def __init__(self) -> None:
            lock.writing.acquire()

        def __del__(self) -> None:
            lock.writing.release()

    holder = [Holder()]
    waiter = Inside(lock.reading)
    waits(lock, 1)
    holder.clear()
    waiter.wait().go()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_closing_a_loop_with_a_queued_and_a_granted_waiter_passes_its_place_on(lock: RWLock) -> None:
    lock.writing.acquire()
    log: list[str] = []
    loop = asyncio.new_event_loop()
    tasks = [loop.run_until_complete(queued(lock, lock.reading, log, "")) for _ in range(2)]
    tasks.append(loop.run_until_complete(queued(lock, lock.writing, log, "")))
    lock.writing.release()
    assert lock.statistics() == (2, False, False, 1)
    loop.close()
    assert log == []
    with lock.writing:
        pass
    del tasks
    gc.collect()


def test_many_holders_are_distinguished(lock: RWLock) -> None:
    """More than the table of holders has room for at first, and they go in another order."""

    async def main() -> None:
        inside, tasks = [], []

        async def read(number: int) -> None:
            async with lock.reading, lock.reading:
                inside.append(number)
                await asyncio.get_running_loop().create_future()

        for number in range(100):
            tasks.append(asyncio.ensure_future(read(number)))  # noqa: PERF401
        await until_async(lambda: len(inside) == 100)
        assert lock.statistics().readers == 100
        for step in (3, 2, 1):
            await end(*tasks[::step])
            del tasks[::step]
            assert lock.statistics().readers == len(tasks)

    run(main())


def test_task_that_ended_inside_is_collected_with_the_lock() -> None:
    async def main() -> weakref.ref[Any]:
        lock = RWLock()

        async def hold() -> None:
            await lock.reading.acquire_async()

        task = asyncio.ensure_future(hold())
        await task
        task.lock = lock  # type: ignore[attr-defined] # a cycle
        return weakref.ref(lock)

    reference = run(main())
    gc.collect()
    assert reference() is None


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"timeout": float("nan")}, ValueError),
        ({"timeout": -0.5}, ValueError),
        ({"timeout": float("inf")}, OverflowError),
        ({"blocking": False, "timeout": 1}, ValueError),
        ({"timeout": "1"}, TypeError),
    ],
)
def test_senseless_arguments_are_refused(lock: RWLock, arguments: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        lock.reading.acquire(**arguments)


def test_acquire_async_outside_of_a_task_is_refused(lock: RWLock) -> None:
    with pytest.raises(RuntimeError, match="none runs here"):
        lock.reading.acquire_async().send(None)


def test_it_shows_its_state_and_is_neither_pickled_nor_subclassed(lock: RWLock) -> None:
    assert repr(lock).startswith("<fairlead.sync.RWLock open, 0 readers, 0 waiting, at 0x")
    with lock.upgradable:
        assert repr(lock).startswith("<fairlead.sync.RWLock upgradable, 0 readers,")
        with lock.writing:
            assert repr(lock.reading).startswith(
                "<fairlead.sync.RWLockView reading of <fairlead.sync.RWLock writing"
            )
    for one in (lock, lock.reading):
        with pytest.raises(TypeError, match="RWLock"):
            pickle.dumps(one)
    with pytest.raises(TypeError):
        type("Mine", (RWLock,), {})
    with pytest.raises(TypeError):
        RWLockView()
    with pytest.raises(TypeError):
        RWLock(1)  # type: ignore[call-arg]
    assert weakref.ref(lock)() is lock

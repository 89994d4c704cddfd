"""fairlead.sync.shared in one process, which opens segments twice; in several: tests/lifecycle."""

from __future__ import annotations

import asyncio
import copy
import gc
import mmap
import os
import pickle
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio
from blocked import Blocked
from endings import HandlerRan, handling, interrupting
from waiting import Thread, run, until, until_async

from fairlead import errors
from fairlead.sync import _segments, shared

pytestmark = [
    pytest.mark.ends_and_free,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc"),
]


@pytest.fixture
def name() -> Iterator[str]:
    name = f"test-{os.getpid()}"
    yield name
    assert name not in shared.sweep()


def file_of(name: str) -> Path:
    return Path(f"/dev/shm/fairlead-{os.getuid()}-{name}")


def test_lock_is_held_once_by_whichever_handle() -> None:
    lock = shared.Lock()
    same = pickle.loads(pickle.dumps(lock))
    with lock:
        assert same.locked()
        assert not same.acquire(False)
        assert not same.acquire(timeout=0.01)
        assert same.statistics() == (True, os.getpid(), True, 0)
    assert same.acquire()
    lock.release()
    with pytest.raises(errors.NotHeldError):
        same.release()
    assert copy.copy(lock).acquire(False)
    assert "held by process" in repr(lock)
    with pytest.raises(TimeoutError):
        lock.recover(timeout=0.01)
    lock.release()
    assert lock.recover() is False
    lock.release()
    for senseless in ({"timeout": float("nan")}, {"blocking": False, "timeout": 1}):
        with pytest.raises(ValueError, match="timeout"):
            lock.acquire(**senseless)


def held(lock: Any) -> Blocked:
    lock.acquire()
    return Blocked(lock, lock.acquire, lock.acquire_async, bool, lock.release, undo=lambda _: lock.release())


def event() -> Blocked:
    one = shared.Event()
    return Blocked(one, one.wait, one.wait_async, bool, one.set)


def empty() -> Blocked:
    line = shared.Queue()
    return Blocked(line, line.get, line.get_async, bool, lambda: line.put(b"it"), b"it")


def full() -> Blocked:
    line = shared.Queue(capacity_bytes=16)
    line.put(b"first")
    return Blocked(line, lambda: line.put(b"second"), lambda: line.put_async(b"second"), bool, line.get, None)


def barrier() -> Blocked:
    one = shared.Barrier(2)
    return Blocked(one, lambda: one.wait() + 1, lambda: arrives(one), bool, one.wait, ..., mend=one.reset)


async def arrives(one: shared.Barrier) -> int:
    return await one.wait_async() + 1


BLOCKED: dict[str, Callable[[], Blocked]] = {
    "Lock": lambda: held(shared.Lock()),
    "Semaphore": lambda: held(shared.Semaphore(1)),
    "owned Semaphore": lambda: held(shared.Semaphore(1, owned=True)),
    "Event": event,
    "Queue.get": empty,
    "Queue.put": full,
    "Barrier": barrier,
}
each = pytest.mark.parametrize("make", BLOCKED.values(), ids=BLOCKED.keys())


@pytest.mark.parametrize("how", ["thread", "asyncio", "trio"])
@each
def test_call_goes_on_when_another_thread_lets_it(make: Callable[[], Blocked], how: str) -> None:
    """Nothing shows whether it waits by then."""
    blocked = make()
    if how == "thread":
        waiter = Thread(blocked.take)
    else:
        waiter = (
            Thread(run, blocked.take_async()) if how == "asyncio" else Thread(trio.run, blocked.take_async)
        )
    blocked.end()
    assert blocked.got(waiter.result())


@pytest.mark.parametrize("kind", [kind for kind in BLOCKED if kind != "Barrier"])  # which that breaks
def test_cancelled_task_has_taken_nothing_and_the_next_is_served(kind: str) -> None:
    """It is cancelled at each of its turns, before and after it is let go on."""

    async def main(turns: int, first: bool) -> None:
        blocked = BLOCKED[kind]()
        task = asyncio.ensure_future(blocked.take_async())
        for _ in range(turns):
            await asyncio.sleep(0)
        if first:
            blocked.end()
            await asyncio.sleep(0.0001 * turns)
        task.cancel()
        await asyncio.wait([task])
        if task.cancelled():
            if not first:
                blocked.end()
            task = asyncio.ensure_future(blocked.take_async())
        assert blocked.got(await task)

    for turns in range(5):
        run(main(turns, False))
        run(main(turns, True))


@each
def test_exception_of_a_signal_handler_ends_the_wait(make: Callable[[], Blocked]) -> None:
    def stop() -> None:
        raise HandlerRan

    blocked, begun = make(), threading.Event()
    with handling(stop):
        sender = interrupting(begun.is_set)
        with pytest.raises(HandlerRan):  # noqa: PT012
            begun.set()
            blocked.wait()
        sender.result()
    blocked.mend()
    waiter = Thread(blocked.take)
    blocked.end()
    assert blocked.got(waiter.result())


def test_semaphore_counts_releases_of_any_process() -> None:
    semaphore = shared.Semaphore(2)
    same = pickle.loads(pickle.dumps(semaphore))
    with semaphore:
        assert same.acquire(False)
        assert semaphore.locked()
        assert not same.acquire(timeout=0.01)
        same.release(2)
    assert semaphore.statistics() == (3, 0)
    semaphore.release(0x7FFFFFFF - 3)
    with pytest.raises(errors.TooManyReleasesError):
        semaphore.release()
    for senseless in (0, -1, 0x80000000):
        with pytest.raises(ValueError, match="1 or more"):
            semaphore.release(senseless)
    for arguments in ((-1,), (1.5,), (0x80000000,)):
        with pytest.raises(errors.UsageError, match="value must be"):
            shared.Semaphore(*arguments)
    for value in (0, 4097):
        with pytest.raises(errors.UsageError, match="from 1 to 4096"):
            shared.Semaphore(value, owned=True)


def test_owned_permits_are_released_by_their_owner_only() -> None:
    semaphore = shared.Semaphore(3, owned=True)
    with pytest.raises(errors.NotHeldError):
        semaphore.release()
    assert all(semaphore.acquire(False) for _ in range(3))
    assert not semaphore.acquire(False)
    semaphore.release(2)
    with pytest.raises(errors.NotHeldError):
        semaphore.release(2)
    assert semaphore.statistics() == (2, 0)
    assert "2 free" in repr(semaphore)


def test_queue_returns_messages_of_any_size_in_order() -> None:
    queue = shared.Queue(capacity_bytes=128)
    same = pickle.loads(pickle.dumps(queue))
    for number in range(300):  # around the ring, at every place of it
        message = bytes([number % 256]) * (number % 121)
        queue.put(memoryview(message))
        queue.put_nowait(b"") if number % 121 < 97 else None
        assert same.get() == message
        assert number % 121 >= 97 or same.get_nowait() == b""
    assert queue.empty()
    assert queue.statistics() == (0, 128, False, 0, 0)
    with pytest.raises(errors.QueueEmpty):
        queue.get(timeout=0.001)
    with pytest.raises(errors.QueueEmpty):
        queue.get_nowait()
    queue.put(bytes(100))
    for call in (lambda: queue.put(bytes(100), timeout=0.001), lambda: queue.put_nowait(bytes(9))):
        with pytest.raises(errors.QueueFull):
            call()
    queue.put(bytes(8))  # what fits exactly
    with pytest.raises(ValueError, match="can never fit"):
        queue.put(bytes(121))
    for senseless in ("text", None, 3):
        with pytest.raises(TypeError):
            queue.put(senseless)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="missing required argument"):
        queue.put()  # type: ignore[call-arg]
    for capacity in (15, 1.5, 1 << 35):
        with pytest.raises(errors.UsageError, match="capacity_bytes must be"):
            shared.Queue(capacity_bytes=capacity)  # type: ignore[arg-type]


def test_queue_that_is_shut_down_refuses_and_wakes() -> None:
    queue, full = shared.Queue(capacity_bytes=64), shared.Queue(capacity_bytes=16)
    full.put(b"a")

    async def body() -> None:
        threads = [Thread(queue.get), Thread(full.put, b"b")]
        tasks = [asyncio.ensure_future(queue.get_async()), asyncio.ensure_future(full.put_async(b"c"))]
        await asyncio.sleep(0.001)
        queue.shutdown()
        full.shutdown()
        await asyncio.wait(tasks, timeout=30)
        for task in tasks:
            assert isinstance(task.exception(), errors.QueueShutDown)
        for thread in threads:
            with pytest.raises(errors.QueueShutDown):
                thread.result()

    run(body())
    assert full.get() == b"a"
    with pytest.raises(errors.QueueShutDown):
        full.get()
    with pytest.raises(errors.QueueShutDown):
        full.put(b"")
    late = shared.Queue(capacity_bytes=64)
    late.put(b"a")
    late.shutdown(immediate=True)
    with pytest.raises(errors.QueueShutDown):
        late.get()
    assert "shut down" in repr(late)


def test_threads_and_tasks_pass_messages_and_lose_none() -> None:
    queue, count = shared.Queue(capacity_bytes=48), 200
    got: list[bytes] = []

    async def body() -> None:
        async def get() -> None:
            while (message := await queue.get_async()) != b"end":
                got.append(message)

        async def put(name: int) -> None:
            for number in range(count):
                await queue.put_async(b"%d %d" % (name, number))

        def put_all() -> None:
            for number in range(count):
                queue.put(b"2 %d" % number)

        getters = [asyncio.ensure_future(get()) for _ in range(2)]
        thread = Thread(put_all)
        await asyncio.gather(put(0), put(1))
        while thread.is_alive():
            await asyncio.sleep(0.001)
        thread.result()
        await queue.put_async(b"end")
        await queue.put_async(b"end")
        await asyncio.gather(*getters)

    run(body())
    for name in range(3):
        mine = [int(message.split()[1]) for message in got if message.startswith(b"%d " % name)]
        assert sorted(mine) == list(range(count))


def test_barrier_lets_threads_and_tasks_through_together_again_and_again() -> None:
    barrier = shared.Barrier(3)
    same = pickle.loads(pickle.dumps(barrier))
    phases = [0, 0, 0]

    def meet(at: int) -> None:
        for _ in range(50):
            phases[at] += 1
            assert same.wait() in range(3)
            assert min(phases) >= phases[at]  # nobody is behind

    async def meet_in_a_task() -> None:
        for _ in range(50):
            phases[2] += 1
            assert await barrier.wait_async() in range(3)
            assert min(phases) >= phases[2]

    threads = [Thread(meet, at) for at in range(2)]
    run(meet_in_a_task())
    for thread in threads:
        thread.result()
    assert barrier.statistics() == (3, 0, False)
    for parties in (0, 1.5, 4097):
        with pytest.raises(errors.UsageError, match="parties must be"):
            shared.Barrier(parties)  # type: ignore[arg-type]


def test_late_waiter_learns_how_its_phase_ended_however_many_phases_have_passed() -> None:
    barrier = shared.Barrier(2)
    for end in (barrier._come, barrier.reset):
        late = barrier._come()
        assert late is not None
        end()
        for _ in range(100):
            barrier._come()
            barrier._come()
        if end == barrier.reset:
            with pytest.raises(errors.BrokenBarrierError):
                barrier._met(*late)
        else:
            assert barrier._met(*late)


def test_timeout_breaks_the_barrier_for_all_until_it_is_reset() -> None:
    barrier = shared.Barrier(3)
    thread = Thread(barrier.wait)
    until(lambda: barrier.n_waiting == 1)
    with pytest.raises(errors.BrokenBarrierError):
        barrier.wait(timeout=0.001)
    with pytest.raises(errors.BrokenBarrierError):
        thread.result()
    with pytest.raises(threading.BrokenBarrierError):
        barrier.wait()
    assert barrier.broken
    for _ in range(40):  # more often than it remembers
        barrier.reset()
    assert not barrier.broken
    waits = Thread(barrier.wait)
    until(lambda: barrier.n_waiting == 1)
    barrier.reset()
    with pytest.raises(errors.BrokenBarrierError):
        waits.result()

    async def body() -> None:
        task = asyncio.ensure_future(barrier.wait_async())
        other = asyncio.ensure_future(barrier.wait_async())
        await until_async(lambda: barrier.n_waiting == 2)
        task.cancel()
        await asyncio.wait([task, other], timeout=30)
        assert task.cancelled()
        assert isinstance(other.exception(), errors.BrokenBarrierError)

    run(body())
    barrier.reset()
    threads = [Thread(barrier.wait) for _ in range(2)]
    barrier.wait()
    assert sorted([thread.result() for thread in threads])
    barrier.abort()
    assert barrier.broken
    assert "broken" in repr(barrier)


def test_name_leads_to_the_same_lock_and_goes_with_its_last_user(name: str) -> None:
    lock, same = shared.Lock(name), shared.Lock(name)
    assert lock.name == name
    third = pickle.loads(pickle.dumps(same))
    with lock:
        assert third.locked()
    with pytest.raises(errors.UsageError, match="other arguments"):
        shared.Lock(name, take_over=True)
    del lock, same
    assert third.acquire(False)
    assert name not in shared.sweep()
    assert file_of(name).exists()
    del third
    assert not file_of(name).exists()


def test_name_that_killed_processes_left_is_made_anew(name: str) -> None:
    lock = shared.Lock(name)
    lock.acquire()
    left = file_of(name).read_bytes()
    del lock
    file_of(name).write_bytes(left)  # as a kill leaves it: nobody uses it
    lock = shared.Lock(name)
    assert not lock.locked()


def test_sweep_removes_what_killed_processes_left_and_names_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_segments, "_PLACE", str(tmp_path))  # other tests sweep, and leave things, too
    lock, killed = shared.Lock("used"), shared.Lock("left")
    left = Path(_segments.path_of("left"))
    content = left.read_bytes()
    del killed
    left.write_bytes(content)
    assert shared.sweep() == ["left"]
    assert not left.exists()
    assert Path(_segments.path_of("used")).exists()
    del lock


def test_segments_of_others_are_refused_with_the_reason(name: str) -> None:
    lock = shared.Lock(name)
    with file_of(name).open("r+b") as file, mmap.mmap(file.fileno(), 0) as segment:
        for at, value, reason in [
            (0, b"x", "not one of fairlead's"),
            (8, b"\x63", "another version"),
            (12, b"\x63", "another kind"),
            (24, b"\x63", "another pid namespace"),
        ]:
            before = segment[at : at + 1]
            segment[at : at + 1] = value
            with pytest.raises(errors.WrongSegmentError, match=reason):
                shared.Lock(name)
            segment[at : at + 1] = before
        assert shared.Lock(name).acquire(False)
    del lock
    file_of(name).write_bytes(b"something else")
    with pytest.raises(errors.WrongSegmentError, match="not one of fairlead's"):
        shared.Lock(name)
    assert file_of(name).read_bytes() == b"something else"
    file_of(name).unlink()
    for senseless in ("", "a/b", "x" * 201, b"bytes"):
        with pytest.raises(errors.UsageError, match="is not a valid name"):
            shared.Lock(senseless)  # type: ignore[arg-type]


def test_pickle_of_what_is_gone_is_refused() -> None:
    lock = shared.Lock()
    pickled = pickle.dumps(lock)
    del lock
    with pytest.raises(errors.HandleGoneError, match=r"keep (it|the object)"):
        pickle.loads(pickled)
    lock = shared.Lock()  # another one, which may have the same number of a descriptor
    with pytest.raises(errors.HandleGoneError, match=r"keep (it|the object)"):
        pickle.loads(pickled)
    assert not os.get_inheritable(lock._fd)


def test_nothing_is_left_open() -> None:
    def use() -> None:
        lock = shared.Lock()
        lock.acquire()

        async def body() -> None:
            task = asyncio.ensure_future(lock.acquire_async())
            await asyncio.sleep(0)
            lock.release()
            await task

        run(body())

    def mapped() -> int:
        return Path("/proc/self/maps").read_text().count("memfd:fairlead")

    use()
    gc.collect()  # what errors of other tests hold
    before, maps = len(list(Path("/proc/self/fd").iterdir())), mapped()
    for _ in range(20):
        use()
    # the threads that waited for the tasks end by themselves
    until(lambda: len(list(Path("/proc/self/fd").iterdir())) <= before and mapped() <= maps)

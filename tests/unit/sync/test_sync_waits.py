"""fairlead.sync.waits: who waits for what, and who has it."""

from __future__ import annotations

import asyncio
import io
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from endings import handling, interrupting
from waiting import PATIENCE_S, Thread, run, until, until_async

from fairlead import _native
from fairlead.sync import (
    Condition,
    Event,
    Lock,
    RLock,
    RWLock,
    Wait,
    select,
    waits,
)

pytestmark = pytest.mark.ends_and_free

trio = pytest.importorskip("trio")

GIL = getattr(sys, "_is_gil_enabled", lambda: True)()


def of(name: str) -> list[Wait]:
    """The waits of the thread or task with this name; others of this process are not this test's."""
    return [wait for wait in waits() if (wait.waiter.task or wait.waiter.thread_name) == name]


def the_wait(name: str) -> Wait:
    until(lambda: of(name))
    [wait] = of(name)
    return wait


def take(lock: Lock | RLock) -> None:
    with lock:
        pass


@contextmanager
def waiter(name: str, wait: Callable[[], Any], end: Callable[[], Any]) -> Iterator[None]:
    """A thread of that name that waits until `end` is called, which is at the block's end."""

    def body() -> None:
        threading.current_thread().name = name
        wait()

    thread = Thread(body)
    try:
        yield
    finally:
        end()
        thread.result()


def hold(lock: RLock, leave: Event) -> None:
    with lock:
        leave.wait()


def test_thread_that_waits_for_a_lock_is_seen_with_its_owner_and_both_stacks() -> None:
    lock, leave, file = RLock(), Event(), io.StringIO()
    before = time.monotonic()
    with (
        waiter("the holder", lambda: hold(lock, leave), leave.set),
        waiter("the waiter", lambda: (the_wait("the holder"), take(lock)), leave.set),
    ):
        wait = the_wait("the waiter")
        assert (wait.kind, wait.one_of, wait.until) == ("RLock", 1, None)
        assert wait.primitive == repr(lock)
        assert before <= wait.since <= time.monotonic()
        assert wait.waiter.thread in {thread.ident for thread in threading.enumerate()}
        assert (wait.waiter.task, wait.waiter.is_task) == (None, False)
        assert (wait.waiter.stack[-1].name, wait.waiter.stack[-1].line) == ("take", "with lock:")
        [owner] = wait.owners
        assert (owner.thread_name, owner.is_task) == ("the holder", False)
        assert owner.stack[-1].name == "hold"
        assert (owner.interpreter, wait.waiter.interpreter) == (0, 0)
        assert the_wait("the holder").owners == ()
        print(waits(), file=file)
        lines = str(wait).splitlines()
        assert re.match(r"thread 'the waiter' has waited \d", lines[0])
        assert repr(lock) in lines[0]
        held = next(i for i, line in enumerate(lines) if line.startswith("  held by thread"))
        assert any(line.endswith("in take") for line in lines[:held])
        assert any(line.endswith("in hold") for line in lines[held:])
        assert threading.__file__ not in str(wait)
        assert file.getvalue().startswith("fairlead.sync: ")
        assert lines[0].split(" has waited")[0] in file.getvalue()
    assert not of("the waiter")


def test_owner_that_runs_is_shown_where_it_is() -> None:
    lock = Lock()
    lock.acquire()
    with waiter("the waiter", lambda: take(lock), lock.release):
        [owner] = the_wait("the waiter").owners
        assert owner.thread == threading.get_ident()
        assert "test_owner_that_runs_is_shown_where_it_is" in [place.name for place in owner.stack]


def test_condition_is_seen_by_its_name() -> None:
    condition = Condition()

    def wait() -> None:
        with condition:
            condition.wait()

    def notify() -> None:
        with condition:
            condition.notify()

    with waiter("the waiter", wait, notify):
        assert the_wait("the waiter").kind == "Condition"
        assert the_wait("the waiter").primitive.startswith("<fairlead.sync.Condition <fairlead.sync.RLock")


def test_select_is_listed_once_for_each_case_with_its_timeout() -> None:
    lock, event = Lock(), Event()
    lock.acquire()

    def choose() -> None:
        select(event.wait_async(), lock.acquire_async(), timeout=1000)

    with waiter("the waiter", choose, event.set):
        until(lambda: len(of("the waiter")) == 2)
        seen = of("the waiter")
        assert {wait.kind for wait in seen} == {"Event", "Lock"}
        assert [wait.one_of for wait in seen] == [2, 2]
        assert all(900 < wait.until - time.monotonic() <= 1000 for wait in seen)  # type: ignore[operator]


def test_tasks_are_named_with_their_stacks_and_an_rlock_knows_which_has_it() -> None:
    async def main() -> None:
        lock = RLock()

        async def innermost() -> None:
            async with lock:
                pass

        async def want() -> None:
            await innermost()

        async with lock:
            asyncio.current_task().set_name("the holder")  # type: ignore[union-attr]
            tasks = [asyncio.create_task(want(), name=f"waiter {i}") for i in range(3)]
            await until_async(lambda: all(of(f"waiter {i}") for i in range(3)))
            [wait] = of("waiter 1")
            assert wait.waiter.is_task
            assert wait.waiter.thread == threading.get_ident()
            assert [place.name for place in wait.waiter.stack] == ["want", "innermost"]
            [owner] = wait.owners
            assert (owner.task, owner.is_task) == ("the holder", True)
            assert "main" in [place.name for place in owner.stack]
            assert "task 'waiter 1' of thread" in str(wait)
        await asyncio.gather(*tasks)
        assert not any(of(f"waiter {i}") for i in range(3))

    run(main())


def test_task_of_another_thread_is_seen_and_a_lock_says_a_task_of_which() -> None:
    lock, leave = Lock(), Event()

    async def hold() -> None:
        async with lock:
            await leave.wait_async()

    async def want() -> None:
        async with lock:
            pass

    async def main() -> None:
        holder = asyncio.create_task(hold(), name="the holder")
        await asyncio.sleep(0)
        await asyncio.gather(holder, asyncio.create_task(want(), name="the waiter"))

    with waiter("the loop", lambda: run(main()), leave.set):

        def seen() -> list[Wait]:
            return [wait for wait in waits() if wait.primitive == repr(lock) and wait.waiter.is_task]

        until(seen)
        [wait] = seen()
        assert wait.waiter.task == ("the waiter" if GIL else None)
        assert wait.waiter.thread_name == "the loop"
        [owner] = wait.owners
        assert (owner.thread_name, owner.is_task, owner.task) == ("the loop", True, None)
        assert "held by a task of thread 'the loop'" in str(wait)


def test_task_of_trio_is_named_with_its_stack() -> None:
    event = Event()

    async def want() -> None:
        await event.wait_async()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(want, name="the trio task")
            while not of("the trio task"):
                await trio.sleep(0)
            [wait] = of("the trio task")
            assert wait.waiter.stack[0].name == "want"
            event.set()

    trio.run(main)


def test_signal_handler_shows_what_the_main_thread_waits_for_and_all_others() -> None:
    lock, event, file = Lock(), Event(), io.StringIO()

    def show() -> None:
        print(waits(), file=file)
        event.set()

    def both_wait() -> bool:
        return {"Event", "Lock"} <= {wait.kind for wait in waits()}

    lock.acquire()
    with handling(show), waiter("the waiter", lambda: take(lock), lock.release):
        sender = interrupting(both_wait)
        assert event.wait(40)
        sender.result()
    assert "thread 'the waiter' has waited" in file.getvalue()


def test_waits_during_changes_of_queues_lists_only_what_is_there() -> None:
    """Threads and tasks of two loops come and go by every way at a few locks; somebody looks all the time."""
    locks = [Lock(), RLock(), Lock(fair=True)]
    event, over = Event(), threading.Event()

    def thread(seed: int) -> None:
        for i in range(150):
            if locks[(seed + i) % 3].acquire(timeout=(0.00001, 0.001, 40)[i % 3]):
                event.wait(0.00001 if i % 4 == 0 else 0)
                locks[(seed + i) % 3].release()

    async def task(seed: int) -> None:
        for i in range(60):
            try:
                async with asyncio.timeout((0.0001, 40)[i % 2]), locks[(seed + i) % 3]:
                    await asyncio.sleep(0)
            except TimeoutError:
                pass

    async def loop(seed: int) -> None:
        await asyncio.gather(*(task(seed + i) for i in range(4)))

    def look() -> int:
        found = 0
        while not over.is_set():
            for wait in waits():
                found += 1
                assert str(wait)
                assert wait.since > 0 or wait.waiter.is_task
                assert wait.kind
        return found

    looking = [Thread(look) for _ in range(2)]
    working = [Thread(thread, i) for i in range(3)] + [Thread(run, loop(i)) for i in range(2)]
    for one in working:
        one.result()
    over.set()
    assert sum(one.result() for one in looking) > 0
    assert not any(lock.locked() for lock in locks)


def test_owner_that_releases_and_ends_during_the_lookup_is_not_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = Lock()
    inside, leave, over = (threading.Event() for _ in range(3))

    def hold() -> None:
        with lock:
            inside.set()
            assert leave.wait(PATIENCE_S)

    def come() -> None:
        with lock:
            assert over.wait(PATIENCE_S)

    holder = Thread(hold)
    assert inside.wait(PATIENCE_S)
    comer = Thread(come)
    until(waits)
    thread_of = _native.thread_of

    def too_late(number: int) -> int:
        if not leave.is_set():
            leave.set()
            holder.result()
            until(lambda: not thread_of(number))
        return thread_of(number)

    monkeypatch.setattr(_native, "thread_of", too_late)
    [wait] = waits()
    over.set()
    comer.result()
    assert [owner for owner in wait.owners if owner.ended] == []


def test_task_that_releases_and_ends_during_the_lookup_is_not_reported_beside_another_of_its_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lock = RWLock()
    leave, over = Event(), Event()
    looked: list[Any] = []

    async def read(go: Event) -> None:
        async with lock.reading:
            await go.wait_async()

    async def main() -> None:
        first = asyncio.create_task(read(leave), name="first")
        second = asyncio.create_task(read(over), name="second")
        await until_async(lambda: leave.statistics().waiting and over.statistics().waiting)
        writer = Thread(lock.writing.acquire)
        await until_async(lambda: any(wait.owners for wait in waits()))
        task_ended = _native.task_ended

        def too_late(task: Any) -> bool:
            if task is first and not leave.is_set():
                leave.set()
                until(first.done)
            return task_ended(task)

        monkeypatch.setattr(_native, "task_ended", too_late)
        looked.extend(await asyncio.to_thread(waits))
        over.set()
        await asyncio.gather(first, second)
        await asyncio.to_thread(writer.result)

    run(main())
    [wait] = [wait for wait in looked if wait.owners]
    assert [(owner.task, owner.ended) for owner in wait.owners] == [("second", False)]

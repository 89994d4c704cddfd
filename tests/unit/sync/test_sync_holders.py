"""What has holders, by each of its modes: another is not taken for the holder, and none waits for itself."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import trio
from blocked import Blocked
from endings import queued
from holdings import HOLDINGS, LIMITER, Holding
from waiting import Inside, Thread, run, until, until_async

from fairlead.errors import DeadlockError, NotHeldError
from fairlead.sync import Wait, waits

pytestmark = pytest.mark.ends_and_free

each = pytest.mark.parametrize("holding", [*HOLDINGS, LIMITER], ids=lambda one: one.name)
each_that_knows_its_task = pytest.mark.parametrize(
    "holding",
    [one for one in [*HOLDINGS, LIMITER] if one.kind in {"RLock", "RWLock", "CapacityLimiter"}],
    ids=lambda one: one.name,
)


def refused(call: Callable[[], object]) -> None:
    with pytest.raises(NotHeldError):
        call()


@each_that_knows_its_task
def test_release_by_another_thread_or_task_is_refused_and_changes_nothing(holding: Holding) -> None:
    def others(release: Callable[[], object]) -> None:
        before = lock.statistics()
        refused(lambda: Thread(release).result())
        refused(lambda: Thread(run, in_a_task(release)).result())
        refused(lambda: Thread(trio.run, in_a_task, release).result())
        assert lock.statistics() == before

    async def in_a_task(release: Callable[[], object]) -> None:
        release()

    async def held_by_a_task() -> None:
        value = await take_async()
        others(release)
        with pytest.raises(NotHeldError):
            await asyncio.create_task(in_a_task(release))
        undo(value)

    async def held_beneath_the_task() -> None:
        refused(release)

    lock = holding.make()
    take, take_async, undo = holding.calls(lock, holding.taken)

    def release() -> None:
        undo(True)

    refused(release)
    value = take()
    others(release)
    run(held_beneath_the_task())
    undo(value)
    run(held_by_a_task())
    refused(release)


@pytest.mark.parametrize("holding", HOLDINGS, ids=lambda one: one.name)
def test_waits_names_every_holder(holding: Holding) -> None:
    lock = holding.make()
    count = 2 if holding.taken == "reading" else 1
    inside = [Inside(holding.block(lock, holding.taken)).wait() for _ in range(count)]
    take, _, undo = holding.calls(lock, holding.wanted)
    waiter = Thread(lambda: undo(take()))
    mine: list[Wait] = []
    until(lambda: mine or mine.extend(wait for wait in waits() if wait.waiter.thread == waiter.ident))
    [wait] = mine
    assert holding.kind in wait.primitive
    assert {owner.thread for owner in wait.owners} == {one.thread.ident for one in inside}
    for one in inside:
        one.go()
    waiter.result()


def waits_for_itself(blocked: Blocked, matches: str) -> None:
    with pytest.raises(DeadlockError, match=matches):
        blocked.wait()
    with pytest.raises(DeadlockError):
        blocked.wait(timeout=1e-4)
    assert not blocked.wait(False)


@each
def test_thread_that_would_wait_for_its_own_loops_task_gets_an_error(holding: Holding) -> None:
    async def in_a_task() -> None:
        waits_for_itself(blocked, r"task|async with")

    async def main() -> None:
        nonlocal blocked
        lock = holding.make()
        wait, wait_async, undo = holding.calls(lock, holding.wanted)
        _, take_async, give = holding.calls(lock, holding.taken)
        blocked = Blocked(lock, wait, wait_async, lambda: lock.statistics().waiting, bool, undo=undo)
        value = await take_async()
        await asyncio.ensure_future(in_a_task())
        if holding.kind != "CapacityLimiter":
            failed: list[BaseException] = []
            asyncio.get_running_loop().call_soon(callback, failed)  # of no task: the thread itself
            await until_async(lambda: failed)
            assert isinstance(failed[0], DeadlockError)
        give(value)

    def callback(failed: list[BaseException]) -> None:
        try:
            blocked.wait()
        except BaseException as error:  # noqa: BLE001 - the test looks at it
            failed.append(error)

    blocked: Any = None
    run(main())


@pytest.mark.parametrize(
    "holding",
    [
        one
        for one in [*HOLDINGS, LIMITER]
        if "fair" in one.name or "writing, read" in one.name or one is LIMITER
    ],
    ids=lambda one: one.name,
)
def test_thread_that_would_wait_for_a_granted_task_of_its_own_gets_an_error(holding: Holding) -> None:
    """It is the task's before that has resumed."""

    async def main() -> None:
        lock = holding.make()
        wait, _, _ = holding.calls(lock, holding.taken)
        _, wait_async, undo = holding.calls(lock, holding.wanted)
        _, take_async, give = holding.calls(lock, holding.taken)
        blocked = Blocked(lock, wait, wait_async, lambda: lock.statistics().waiting, bool, undo=undo)
        value = await take_async()
        task = await queued(blocked)
        give(value)
        with pytest.raises(DeadlockError):
            wait()
        task.cancel()
        await asyncio.wait([task])
        assert lock.statistics().waiting == 0

    run(main())


@pytest.mark.parametrize(
    "holding", [one for one in HOLDINGS if "Stamped" not in one.name], ids=lambda one: one.name
)
def test_task_that_would_wait_for_the_thread_beneath_it_gets_an_error(holding: Holding) -> None:
    async def main() -> None:
        if holding.kind != "Lock":  # which another thread may release
            waits_for_itself(blocked, "outside of the task|beneath this task")
        assert not blocked.wait(False)

    blocked = holding.blocked(mine=True)
    run(main())
    blocked.end()


@each_that_knows_its_task
def test_task_that_ended_as_holder_is_collected_with_the_lock(holding: Holding) -> None:
    async def main() -> weakref.ref[Any]:
        lock = holding.make()
        _, take_async, _ = holding.calls(lock, holding.taken)

        async def hold() -> None:
            await take_async()

        task = asyncio.ensure_future(hold())
        await task
        task.lock = lock  # type: ignore[attr-defined] # a cycle
        return weakref.ref(lock)

    freed = run(main())
    gc.collect()
    assert freed() is None

"""The primitives in trio: exactly one reschedule, cancellation, the end of a run, and asyncio beside it."""

from __future__ import annotations

import asyncio

import pytest
from waiting import Thread

from fairlead.sync import Lock, Semaphore, SimpleQueue
from fairlead.wait import Mailbox, current_mailbox

trio = pytest.importorskip("trio")


async def until_trio(state: object) -> None:
    with trio.fail_after(40):
        while not state():  # type: ignore[operator]
            await trio.lowlevel.checkpoint()


def test_lock_excludes_tasks_of_trio_and_of_asyncio_and_threads() -> None:
    lock, inside = Lock(), [0]

    async def in_trio() -> None:
        for _ in range(50):
            async with lock:
                seen = inside[0]
                await trio.lowlevel.checkpoint()
                inside[0] = seen + 1

    async def both() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(in_trio)
            nursery.start_soon(in_trio)

    async def in_asyncio() -> None:
        for _ in range(50):
            async with lock:
                seen = inside[0]
                await asyncio.sleep(0)
                inside[0] = seen + 1

    def thread() -> None:
        for _ in range(50):
            with lock:
                seen = inside[0]
                inside[0] = seen + 1

    for one in [Thread(trio.run, both), Thread(lambda: asyncio.run(in_asyncio())), Thread(thread)]:
        one.result()
    assert inside == [200]


def test_cancelled_scope_ends_the_wait_and_takes_nothing() -> None:
    async def main() -> None:
        semaphore = Semaphore(0)
        with trio.move_on_after(0.001) as scope:
            await semaphore.acquire_async()
        assert scope.cancelled_caught
        assert semaphore.statistics() == (0, 0, False)
        semaphore.release()
        with trio.CancelScope() as scope:
            scope.cancel()
            assert await semaphore.acquire_async()  # free: no checkpoint, so no cancellation either
        assert semaphore.statistics().value == 0

    trio.run(main)


@pytest.mark.parametrize("fair", [False, True])
def test_granted_then_cancelled_passes_on(fair: bool) -> None:
    async def main() -> None:
        lock, got = Lock(fair=fair), []
        await lock.acquire_async()
        scope = trio.CancelScope()

        async def first() -> None:
            with scope:
                await lock.acquire_async()
                got.append("first")
                lock.release()

        async def second() -> None:
            await lock.acquire_async()
            got.append("second")
            lock.release()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(first)
            await until_trio(lambda: lock.statistics().waiting == 1)
            nursery.start_soon(second)
            await until_trio(lambda: lock.statistics().waiting == 2)
            lock.release()
            scope.cancel()
        assert got == ["second"]
        assert lock.statistics()[:2] == (False, 0)

    trio.run(main)


def test_shielded_wait_is_not_cancelled() -> None:
    async def main() -> None:
        line, got = SimpleQueue(), []

        async def getter() -> None:
            with trio.CancelScope(shield=True):
                got.append(await line.get_async())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(getter)
            await until_trio(lambda: line.statistics().waiting == 1)
            nursery.cancel_scope.cancel()
            Thread(line.put, "thing").result()
        assert got == ["thing"]

    trio.run(main)


def test_runs_one_after_another_have_ports_of_their_own() -> None:
    line = SimpleQueue()

    async def main() -> None:
        thread = Thread(lambda: line.put("thing"))
        assert await line.get_async() == "thing"
        thread.result()
        ports.append(current_mailbox())
        assert current_mailbox() is ports[-1]

    ports: list[Mailbox] = []
    for _ in range(3):
        trio.run(main)
    assert len(set(ports)) == 3
    assert line.statistics() == (0, 0)

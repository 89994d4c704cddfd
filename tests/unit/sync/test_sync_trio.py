"""The primitives in trio: exactly one reschedule, cancellation, the end of a run, and asyncio beside it."""

from __future__ import annotations

import pytest
from waiting import Thread

from fairlead.sync import Semaphore, SimpleQueue

trio = pytest.importorskip("trio")


async def until_trio(state: object) -> None:
    with trio.fail_after(40):
        while not state():  # type: ignore[operator]
            await trio.lowlevel.checkpoint()


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

    for _ in range(3):
        trio.run(main)
    assert line.statistics() == (0, 0)

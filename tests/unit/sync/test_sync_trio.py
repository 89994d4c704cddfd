"""What is special to tasks of trio: scopes that are cancelled or shielded, and one run after another."""

from __future__ import annotations

import pytest
import trio
from endings import until_trio
from waiting import Thread

from fairlead.sync import Semaphore, SimpleQueue
from fairlead.wait import Mailbox, current_mailbox

pytestmark = pytest.mark.ends_and_free


def test_cancelled_scope_ends_no_wait_for_what_is_free() -> None:
    async def main() -> None:
        semaphore = Semaphore(1)
        with trio.CancelScope() as scope:
            scope.cancel()
            assert await semaphore.acquire_async()  # without a checkpoint
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
        ports.append(current_mailbox())
        assert current_mailbox() is ports[-1]

    ports: list[Mailbox] = []
    for _ in range(3):
        trio.run(main)
    assert len(set(ports)) == 3
    assert line.statistics() == (0, 0)

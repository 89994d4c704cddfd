"""Tasks of anyio, on both backends: its cancellation is by level, and comes again until the scope is left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead.sync import Lock, Semaphore, SimpleQueue

pytestmark = pytest.mark.ends_and_free

anyio = pytest.importorskip("anyio")

Run = Callable[..., Any]


@pytest.fixture(params=["asyncio", "trio"])
def run(request: pytest.FixtureRequest) -> Run:
    return lambda function, *args: anyio.run(function, *args, backend=request.param)


@pytest.fixture(params=[False, True], ids=["barging", "fair"])
def lock(request: pytest.FixtureRequest) -> Lock:
    return Lock(fair=request.param)


async def queued(one: Lock | Semaphore | SimpleQueue[Any], count: int) -> None:
    with anyio.fail_after(40):
        while one.statistics().waiting != count:
            await anyio.lowlevel.checkpoint()


def test_task_that_was_granted_and_is_cancelled_before_it_resumes_passes_the_grant_on(
    run: Run, lock: Lock
) -> None:
    async def main() -> None:
        entered: list[str] = []

        async def body(name: str, scope: Any) -> None:
            with scope:
                async with lock:
                    entered.append(name)

        scopes = [anyio.CancelScope(), anyio.CancelScope()]
        async with anyio.create_task_group() as group:
            await lock.acquire_async()
            for number, scope in enumerate(scopes):
                group.start_soon(body, str(number), scope)
                await queued(lock, number + 1)
            lock.release()
            scopes[0].cancel()
        assert entered == ["1"] or (entered == ["0", "1"] and not scopes[0].cancelled_caught)
        assert lock.statistics()[:2] == (False, 0)

    run(main)


def test_cancelled_scope_cancels_each_further_wait_and_a_shield_does_not(run: Run, lock: Lock) -> None:
    async def main() -> None:
        ended: list[str] = []

        async def body(scope: Any) -> None:
            with scope:
                try:
                    await lock.acquire_async()
                finally:
                    try:
                        await lock.acquire_async()
                    finally:
                        ended.append("again")
                        with anyio.CancelScope(shield=True):
                            await lock.acquire_async()
                            ended.append("shielded")
                            lock.release()

        async with anyio.create_task_group() as group:
            lock.acquire()
            scope = anyio.CancelScope()
            group.start_soon(body, scope)
            await queued(lock, 1)
            scope.cancel()
            while ended != ["again"]:
                await anyio.lowlevel.checkpoint()
            await queued(lock, 1)
            lock.release()
        assert ended == ["again", "shielded"]
        assert lock.statistics()[:2] == (False, 0)

    run(main)


def test_nested_scopes_and_the_tasks_own_cancellation_lose_no_permit(run: Run) -> None:
    async def main() -> None:
        semaphore = Semaphore(2)

        async def body(number: int) -> None:
            for turn in range(20):
                with (
                    anyio.move_on_after(0.0005 * (turn % 3)),
                    anyio.move_on_after(0.0003 * (number % 4)),
                ):
                    async with semaphore:
                        await anyio.lowlevel.checkpoint()

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(body, number)
        assert semaphore.statistics()[:2] == (2, 0)

    run(main)

"""What a pool has accepted is done, however soon the pool is left."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import CancelledError
from typing import Any

import pytest
from poolkinds import Make
from pooltasks import square

from fairlead import errors

pytestmark = pytest.mark.ends_and_free


class Slow:
    """Its pickling, which the courier does, lasts until it may go on."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go = threading.Event()

    def __reduce__(self) -> Any:
        self.begun.set()
        assert self.go.wait(60)
        return int, (7,)


def test_calls_made_in_an_async_block_are_done_and_later_ones_raise_at_once(make: Make) -> None:
    async def main() -> None:
        for _ in range(5):
            async with make() as pool:
                tasks = [asyncio.create_task(pool.run(square, n)) for n in range(20)]
                await asyncio.sleep(0)  # all have been called
            assert await asyncio.gather(*tasks) == [n * n for n in range(20)]
            with pytest.raises(errors.PoolClosedError):
                await pool.run(square, 3)

    asyncio.run(main())


@pytest.mark.parametrize("end", ["shutdown", "leave", "cancel", "terminate"])
def test_calls_that_are_still_pickled_are_waited_for_or_cancelled(end: str, sending: Make) -> None:
    async def main() -> None:
        pool = sending()
        assert await pool.run(square, 2) == 4
        slow = Slow()
        calls = [asyncio.create_task(pool.run(int, what)) for what in (slow, 8)]
        await asyncio.sleep(0)
        assert await asyncio.to_thread(slow.begun.wait, 60)
        ends = {
            "shutdown": pool.shutdown,
            "leave": lambda: pool.__exit__(None, None, None),
            "cancel": lambda: pool.shutdown(cancel_futures=True),
            "terminate": pool.terminate,
        }
        ending = asyncio.create_task(asyncio.to_thread(ends[end]))
        if end == "terminate":
            await ending
        else:
            while pool._intake.open:
                await asyncio.sleep(0)
        with pytest.raises(errors.PoolClosedError):
            await pool.run(square, 3)
        slow.go.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        await ending
        if end in {"shutdown", "leave"}:
            assert found == [7, 8]
        else:
            assert {type(one) for one in found} <= {int, CancelledError}
            assert type(found[1]) is CancelledError or end == "cancel"

    asyncio.run(main())


def test_callback_in_the_thread_that_submits_may_end_the_pool(sending: Make) -> None:
    async def main() -> None:
        pool = sending()
        assert await pool.run(square, 2) == 4
        slow = Slow()
        refused = threading.Lock()  # its future ends in the thread that pickles, and calls back there
        submit_for = pool._submit_for

        def ends(future: Any, *call: Any) -> None:
            future.add_done_callback(lambda _: pool.shutdown(wait=False))
            submit_for(future, *call)

        calls = [asyncio.create_task(pool.run(int, slow))]
        await asyncio.sleep(0)
        pool._submit_for = ends  # type: ignore[method-assign]
        calls.append(asyncio.create_task(pool.run(int, refused)))
        await asyncio.sleep(0)
        pool._submit_for = submit_for  # type: ignore[method-assign]
        calls.append(asyncio.create_task(pool.run(int, 8)))
        await asyncio.sleep(0)
        slow.go.set()
        found = await asyncio.gather(*calls, return_exceptions=True)
        assert [type(one) for one in found] == [int, errors.SerializationError, int]
        await pool.aclose()

    asyncio.run(main())

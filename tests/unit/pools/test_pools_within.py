"""Tasks and done-callbacks that end, or wait for, the pool that runs them."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from poolkinds import Make
from pooltasks import square, wait_for
from waiting import PATIENCE_S, until

from fairlead import errors
from fairlead.pools import AsyncPool, AutoPool, SequentialPool, ThreadPool

pytestmark = pytest.mark.ends_and_free

# tasks that end their own pool


def test_tasks_that_shut_down_their_own_pool_are_refused_and_the_pool_is_closed() -> None:
    pool = ThreadPool(2)
    both = threading.Barrier(2)

    def ends() -> BaseException | None:
        both.wait(PATIENCE_S)
        try:
            pool.shutdown()
        except errors.DeadlockError as refusal:
            return refusal
        return None

    futures = [pool.submit(ends) for _ in range(2)]
    for future in futures:
        assert "shutdown(wait=False)" in str(future.result(PATIENCE_S))
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 2)
    pool.shutdown(timeout=PATIENCE_S)


def test_done_callback_that_shuts_down_its_pool_never_hangs(several: Make, tmp_path: Path) -> None:
    pool = several(max_workers=2)
    outcomes: list[BaseException | None] = []

    def ends(_: object) -> None:
        try:
            pool.shutdown()
        except errors.DeadlockError as refusal:
            outcomes.append(refusal)
        else:
            outcomes.append(None)

    gate = tmp_path / "gate"
    futures = [pool.submit(wait_for, str(gate)) for _ in range(2)]
    for future in futures:
        future.add_done_callback(ends)
    gate.touch()
    until(lambda: len(outcomes) == 2)
    assert pool._engine.closed
    pool.shutdown(timeout=PATIENCE_S)


@pytest.mark.parametrize("way", ["shutdown", "aclose", "block"])
def test_coroutine_that_ends_its_own_pool_is_refused_and_the_pool_is_closed(way: str) -> None:
    pool = AsyncPool()

    async def ends() -> None:
        if way == "shutdown":
            pool.shutdown()
        elif way == "aclose":
            await pool.aclose()
        else:
            async with pool:
                pass

    with pytest.raises(errors.DeadlockError, match=r"shutdown\(wait=False\)"):
        pool.submit(ends).result(PATIENCE_S)
    pool.shutdown(timeout=PATIENCE_S)


def test_first_call_of_an_auto_pool_cannot_end_that() -> None:
    pool = AutoPool(2)

    def ends() -> None:
        pool.shutdown()

    with pytest.raises(errors.DeadlockError):
        pool.submit(ends).result(PATIENCE_S)
    pool.shutdown(timeout=PATIENCE_S)


def test_call_may_end_its_own_sequential_pool() -> None:
    pool = SequentialPool()
    pool.submit(pool.shutdown).result()
    with pytest.raises(errors.PoolClosedError):
        pool.submit(square, 2)


# waiting within tasks


@pytest.mark.parametrize("way", ["result", "map"])
def test_chain_of_tasks_that_wait_for_each_other_is_as_long_as_it_likes(way: str) -> None:
    with ThreadPool(2) as pool:

        def down(n: int) -> int:
            if n == 0:
                return 0
            if way == "map":
                return 1 + next(pool.map(down, [n - 1]))
            return 1 + pool.submit(down, n - 1).result()

        assert pool.submit(down, 2000).result(PATIENCE_S) == 2000


def test_chain_of_plain_functions_on_one_loop_ends_in_a_clear_error() -> None:
    with AsyncPool(2) as pool:

        def down(n: int) -> int:
            return 0 if n == 0 else 1 + pool.submit(down, n - 1).result()

        assert pool.submit(down, 50).result(PATIENCE_S) == 50
        with pytest.raises(errors.DeadlockError, match=r"await pool\.run"):
            pool.submit(down, 2000).result(PATIENCE_S)

"""Tasks that are interrupted while they call their own pool: no lock of the pool stays taken."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from pooltasks import square

from fairlead.pools import AsyncPool, Pool, ThreadPool

pytestmark = pytest.mark.long


def call_pool(pool: Pool) -> None:
    while True:
        pool.submit(square, 2).cancel()
        pool.statistics()


async def call_pool_async(pool: Pool) -> None:
    call_pool(pool)


MAKERS: dict[str, tuple[Callable[[], Pool], Callable[[Pool], Any]]] = {
    "threads": (lambda: ThreadPool(2, interrupt=True), call_pool),
    "async": (lambda: AsyncPool(2), call_pool_async),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", MAKERS)
def test_interrupt_within_a_call_of_the_pool_leaves_no_lock_taken(kind: str, seed: int) -> None:
    make, task = MAKERS[kind]
    chance = random.Random(seed)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for _ in range(15):
            with make() as pool:
                for _ in range(20):
                    calling = pool.submit(task, pool)
                    time.sleep(chance.random() * 0.002)
                    assert calling.cancel()
                    assert pool.submit(square, 5).result(60) == 25
    finally:
        sys.setswitchinterval(before)

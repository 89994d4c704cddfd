"""Threads, tasks of several loops, time-outs, cancellations at random: permits are conserved."""

from __future__ import annotations

import asyncio
import random

import pytest
from waiting import Thread

from fairlead.sync import Semaphore

pytestmark = pytest.mark.ends_and_free


def new_seed() -> int:
    seed = random.SystemRandom().randrange(2**32)
    print("seed", seed)  # shown when the test fails
    return seed


@pytest.mark.parametrize("fair", [False, True], ids=["barging", "fair"])
@pytest.mark.parametrize("_again", range(2))
def test_permits_are_conserved(_again: int, fair: bool) -> None:
    total, seed = 3, new_seed()
    semaphore = Semaphore(total, fair=fair)

    def thread(name: str) -> None:
        dice = random.Random(f"{seed} {name}")
        for _ in range(200):
            count = dice.randint(1, total)
            if semaphore.acquire(timeout=dice.choice([None, 0, 1e-6, 1e-4]), n=count):
                semaphore.release(count)

    async def task(name: str) -> None:
        dice = random.Random(f"{seed} {name}")
        for _ in range(100):
            count = dice.randint(1, total)
            try:
                async with asyncio.timeout(dice.choice([None, 0, 1e-5, 1e-3])):
                    await semaphore.acquire_async(count)
            except TimeoutError:
                continue
            try:
                await asyncio.sleep(0)
            finally:
                semaphore.release(count)

    async def loop(name: str) -> None:
        dice = random.Random(f"{seed} {name}")
        tasks = [asyncio.ensure_future(task(f"{name}.{me}")) for me in range(4)]
        await asyncio.sleep(0)
        while not all(one.done() for one in tasks[1:]):
            await asyncio.sleep(0)
            if dice.random() < 0.01:
                tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    threads = [Thread(thread, f"thread {me}") for me in range(3)]
    threads += [Thread(lambda me=me: asyncio.run(loop(f"loop {me}"))) for me in range(2)]
    for one in threads:
        one.result()
    assert semaphore.statistics() == (total, 0, fair)

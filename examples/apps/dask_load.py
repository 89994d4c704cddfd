"""Gives a Dask worker tasks that keep the GIL busy, and asks its event loop for an answer when that is due.

What the worker answers late here, it sends late to its scheduler, too: its heartbeats are such calls.
"""

from __future__ import annotations

import asyncio
import os
import time

import measure
from distributed import Client
from distributed.core import ConnectionPool


def compute(place: int) -> None:
    import beside
    from steps import spin

    spin(beside.work_done(), place)


async def ask(pool: ConnectionPool, address: str, due: float, seen: measure.Latencies) -> None:
    seen.ask(due)
    await pool(address).identity()
    seen.answer(due)


async def main() -> None:
    address = f"tcp://127.0.0.1:{os.environ['EXAMPLE_PORT_2']}"
    async with Client(address, asynchronous=True) as client:
        await client.wait_for_workers(1, timeout=30)
        worker = next(iter((await client.scheduler.identity())["workers"]))
        tasks = [
            client.submit(compute, place, pure=False)
            for place in range(int(os.environ["EXAMPLE_CPU_THREADS"]))
        ]
        await asyncio.sleep(0.5)  # until they run
        pool = await ConnectionPool()
        seen = measure.Latencies()
        asked = []
        for due in measure.arrivals():
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            asked.append(asyncio.create_task(ask(pool, worker, due, seen)))
        done, _ = await asyncio.wait(asked, timeout=5)
        for one in done:
            one.result()
        measure.say(requests=seen)
        os._exit(0)  # the tasks never end, and closing would wait for them
    del tasks


asyncio.run(main())

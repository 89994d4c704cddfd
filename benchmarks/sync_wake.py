"""What it costs to wake: a task of another thread's loop, and a task of the same loop; peers in one run.

    python benchmarks/sync_wake.py [--rounds 15] [--foreign 2] [--wakes 2000]

*sender*: a thread lets n waiting tasks of a loop in another thread go on, one call each, and the CPU time of
its own is taken per call. *same loop*: 4 tasks take turns with one lock that each holds over a switch, and
the CPU time of the whole is taken per turn. Ratios as in sync_pair.py.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import harness

from fairlead import sync


def in_other_thread(main: Callable[[Callable[[], None]], Any], send: Callable[[], int]) -> int:
    """Runs main(ready) in a loop of its own thread, and send() here once it has called ready()."""
    ready = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(main(ready.set)))
    thread.start()
    ready.wait()
    spent = send()
    thread.join()
    return spent


def sender_fairlead(wakes: int) -> float:
    semaphore = sync.Semaphore(0, fair=True)

    async def task() -> None:
        await semaphore.acquire_async()

    async def main(ready: Callable[[], None]) -> None:
        tasks = [asyncio.ensure_future(task()) for _ in range(wakes)]
        while semaphore.statistics().waiting < wakes:
            await asyncio.sleep(0)
        ready()
        await asyncio.gather(*tasks)

    def send() -> int:
        begin = time.thread_time_ns()
        for _ in range(wakes):
            semaphore.release()
        return time.thread_time_ns() - begin

    return in_other_thread(main, send) / wakes


def sender_asyncio(wakes: int) -> float:
    loops: list[asyncio.AbstractEventLoop] = []
    futures: list[asyncio.Future[None]] = []

    async def main(ready: Callable[[], None]) -> None:
        loops.append(asyncio.get_running_loop())
        futures.extend(loops[0].create_future() for _ in range(wakes))
        ready()
        await asyncio.gather(*futures)

    def send() -> int:
        begin = time.thread_time_ns()
        for future in futures:
            loops[0].call_soon_threadsafe(future.set_result, None)
        return time.thread_time_ns() - begin

    return in_other_thread(main, send) / wakes


def turns(make: Callable[[], Any], wakes: int) -> float:
    async def task(lock: Any) -> None:
        for _ in range(wakes // 4):
            async with lock:
                await asyncio.sleep(0)

    async def main() -> float:
        lock = make()
        begin = time.thread_time_ns()
        await asyncio.gather(*(task(lock) for _ in range(4)))
        return (time.thread_time_ns() - begin) / wakes

    return asyncio.run(main())


QUESTIONS: dict[str, dict[str, Callable[[int], float]]] = {
    "sender, thread to another loop": {
        "call_soon_threadsafe": sender_asyncio,
        "fairlead Semaphore": sender_fairlead,
    },
    "same loop, 4 tasks and a lock": {
        "asyncio.Lock": lambda wakes: turns(asyncio.Lock, wakes),
        "fairlead Lock": lambda wakes: turns(sync.Lock, wakes),
        "fairlead Lock, fair": lambda wakes: turns(lambda: sync.Lock(fair=True), wakes),
    },
}


def main() -> None:
    parser = harness.peer_arguments(__doc__ or "", rounds=15)
    parser.add_argument("--wakes", type=int, default=2000)
    options = parser.parse_args()
    harness.peers(QUESTIONS, options, size=options.wakes, warm_up=options.wakes)


if __name__ == "__main__":
    main()

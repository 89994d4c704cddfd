"""What a rate limiter costs: free, by a thread and by a task, and with tasks or threads that wait for it.

    python benchmarks/sync_rate.py [--rounds 9] [--only free] [--quick] [--json FILE]

Peers are a token bucket of a lock and a few numbers that sleeps, as one writes it for threads, and for tasks
aiolimiter.AsyncLimiter where it is installed (pip install --group peers). Free: the permits are there, CPU
time of each. Waiting: 50 tasks or 20 threads wait at 5,000 permits a second, the process's CPU time of each
permit, and how much longer all took than the rate says.
"""

from __future__ import annotations

import asyncio
import importlib.util
import threading
import time
from collections.abc import Callable
from typing import Any

import harness

from fairlead.sync import RateLimiter

FREE, RATE, PERMITS = 20_000, 5_000, 1_000


class Bucket:
    """A token bucket of a lock, two numbers and sleep."""

    def __init__(self, rate: float, burst: float) -> None:
        self._lock = threading.Lock()
        self._rate, self._burst, self._tokens, self._at = rate, burst, burst, time.monotonic()

    def acquire(self) -> None:
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            self._tokens -= 1
            late = -self._tokens / self._rate
        if late > 0:
            time.sleep(late)


def threads_makers() -> dict[str, Callable[[float, int], Any]]:
    return {"lock and sleep": Bucket, "fairlead": lambda rate, burst: RateLimiter(rate, burst=burst)}


def tasks_makers() -> dict[str, Callable[[float, int], Any]]:
    found: dict[str, Callable[[float, int], Any]] = {}
    if importlib.util.find_spec("aiolimiter"):
        import aiolimiter

        def theirs(rate: float, burst: int) -> Any:
            return aiolimiter.AsyncLimiter(burst, burst / rate)

        found["aiolimiter"] = theirs
    found["fairlead"] = lambda rate, burst: RateLimiter(rate, burst=burst)
    return found


def free_thread(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        limiter, many = threads_makers()[mode](1e9, 1_000_000), FREE // scale
        begin = time.thread_time_ns()
        for _ in range(many):
            limiter.acquire()
        return {"CPU ns": (time.thread_time_ns() - begin) / many}

    return take


def free_task(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        limiter, many = tasks_makers()[mode](1e9, 1_000_000), FREE // scale

        async def main() -> float:
            begin = time.thread_time_ns()
            for _ in range(many):
                async with limiter:
                    pass
            return (time.thread_time_ns() - begin) / many

        return {"CPU ns": asyncio.run(main())}

    return take


def figures(wait: Callable[[int], None], permits: int) -> dict[str, float]:
    used, begin = time.process_time_ns(), time.monotonic_ns()
    wait(permits)
    taken = (time.monotonic_ns() - begin) / 1e9
    return {
        "CPU us": (time.process_time_ns() - used) / permits / 1000,
        "longer": taken / ((permits - 10) / RATE),
    }


def waiting_tasks(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        def wait(permits: int) -> None:
            async def main() -> None:
                limiter = tasks_makers()[mode](RATE, 10)

                async def body() -> None:
                    for _ in range(permits // 50):
                        async with limiter:
                            pass

                await asyncio.gather(*(body() for _ in range(50)))

            asyncio.run(main())

        return figures(wait, max(100, PERMITS // scale))

    return take


def waiting_threads(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        def wait(permits: int) -> None:
            limiter = threads_makers()[mode](RATE, 10)

            def body() -> None:
                for _ in range(permits // 20):
                    limiter.acquire()

            threads = [threading.Thread(target=body) for _ in range(20)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

        return figures(wait, max(100, PERMITS // scale))

    return take


def main() -> None:
    parser = harness.arguments(__doc__, rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 50 if options.quick else 1
    threads, tasks = list(threads_makers()), list(tasks_makers())

    def target(peers: list[str], figure: str, at_most: float) -> list[harness.Target]:
        return [harness.Target(figure, "fairlead", at_most=at_most, of=peer) for peer in peers[:-1]]

    rows = [
        harness.Row("free, a thread", free_thread(scale), threads, target(threads, "CPU ns", 0.5)),
        harness.Row("free, a task", free_task(scale), tasks, target(tasks, "CPU ns", 0.5)),
        harness.Row("50 tasks wait", waiting_tasks(scale), tasks, target(tasks, "CPU us", 1)),
        harness.Row("20 threads wait", waiting_threads(scale), threads, target(threads, "CPU us", 1)),
    ]
    harness.run("rate limiters", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()

"""What a rate limiter costs: with permits left, and with tasks or threads that wait for them."""

EXPERIMENT = {
    "id": "own.rate",
    "size_name": "permits",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [
        {"name": "took_s", "title": "took", "unit": "s"},
        {"name": "longer", "title": "longer", "unit": "ratio"},
    ],
    "cases": {
        "thread": {
            "title": "Permits that are there, to a thread",
            "question": "What does a permit cost a thread that need not wait for it?",
            "explanation": "CPU time of the thread for a permit.",
            "sizes": {"quick": [20000], "standard": [50000], "full": [100000]},
            "ways": ["lock and sleep", "RateLimiter"],
            "claims": [
                {"topic": "free, a thread", "of": {"by": "lock and sleep"}, "over": {"by": "RateLimiter"}}
            ],
        },
        "task": {
            "title": "Permits that are there, to a task",
            "question": "What does a permit cost a task that need not wait for it?",
            "explanation": "CPU time of the thread for a permit.",
            "sizes": {"quick": [20000], "standard": [50000], "full": [100000]},
            "ways": ["aiolimiter.AsyncLimiter", "RateLimiter"],
            "claims": [
                {
                    "topic": "free, a task",
                    "of": {"by": "aiolimiter.AsyncLimiter"},
                    "over": {"by": "RateLimiter"},
                }
            ],
        },
        "waiting-tasks": {
            "title": "Fifty tasks that wait",
            "question": "What does a permit cost when fifty tasks wait for 5,000 permits a second?",
            "explanation": (
                "CPU time of the process for a permit; and how much longer all took than the rate says."
            ),
            "ways": ["aiolimiter.AsyncLimiter", "RateLimiter"],
            "claims": [
                {
                    "topic": "50 tasks wait",
                    "of": {"by": "aiolimiter.AsyncLimiter"},
                    "over": {"by": "RateLimiter"},
                }
            ],
        },
        "waiting-threads": {
            "title": "Twenty threads that wait",
            "question": "What does a permit cost when twenty threads wait for 5,000 permits a second?",
            "explanation": (
                "CPU time of the process for a permit; and how much longer all took than the rate says."
            ),
            "ways": ["lock and sleep", "RateLimiter"],
            "claims": [
                {"topic": "20 threads wait", "of": {"by": "lock and sleep"}, "over": {"by": "RateLimiter"}}
            ],
        },
    },
    "sizes": {"quick": [1000], "standard": [1000], "full": [4000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import asyncio  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

import own  # noqa: E402

RATE, BURST = 5_000, 10
TASKS, THREADS = 50, 20


class Bucket:
    """A token bucket of a lock, two numbers and sleep, as one writes it for threads."""

    def __init__(self, rate, burst):
        self._lock = threading.Lock()
        self._rate, self._burst, self._tokens, self._at = rate, burst, burst, time.monotonic()

    def acquire(self):
        with self._lock:
            now = time.monotonic()
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
            self._at = now
            self._tokens -= 1
            late = -self._tokens / self._rate
        if late > 0:
            time.sleep(late)


def limiter(by, rate=RATE, burst=BURST):
    if by == "lock and sleep":
        return Bucket(rate, burst)
    if by == "RateLimiter":
        return own.made(f"RateLimiter({rate}, burst={burst})")
    return own.made(f"{by}({burst}, {burst / rate})")


def free(statement):
    return lambda by, n: own.pair(statement, n, lambda: {"x": limiter(by, 1e9, 1_000_000)})


def waited(clocks, n):
    found = clocks.each(n)
    return {"took_s": found["took_s"], "longer": found["clock_s"] * n * RATE / (n - BURST)}


def waiting_tasks(by, n):
    async def main():
        x = limiter(by)

        async def body():
            for _ in range(n // TASKS):
                async with x:
                    pass

        clocks = own.Clocks()
        await asyncio.gather(*(body() for _ in range(TASKS)))
        return waited(clocks, n)

    return asyncio.run(main())


def waiting_threads(by, n):
    x = limiter(by)

    def body():
        for _ in range(n // THREADS):
            x.acquire()

    return waited(own.in_threads(THREADS, body), n)


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "thread": free("x.acquire()"),
            "task": free("async with x: pass"),
            "waiting-tasks": waiting_tasks,
            "waiting-threads": waiting_threads,
        },
    )

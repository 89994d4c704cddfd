"""What it costs to wake those that wait, one by one and all at once, and to cancel them."""

EXPERIMENT = {
    "id": "own.wake",
    "size_name": "threads",
    "ways": "by",
    "value": "took_s",
    "metrics": [{"name": "took_s", "title": "took", "unit": "s"}],
    "cases": {
        "other-loop": {
            "title": "Waking tasks of another thread's loop",
            "question": "What does a thread pay to let a task of another thread's loop go on?",
            "explanation": (
                "n tasks of a loop wait, and another thread lets them go on, with a call for each. The time "
                "is CPU time of that thread for a call."
            ),
            "size_name": "tasks",
            "sizes": {"quick": [2000], "standard": [2000], "full": [2000]},
            "growth": False,
            "ways": ["loop.call_soon_threadsafe", "Semaphore"],
            "claims": [
                {
                    "topic": "waking another loop",
                    "of": {"by": "loop.call_soon_threadsafe"},
                    "over": {"by": "Semaphore"},
                    "says": (
                        "a Semaphore wakes a task of another loop with less work than the loop's own call"
                    ),
                    "otherwise": (
                        "a Semaphore wakes a task of another loop with no less work than the loop's call"
                    ),
                },
            ],
        },
        "same-loop": {
            "title": "A lock that tasks take in turns",
            "question": "What does a turn cost when four tasks of one loop want one lock?",
            "explanation": (
                "Each of four tasks holds the lock over a switch of tasks, so that the next one must wait "
                "and be woken. The time is CPU time of the thread for a turn."
            ),
            "size_name": "turns",
            "sizes": {"quick": [2000], "standard": [4000], "full": [8000]},
            "growth": False,
            "ways": ["asyncio.Lock", "Lock", "Lock(fair=True)"],
            "claims": [
                {"topic": "turns in one loop", "of": {"by": "asyncio.Lock"}, "over": {"by": "Lock"}},
            ],
        },
        "notify-all": {
            "title": "A condition's notify_all()",
            "question": "How long does it take until n threads that wait on a condition have had its lock?",
            "explanation": (
                "n threads wait. The time is that from notify_all() until the last of them has had the lock "
                "and returned. threading's condition has a lock for each that waits, and wakes each by "
                "itself."
            ),
            "ways": ["threading.Condition", "Condition"],
            "claims": [
                {
                    "topic": "notify_all, 100",
                    "of": {"by": "threading.Condition", "n": 100},
                    "over": {"by": "Condition", "n": 100},
                },
                {
                    "topic": "notify_all, growth",
                    "main": False,
                    "kind": "exponent",
                    "of": {"by": "Condition"},
                    "more_than": 1.25,
                    "says": "the time to notify all n that wait on a Condition grows faster than n",
                    "otherwise": "the time to notify all n that wait on a Condition grows in step with n",
                },
            ],
        },
        "set": {
            "title": "An event's set()",
            "question": "How long does it take until n threads that wait for an event run?",
            "explanation": "n threads wait. The time is that from set() until the last of them has returned.",
            "ways": ["threading.Event", "Event"],
            "claims": [
                {
                    "topic": "set, 100",
                    "of": {"by": "threading.Event", "n": 100},
                    "over": {"by": "Event", "n": 100},
                },
                {
                    "topic": "set, growth",
                    "main": False,
                    "kind": "exponent",
                    "of": {"by": "Event"},
                    "more_than": 1.25,
                    "says": "the time until all n that wait for an Event run grows faster than n",
                    "otherwise": "the time until all n that wait for an Event run grows in step with n",
                },
            ],
        },
        "cancel": {
            "title": "Cancelling tasks that wait",
            "question": "How does the time to cancel n tasks that wait, all at once, grow with n?",
            "explanation": (
                "n tasks wait for a lock that is held, and all are cancelled. The time is CPU time of the "
                "thread until the last has ended. A task that leaves a queue must be found in it: by a walk, "
                "that is n steps for each of n; by its place, one."
            ),
            "size_name": "tasks",
            "sizes": {
                "quick": [500, 1000, 2000],
                "standard": [250, 500, 1000, 2000, 4000],
                "full": [250, 500, 1000, 2000, 4000, 8000],
            },
            "ways": ["asyncio.Lock", "Lock", "Semaphore(1)"],
            "claims": [
                {
                    "topic": "cancelling, growth",
                    "kind": "exponent",
                    "of": {"by": "Lock"},
                    "more_than": 1.25,
                    "says": "the time to cancel n tasks that wait for a Lock grows faster than n",
                    "otherwise": "the time to cancel n tasks that wait for a Lock grows in step with n",
                },
                {
                    "topic": "cancelling, Semaphore",
                    "main": False,
                    "kind": "exponent",
                    "of": {"by": "Semaphore(1)"},
                    "more_than": 1.25,
                    "says": "the time to cancel n tasks that wait for a Semaphore grows faster than n",
                    "otherwise": "the time to cancel n tasks that wait for a Semaphore grows in step with n",
                },
            ],
        },
    },
    "sizes": {"quick": [50, 100, 200], "standard": [50, 100, 200, 400, 800], "full": [100, 300, 1000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import asyncio  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402


def other_loop(by, n):
    """The loop runs in a thread of its own; this one wakes what waits there."""
    ready = threading.Event()
    wakes = []

    async def with_the_loop():
        futures = [asyncio.get_running_loop().create_future() for _ in range(n)]
        soon = asyncio.get_running_loop().call_soon_threadsafe
        wakes.extend(lambda future=future: soon(future.set_result, None) for future in futures)
        ready.set()
        await asyncio.gather(*futures)

    async def with_a_semaphore():
        semaphore = own.made("Semaphore(0, fair=True)")
        tasks = [asyncio.ensure_future(semaphore.acquire_async()) for _ in range(n)]
        while semaphore.statistics().waiting < n:
            await asyncio.sleep(0)
        wakes.extend([semaphore.release] * n)
        ready.set()
        await asyncio.gather(*tasks)

    main = with_a_semaphore if by == "Semaphore" else with_the_loop
    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    ready.wait()
    begin = time.thread_time()
    for wake in wakes:
        wake()
    spent = time.thread_time() - begin
    thread.join()
    return spent / n


def same_loop(by, n):
    async def task(lock):
        for _ in range(n // 4):
            async with lock:
                await asyncio.sleep(0)

    async def main():
        lock = own.made(by)
        begin = time.thread_time()
        await asyncio.gather(*(task(lock) for _ in range(4)))
        return (time.thread_time() - begin) / n

    asyncio.run(main())
    return asyncio.run(main())


def all_awake(n, body, waiting, go):
    """Seconds from go() until the last of n threads has returned from body()."""
    left = [None] * n
    done = threading.Event()

    def run(_):
        body()
        left.pop()
        if not left:
            done.set()

    threads = probe.start(n, run)
    probe.wait_until(lambda: waiting() == n, "all threads wait")
    probe.wait_until_blocked(probe.other_threads)
    begin = time.perf_counter()
    go()
    done.wait()
    spent = time.perf_counter() - begin
    for thread in threads:
        thread.join()
    return spent


def notify_all(by, n):
    condition = own.made(by)

    def wait():
        with condition:
            condition.wait()

    def go():
        with condition:
            condition.notify_all()

    return all_awake(n, wait, waiting_for(condition, condition), go)


def set_event(by, n):
    event = own.made(by)
    return all_awake(n, event.wait, waiting_for(event, getattr(event, "_cond", None)), event.set)


def waiting_for(one, of_threading):
    """Tells how many wait; threading's say it nowhere, and keep a list."""
    if hasattr(one, "statistics"):
        return lambda: one.statistics().waiting
    return lambda: len(of_threading._waiters)


def cancel(by, n):
    async def wait(lock):
        async with lock:
            raise probe.Failed("a cancelled task was let in")

    async def main():
        lock = own.made(by)
        async with lock:
            tasks = [asyncio.create_task(wait(lock)) for _ in range(n)]
            await asyncio.sleep(0)  # all of them wait now
            begin = time.thread_time()
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
            spent = time.thread_time() - begin
        if not all(isinstance(one, asyncio.CancelledError) for one in ended):
            raise probe.Failed("not every task was cancelled")
        return spent

    return asyncio.run(main())


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "other-loop": other_loop,
            "same-loop": same_loop,
            "notify-all": notify_all,
            "set": set_event,
            "cancel": cancel,
        },
    )

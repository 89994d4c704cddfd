"""What a pair of calls costs that no other thread or task competes with: acquire and release, put and get."""

EXPERIMENT = {
    "id": "own.pair",
    "explanation": (
        "One thread or task makes the calls in a loop. The time is CPU time of its thread for a pair, the "
        "loop included."
    ),
    "size_name": "pairs",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [{"name": "took_s", "title": "took", "unit": "s"}],
    "cases": {
        "lock": {
            "title": "A lock, by calls",
            "question": "What do acquire() and release() cost of a lock that no other thread wants?",
            "ways": ["threading.Lock", "Lock", "Lock(fair=True)", "threading.RLock", "RLock"],
            "claims": [
                {"topic": "Lock", "of": {"by": "threading.Lock"}, "over": {"by": "Lock"}},
                {"topic": "RLock", "of": {"by": "threading.RLock"}, "over": {"by": "RLock"}},
            ],
        },
        "lock-with": {
            "title": "A lock, by with",
            "question": "What does `with lock` cost when no other thread wants the lock?",
            "ways": ["threading.Lock", "Lock", "aiologic.Lock"],
            "claims": [
                {"topic": "with Lock", "of": {"by": "threading.Lock"}, "over": {"by": "Lock"}},
                {"topic": "with aiologic's", "of": {"by": "aiologic.Lock"}, "over": {"by": "Lock"}},
            ],
        },
        "semaphore": {
            "title": "A semaphore",
            "question": "What do acquire() and release() cost of a semaphore that has a permit left?",
            "ways": ["threading.Semaphore", "Semaphore"],
            "claims": [
                {"topic": "Semaphore", "of": {"by": "threading.Semaphore"}, "over": {"by": "Semaphore"}}
            ],
        },
        "lock-in-tasks": {
            "title": "A lock in a task",
            "question": "What does `async with lock` cost when no other task wants the lock?",
            "ways": [
                "asyncio.Lock",
                "Lock",
                "RLock",
                "RWLock().reading",
                "RWLock().writing",
                "aiologic.Lock",
            ],
            "claims": [
                {"topic": "async with Lock", "of": {"by": "asyncio.Lock"}, "over": {"by": "Lock"}},
                {"topic": "async with aiologic's", "of": {"by": "aiologic.Lock"}, "over": {"by": "Lock"}},
                {"topic": "async with RLock", "of": {"by": "asyncio.Lock"}, "over": {"by": "RLock"}},
            ],
        },
        "lock-calls-in-tasks": {
            "title": "A lock in a task, by calls",
            "question": "What do an awaited acquire and release() cost when no other task wants the lock?",
            "ways": ["asyncio.Lock", "Lock"],
            "claims": [
                {"topic": "Lock, awaited", "of": {"by": "asyncio.Lock"}, "over": {"by": "Lock"}},
            ],
        },
        "queue": {
            "title": "A queue",
            "question": "What do put and get cost of a queue that no other thread uses?",
            "ways": [
                "queue.SimpleQueue",
                "SimpleQueue",
                "queue.Queue",
                "Queue",
                "Queue(fair=True)",
                "queue.Queue(10)",
                "channel(10)",
                "aiologic.SimpleQueue",
                "aiologic.Queue",
            ],
            "claims": [
                {"topic": "Queue", "of": {"by": "queue.Queue"}, "over": {"by": "Queue"}},
                {"topic": "SimpleQueue", "of": {"by": "queue.SimpleQueue"}, "over": {"by": "SimpleQueue"}},
                {"topic": "channel", "of": {"by": "queue.Queue(10)"}, "over": {"by": "channel(10)"}},
            ],
        },
        "queue-in-tasks": {
            "title": "A queue in a task",
            "question": "What do an awaited put and get cost of a queue that no other task uses?",
            "ways": [
                "asyncio.Queue",
                "SimpleQueue",
                "Queue",
                "Queue(fair=True)",
                "aiologic.Queue",
                "janus.Queue",
                "culsans.Queue",
            ],
            "claims": [
                {"topic": "Queue, awaited", "of": {"by": "asyncio.Queue"}, "over": {"by": "Queue"}},
            ],
        },
    },
    "sizes": {"quick": [20000], "standard": [100000], "full": [200000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

from functools import partial  # noqa: E402

import own  # noqa: E402

AWAITED = {"asyncio.Lock": "await x.acquire(); x.release()", "Lock": "await x.acquire_async(); x.release()"}


def of_object(statement, by, n):
    return own.pair(statement, n, lambda: {"x": own.made(by)})


def queue(statement, in_tasks, by, n):
    return own.pair(statement, n, lambda: dict(zip(("put", "get"), own.ends(by, in_tasks), strict=True)))


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "lock": partial(of_object, "x.acquire(); x.release()"),
            "lock-with": partial(of_object, "with x: pass"),
            "semaphore": partial(of_object, "x.acquire(); x.release()"),
            "lock-in-tasks": partial(of_object, "async with x: pass"),
            "lock-calls-in-tasks": lambda by, n: of_object(AWAITED[by], by, n),
            "queue": partial(queue, "put(1); get()", False),
            "queue-in-tasks": partial(queue, "await put(1); await get()", True),
        },
    )

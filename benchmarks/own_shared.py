"""What primitives cost that processes share, or interpreters of one process."""

EXPERIMENT = {
    "id": "own.shared",
    "size_name": "round trips",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [
        {"name": "took_s", "title": "took", "unit": "s"},
        {"name": "cpu_s", "title": "CPU", "unit": "s"},
    ],
    "cases": {
        "lock": {
            "title": "A lock that processes share",
            "question": "What do acquire() and release() cost of a lock that no other process wants?",
            "explanation": "CPU time of the thread for a pair, the loop included.",
            "size_name": "pairs",
            "sizes": {"quick": [50000], "standard": [100000], "full": [200000]},
            "ways": ["multiprocessing.Lock", "shared.Lock"],
            "claims": [
                {
                    "topic": "shared Lock",
                    "of": {"by": "multiprocessing.Lock"},
                    "over": {"by": "shared.Lock"},
                }
            ],
        },
        "processes": {
            "title": "A round trip between two processes",
            "question": "How long does a message take to another process and back?",
            "explanation": "32 bytes go to a process that sends each message back at once. The clock's time.",
            "ways": [
                "multiprocessing.Queue",
                "multiprocessing.SimpleQueue",
                "shared.Queue",
                "shared.Queue in a task",
            ],
            "claims": [
                {
                    "topic": "shared Queue",
                    "of": {"by": "multiprocessing.Queue"},
                    "over": {"by": "shared.Queue"},
                    "more_than": 5,
                    "says": "a message takes less than a fifth of the time by a shared.Queue",
                    "otherwise": "a message takes more than a fifth of the time by a shared.Queue",
                }
            ],
        },
        "interpreters": {
            "title": "A round trip between two interpreters",
            "question": "How long does a small tuple take to another interpreter of the process and back?",
            "explanation": (
                "Each interpreter has a GIL and a thread of its own. The queue of concurrent.interpreters "
                "looks every 10 ms whether there is something. Two threads of one interpreter are the floor. "
                "The clock's time, and CPU time of the process."
            ),
            "ways": ["concurrent.interpreters", "Queue", "SimpleQueue", "queue.SimpleQueue in two threads"],
            "claims": [
                {
                    "topic": "interpreters",
                    "of": {"by": "concurrent.interpreters"},
                    "over": {"by": "Queue"},
                    "more_than": 100,
                    "says": "a tuple takes less than a hundredth of the time by a Queue",
                    "otherwise": "a tuple takes more than a hundredth of the time by a Queue",
                }
            ],
        },
        "interpreters-large": {
            "title": "64 KiB between two interpreters",
            "question": "How long do 64 KiB take to another interpreter of the process and back?",
            "explanation": "As for the small tuple: bytes are copied.",
            "ways": ["concurrent.interpreters", "Queue", "SimpleQueue", "queue.SimpleQueue in two threads"],
        },
    },
    "sizes": {"quick": [1000], "standard": [2000], "full": [4000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import asyncio  # noqa: E402
import multiprocessing  # noqa: E402
import queue  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402

import own  # noqa: E402
import probe  # noqa: E402

CONTEXT = multiprocessing.get_context("fork")
MESSAGE = b"x" * 32
POLLS = 50
"""So many fewer round trips by a queue that polls."""


def made(by):
    kind = by.partition(" ")[0].partition(".")[2]
    return getattr(own.peer("fairlead.sync.shared") if by.startswith("shared") else CONTEXT, kind)()


def lock(by, n):
    one = made(by)
    return own.pair("acquire(); release()", n, lambda: {"acquire": one.acquire, "release": one.release})


def processes(by, n):
    there, back = made(by), made(by)
    process = CONTEXT.Process(target=echo, args=(there, back, n + n // 10))
    process.start()
    back.get()

    def go(count):
        for _ in range(count):
            there.put(MESSAGE)
            back.get()

    async def go_async(count):
        for _ in range(count):
            await there.put_async(MESSAGE)
            await back.get_async()

    async def in_a_task():
        await go_async(n // 10)
        begin = time.perf_counter()
        await go_async(n)
        return time.perf_counter() - begin

    if by.endswith("task"):
        took = asyncio.run(in_a_task())
    else:
        go(n // 10)
        begin = time.perf_counter()
        go(n)
        took = time.perf_counter() - begin
    process.join()
    return took / n


def interpreters(item, by, n):
    if sys.version_info < (3, 14):
        raise probe.Skipped("needs Python 3.14 or newer, for concurrent.interpreters")
    from concurrent import interpreters

    there, back = queue.SimpleQueue(), queue.SimpleQueue()
    call = echo
    if by.startswith("concurrent"):
        n = n // POLLS + 1
        there, back = interpreters.create_queue(), interpreters.create_queue()
    elif not by.startswith("queue."):
        there, back = (own.peer("fairlead.sync").share(own.made(by)) for _ in range(2))
    if not by.startswith("queue."):
        call = partial(interpreters.create().call, echo)
    (thread,) = probe.start(1, lambda _: call(there, back, n))
    back.get()
    clocks = own.Clocks()
    for _ in range(n):
        there.put(item)
        back.get()
    found = clocks.each(n)
    thread.join()
    return {"took_s": found["clock_s"], "cpu_s": found["took_s"]}


def echo(there, back, n):
    back.put(b"ready")
    for _ in range(n):
        back.put(there.get())


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "lock": lock,
            "processes": processes,
            "interpreters": partial(interpreters, ("text", 1, 2.5, None)),
            "interpreters-large": partial(interpreters, b"x" * 65536),
        },
    )

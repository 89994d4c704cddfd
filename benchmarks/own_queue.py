"""What queues cost: from tasks to tasks, from a thread to a task and back, and when many threads use one."""

EXPERIMENT = {
    "id": "own.queue",
    "smallest": 1,
    "size_name": "objects",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [
        {"name": "took_s", "title": "took", "unit": "s"},
        {"name": "clock_s", "title": "clock", "unit": "s"},
    ],
    "cases": {
        "tasks": {
            "title": "A queue without a bound",
            "question": "What does an object cost that goes from a task to a task of the same loop?",
            "explanation": (
                "Four tasks put and four get. CPU time of the process for an object, and the clock's."
            ),
            "ways": [
                "asyncio.Queue",
                "Queue",
                "Queue(fair=True)",
                "aiologic.Queue",
                "janus.Queue",
                "culsans.Queue",
            ],
            "claims": [
                {"topic": "task to task", "of": {"by": "asyncio.Queue"}, "over": {"by": "Queue"}},
                {"topic": "aiologic, tasks", "of": {"by": "aiologic.Queue"}, "over": {"by": "Queue"}},
                {"topic": "janus, tasks", "of": {"by": "janus.Queue"}, "over": {"by": "Queue"}},
                {"topic": "culsans, tasks", "of": {"by": "culsans.Queue"}, "over": {"by": "Queue"}},
            ],
        },
        "room": {
            "title": "A queue with room for n objects",
            "question": (
                "What does an object cost that goes from a task to a task through a queue with little room?"
            ),
            "explanation": (
                "Four tasks put and four get 6,000 objects. CPU time of the process for an object, and the "
                "clock's. With room for two nearly every call must wait: what is measured is the switch of "
                "tasks."
            ),
            "size_name": "objects of room",
            "sizes": {"quick": [2], "standard": [1, 2, 10, 100], "full": [1, 2, 10, 100]},
            "ways": [
                "asyncio.Queue",
                "Queue",
                "Queue(fair=True)",
                "aiologic.Queue",
                "janus.Queue",
                "culsans.Queue",
            ],
            "claims": [
                {
                    "topic": "with room for two",
                    "of": {"by": "Queue", "n": 2},
                    "over": {"by": "asyncio.Queue", "n": 2},
                }
            ],
        },
        "thread-to-task": {
            "title": "From a thread to a task and back",
            "question": "What does it cost a thread to put an object and to get a task's answer?",
            "explanation": (
                "A thread puts an object, a task of a loop gets it and puts it into a second queue, where "
                "the thread waits for it. CPU time of the process for a round trip, and the clock's."
            ),
            "size_name": "round trips",
            "sizes": {"quick": [1000], "standard": [2000], "full": [4000]},
            "ways": ["Queue", "janus.Queue", "culsans.Queue", "aiologic.Queue"],
            "claims": [
                {"topic": "janus, to a task", "of": {"by": "janus.Queue"}, "over": {"by": "Queue"}},
                {"topic": "culsans, to a task", "of": {"by": "culsans.Queue"}, "over": {"by": "Queue"}},
                {"topic": "aiologic, to a task", "of": {"by": "aiologic.Queue"}, "over": {"by": "Queue"}},
            ],
        },
        "threads": {
            "title": "One queue for n threads",
            "question": "What does a pair of put and get cost when n threads use one queue?",
            "explanation": (
                "Each thread puts an object and gets one, of the same queue. The clock's time for a pair, of "
                "all threads together: without a GIL it says whether a queue becomes slower with every "
                "thread, with one what the switches cost."
            ),
            "size_name": "threads",
            "sizes": {"quick": [1, 4], "standard": [1, 2, 4], "full": [1, 2, 4, 8]},
            "ways": ["queue.Queue", "Queue", "Queue(fair=True)", "aiologic.Queue"],
            "claims": [
                {
                    "topic": "one queue, 4 threads",
                    "of": {"by": "queue.Queue", "n": 4},
                    "over": {"by": "Queue", "n": 4},
                }
            ],
        },
        "lock-threads": {
            "title": "One lock for n threads",
            "question": "What does `with lock` cost when n threads use one lock?",
            "explanation": "The clock's time for a pair of acquire and release, of all threads together.",
            "size_name": "threads",
            "sizes": {"quick": [1, 4], "standard": [1, 2, 4], "full": [1, 2, 4, 8]},
            "ways": ["threading.Lock", "Lock"],
            "claims": [
                {
                    "topic": "one lock, 4 threads",
                    "of": {"by": "threading.Lock", "n": 4},
                    "over": {"by": "Lock", "n": 4},
                }
            ],
        },
    },
    "sizes": {"quick": [6000], "standard": [12000], "full": [24000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import asyncio  # noqa: E402
import threading  # noqa: E402

import own  # noqa: E402

OBJECTS = 6_000
PAIRS = 20_000


def tasks_to_tasks(by, n):
    async def main():
        put, get = own.ends(by, in_tasks=True)

        async def producer():
            for _ in range(n // 4):
                await put(1)

        async def consumer():
            for _ in range(n // 4):
                await get()

        clocks = own.Clocks()
        await asyncio.gather(*(producer() for _ in range(4)), *(consumer() for _ in range(4)))
        return clocks.each(n)

    return asyncio.run(main())


def with_room(by, n):
    made = f"{by[:-1]}, maxsize={n})" if by.endswith(")") else f"{by}(maxsize={n})"
    return tasks_to_tasks(made, OBJECTS)


def thread_to_task(by, n):
    async def main():
        there, back = own.made(by), own.made(by)
        (put, _), (_, get) = own.ends(by, line=there), own.ends(by, in_tasks=True, line=there)
        (_, get_back), (put_back, _) = own.ends(by, line=back), own.ends(by, in_tasks=True, line=back)

        def ask():
            for number in range(n):
                put(number)
                get_back()

        thread = threading.Thread(target=ask)
        clocks = own.Clocks()
        thread.start()
        for _ in range(n):
            await put_back(await get())
        found = clocks.each(n)
        await asyncio.to_thread(thread.join)
        return found

    return asyncio.run(main())


def one_queue(by, n):
    put, get = own.ends(by)

    def body():
        for number in range(PAIRS // n):
            put(number)
            get()

    return own.in_threads(n, body).each(PAIRS)["clock_s"]


def one_lock(by, n):
    lock = own.made(by)

    def body():
        for _ in range(PAIRS // n):
            with lock:
                pass

    return own.in_threads(n, body).each(PAIRS)["clock_s"]


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "tasks": tasks_to_tasks,
            "room": with_room,
            "thread-to-task": thread_to_task,
            "threads": one_queue,
            "lock-threads": one_lock,
        },
    )

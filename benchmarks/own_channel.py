"""What channels cost, with room and without, to one and to many; and to wait for the first of two."""

EXPERIMENT = {
    "id": "own.channel",
    "size_name": "objects",
    "growth": False,
    "ways": "by",
    "value": "took_s",
    "metrics": [
        {"name": "took_s", "title": "took", "unit": "s"},
        {"name": "clock_s", "title": "clock", "unit": "s"},
    ],
    "explanation": "CPU time of the process for an object received, and the clock's.",
    "cases": {
        "tasks": {
            "title": "From task to task",
            "question": "What does an object cost that one task sends and another receives?",
            "ways": ["asyncio.Queue", "anyio", "channel", "trio", "channel in trio"],
            "claims": [
                {"topic": "asyncio's Queue", "of": {"by": "asyncio.Queue"}, "over": {"by": "channel"}},
                {"topic": "anyio's stream", "of": {"by": "anyio"}, "over": {"by": "channel"}},
                {"topic": "trio's channel", "of": {"by": "trio"}, "over": {"by": "channel in trio"}},
            ],
        },
        "meeting-tasks": {
            "title": "From task to task without room",
            "question": "What does an object cost if the task that sends waits until it is received?",
            "ways": ["anyio", "channel", "trio", "channel in trio"],
            "claims": [
                {"topic": "anyio, no room", "of": {"by": "anyio"}, "over": {"by": "channel"}},
                {"topic": "trio, no room", "of": {"by": "channel in trio"}, "over": {"by": "trio"}},
            ],
        },
        "meeting-threads": {
            "title": "From thread to thread without room",
            "question": "What does an object cost if the thread that sends waits until it is received?",
            "ways": ["lock and condition", "channel"],
            "claims": [
                {"topic": "threads, no room", "of": {"by": "lock and condition"}, "over": {"by": "channel"}}
            ],
        },
        "broadcast": {
            "title": "From one to ten",
            "question": "What does an object cost that one task sends to ten?",
            "ways": ["asyncio.Queue for each", "broadcast"],
            "claims": [
                {"topic": "to ten", "of": {"by": "asyncio.Queue for each"}, "over": {"by": "broadcast"}}
            ],
        },
        "select-ready": {
            "title": "The first of two that is ready",
            "question": "What does it cost to take an object from whichever of two queues has one?",
            "ways": ["get_nowait", "select"],
            "claims": [
                {"topic": "select, ready", "of": {"by": "get_nowait"}, "over": {"by": "select"}},
            ],
        },
        "select-threads": {
            "title": "The first of two, in a thread",
            "question": "What does it cost a thread to wait for the first of two queues?",
            "explanation": (
                "One thread asks by either of two queues, another answers. CPU time of the process for an "
                "answer, and the clock's. Without select a thread asks one queue after the other, with a "
                "time-out."
            ),
            "sizes": {"quick": [400], "standard": [800], "full": [1600]},
            "ways": ["get(timeout=0.001)", "select", "select without room"],
            "claims": [
                {"topic": "select, threads", "of": {"by": "get(timeout=0.001)"}, "over": {"by": "select"}}
            ],
        },
        "select-tasks": {
            "title": "The first of two, in a task",
            "question": "What does it cost a task to wait for the first of two queues?",
            "explanation": (
                "One task asks by either of two queues, another answers. CPU time of the process for an "
                "answer, and the clock's. A group of tasks of which the first cancels the others may lose "
                "what these have taken when they are cancelled; here the questions come one at a time."
            ),
            "sizes": {"quick": [1000], "standard": [4000], "full": [8000]},
            "ways": ["asyncio", "anyio", "select", "trio", "select in trio"],
            "claims": [
                {"topic": "asyncio.wait", "of": {"by": "asyncio"}, "over": {"by": "select"}},
                {"topic": "anyio's group", "of": {"by": "anyio"}, "over": {"by": "select"}},
                {"topic": "trio's nursery", "of": {"by": "trio"}, "over": {"by": "select in trio"}},
            ],
        },
    },
    "sizes": {"quick": [4000], "standard": [8000], "full": [16000]},
    "timeout_s": 60,
    "pythons": ">=3.11",
    "needs": ["fairlead"],
}

import asyncio  # noqa: E402
import queue  # noqa: E402
import threading  # noqa: E402
from functools import partial  # noqa: E402

import own  # noqa: E402

RECEIVERS = 10


def run(by, main):
    """In the loop that the way names."""
    return own.peer("trio").run(main) if "trio" in by else asyncio.run(main())


async def together(by, *functions):
    """Tasks of that loop, until all have returned."""
    if "trio" not in by:
        await asyncio.gather(*(function() for function in functions))
        return
    async with own.peer("trio").open_nursery() as nursery:
        for function in functions:
            nursery.start_soon(function)


def stream(by, room):
    """What sends and what receives, in tasks."""
    if by in ("anyio", "trio"):
        library = own.peer(by)
        open_stream = library.create_memory_object_stream if by == "anyio" else library.open_memory_channel
        sender, receiver = open_stream(room)
        return sender.send, receiver.receive
    return own.ends("asyncio.Queue(10)" if by.startswith("asyncio") else f"channel({room})", in_tasks=True)


def tasks(room, by, n):
    async def main():
        put, get = stream(by, room)

        async def send():
            for number in range(n):
                await put(number)

        async def receive():
            for _ in range(n):
                await get()

        clocks = own.Clocks()
        await together(by, send, receive)
        return clocks.each(n)

    return run(by, main)


class ByCondition:
    """A rendezvous as one makes it of a lock and a condition."""

    def __init__(self):
        self._changed = threading.Condition()
        self._offered = []
        self._taken = self._given = 0

    def send(self, item):
        with self._changed:
            mine = self._given
            self._given += 1
            self._offered.append(item)
            self._changed.notify_all()
            while self._taken <= mine:
                self._changed.wait()

    def receive(self):
        with self._changed:
            while not self._offered:
                self._changed.wait()
            self._taken += 1
            self._changed.notify_all()
            return self._offered.pop(0)


def meeting_threads(by, n):
    line = ByCondition()
    put, get = own.ends("channel(0)") if by == "channel" else (line.send, line.receive)
    return in_turns(n, put, get, lambda _: None, lambda: None)


def in_turns(n, ask, get, answer, hear):
    """A thread asks n times and hears the answer each time, another answers."""

    def serve():
        for _ in range(n):
            answer(get())

    thread = threading.Thread(target=serve)
    clocks = own.Clocks()
    thread.start()
    for number in range(n):
        ask(number)
        hear()
    thread.join()
    return clocks.each(n)


def broadcast(by, n):
    many = n // RECEIVERS + 1

    async def main():
        if by == "broadcast":
            sender, receiver = own.made(f"broadcast({many})")
            gets = [receiver.clone().receive_async for _ in range(RECEIVERS)]
            puts = [sender.send]
        else:
            lines = [asyncio.Queue() for _ in range(RECEIVERS)]
            gets, puts = [line.get for line in lines], [line.put_nowait for line in lines]

        async def consume(get):
            for _ in range(many):
                await get()

        clocks = own.Clocks()
        listening = [asyncio.ensure_future(consume(get)) for get in gets]
        for number in range(many):
            for put in puts:
                put(number)
            if number % 10 == 0:
                await asyncio.sleep(0)
        await asyncio.gather(*listening)
        return clocks.each(many * RECEIVERS)

    return asyncio.run(main())


def first_in_turns(lines, **timeout):
    """What one of the queues has; each is asked, with a time-out or without, until one has something."""
    while True:
        for line in lines:
            try:
                return line.get(**timeout) if timeout else line.get_nowait()
            except queue.Empty:
                continue


def selected(waits):
    return own.peer("fairlead.sync").select(*waits).value


def select_ready(by, n):
    lines = [own.made("Queue" if by == "select" else "queue.Queue") for _ in range(2)]
    clocks = own.Clocks()
    for number in range(n):
        lines[1].put(number)
        if by == "select":
            selected(line.get_async() for line in lines)
        else:
            first_in_turns(lines)
    return clocks.each(n)


def select_threads(by, n):
    if by == "select without room":
        lines, (answer, hear) = [own.made("channel(0)") for _ in range(2)], own.ends("channel(0)")
        return in_turns(
            n,
            lambda number: selected(sender.send_async(number) for sender, _ in lines),
            lambda: selected(receiver.receive_async() for _, receiver in lines),
            answer,
            hear,
        )
    kind = "Queue" if by == "select" else "queue.Queue"
    lines, (answer, hear) = [own.made(kind) for _ in range(2)], own.ends(kind)
    get = (
        (lambda: selected(line.get_async() for line in lines))
        if by == "select"
        else (lambda: first_in_turns(lines, timeout=0.001))
    )
    return in_turns(n, lambda number: lines[number % 2].put(number), get, answer, hear)


async def first_done(gets):
    waits = [asyncio.ensure_future(get()) for get in gets]
    done, pending = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for one in pending:
        one.cancel()
    return done.pop().result()


async def first_of_group(open_group, gets):
    found = []
    async with open_group() as group:

        async def race(get):
            found.append(await get())
            group.cancel_scope.cancel()

        for get in gets:
            group.start_soon(race, get)
    return found[0]


async def first_selected(gets):
    return (await own.peer("fairlead.sync").select_async(*(get() for get in gets))).value


def select_tasks(by, n):
    async def main():
        if by.startswith("select"):
            lines, first = [own.ends("Queue", in_tasks=True) for _ in range(3)], first_selected
        else:
            lines, first = [stream(by, 10) for _ in range(3)], first_done
        if by in ("anyio", "trio"):
            library = own.peer(by)
            group = library.create_task_group if by == "anyio" else library.open_nursery
            first = partial(first_of_group, group)
        *asked, (answer, hear) = lines

        async def serve():
            for _ in range(n):
                await answer(await first([get for _, get in asked]))

        async def ask():
            for number in range(n):
                await asked[number % 2][0](number)
                await hear()

        clocks = own.Clocks()
        await together(by, serve, ask)
        return clocks.each(n)

    return run(by, main)


if __name__ == "__main__":
    own.main(
        EXPERIMENT,
        {
            "tasks": partial(tasks, 10),
            "meeting-tasks": partial(tasks, 0),
            "meeting-threads": meeting_threads,
            "broadcast": broadcast,
            "select-ready": select_ready,
            "select-threads": select_threads,
            "select-tasks": select_tasks,
        },
    )

"""What tools/sync_storms.py repeats: each kind of call of fairlead.sync, and of its peers, and what must hold
once one of these calls was interrupted."""

from __future__ import annotations

import asyncio
import queue
import random
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, count, repeat
from operator import call
from typing import Any, NamedTuple

import fairlead.sync as fs
from fairlead.errors import BrokenBarrierError, ChannelClosedError, WaitTimeoutError
from fairlead.lowlevel import Waiter
from fairlead.sync import extra

PATIENCE_S = 20.0
"""Longer than any wait that ends takes; a machine under load is slow."""
SHORT_S = 0.02
"""After this time the other thread looks whether the round is over."""
chance = random.Random()
nap = partial(time.sleep, 1e-6)
look = partial(signal.pthread_sigmask, signal.SIG_BLOCK, ())
"""Runs the handlers of signals that have come: C does that only where a signal interrupts a wait."""


class Trial(NamedTuple):
    """One round's. Of tasks, the first and the last are coroutine functions."""

    statement: Callable[[], Any]
    check: Callable[[], str]
    """What is wrong once all is quiet: "", "kept", or what is broken."""
    other: Callable[[], Any]
    """What the other thread or task repeats meanwhile."""


WINDOW_IN_WITH = sys.version_info[:2] == (3, 14)
"""There `with` calls __enter__ as any function, and runs handlers between that and its block."""


class Form(NamedTuple):
    make: Callable[[], Trial]
    may_keep: bool = False
    tasks: bool = False
    peer: str = ""


def pause() -> None:
    time.sleep(chance.random() * 3e-5)


def peer_of(peers: str, style: str) -> str:
    of_tasks = style in ("async", "await")
    return next((one for one in peers.split() if one.startswith("asyncio") == of_tasks), "")


LATE = queue.Full, queue.Empty, WaitTimeoutError, BrokenBarrierError


def calling(
    style: str,
    calls: Iterator[Callable[[], Any]],
    other: Callable[[], Any],
    check: Callable[[list[Any]], str],
    after: Callable[[Any], Any] = bool,
) -> Trial:
    """One call after the other, whose results are kept; the other's are passed to `after`."""
    results: deque[Any] = deque()

    def statement() -> None:
        for each in calls:
            result = each()
            results.append(result)

    def statement_from_c() -> None:
        results.extend(map(call, chain.from_iterable(zip(calls, repeat(look), strict=False))))

    async def statement_awaited() -> None:
        for each in calls:
            result = await each()
            results.append(result)
            await asyncio.sleep(0)

    def other_paused() -> None:
        with suppress(*LATE):
            result = other()
            after(result)
        pause()

    async def other_awaited() -> None:
        result = other()
        after(await result if hasattr(result, "__await__") else result)
        await asyncio.sleep(0)

    use = {"C": statement_from_c, "await": statement_awaited}.get(style, statement)
    return Trial(
        use,
        lambda: check([*results][:: 1 + (style == "C")]),
        other_awaited if style == "await" else other_paused,
    )


def method(one: Any, name: str, style: str) -> Any:
    """That of threads, or of tasks."""
    return (
        getattr(one, name + "_async", None) or getattr(one, name) if style == "await" else getattr(one, name)
    )


def stuck(one: Any) -> bool:
    """Of what is Python: whether its own lock was left locked."""
    for lock in (getattr(one, name, None) for name in ("_guard", "_lock", "_cond", "mutex")):
        if type(lock).__module__ in ("_thread", "threading"):
            if not lock.acquire(timeout=SHORT_S):
                return True
            lock.release()
    return False


def waiters(one: Any) -> int:
    statistics = one.statistics() if hasattr(one, "statistics") else None
    names = "waiting", "getting", "putting", "joining", "sending", "receiving"
    return sum(getattr(statistics, name, 0) for name in names)


def whole(*primitives: Any) -> str:
    if any(stuck(one) for one in primitives):
        return "its own lock is held for ever"
    return "a waiter is left" if any(waiters(one) for one in primitives) else ""


def late(many: int, what: str) -> str:
    return ("", "kept")[many] if many in (0, 1) else f"{many} {what}"


# What is passed on


def drained(get_nowait: Callable[[], Any]) -> list[Any]:
    rest = []
    with suppress(queue.Empty, asyncio.QueueEmpty, ChannelClosedError):
        while True:
            rest.append(get_nowait())
    return rest


def conserved(sent: int, got: list[int], ordered: bool = False) -> str:
    """Of the numbers from 0 to sent - 1."""
    seen = Counter(got)
    lost = [number for number in range(sent) if number not in seen]
    if max(seen.values(), default=1) > 1 or len(seen) + len(lost) > sent:
        return "an object came twice, or from nowhere"
    if ordered and got != sorted(seen):
        return "the order is lost"
    return late(len(lost), "objects are lost")


LINES: dict[str, tuple[Callable[[], Any], str]] = {
    "Queue": (lambda: fs.Queue(1), "queue.Queue asyncio.Queue"),
    "LifoQueue": (lambda: fs.LifoQueue(2), "queue.LifoQueue"),
    "PriorityQueue": (lambda: fs.PriorityQueue(2), "queue.PriorityQueue"),
    "SimpleQueue": (fs.SimpleQueue, "queue.SimpleQueue"),
    "channel(1)": (lambda: fs.channel(1), ""),
    "channel(0)": (lambda: fs.channel(0), ""),
    "broadcast": (lambda: fs.broadcast(1 << 16), ""),
    "queue.Queue": (lambda: queue.Queue(1), ""),
    "queue.LifoQueue": (lambda: queue.LifoQueue(2), ""),
    "queue.PriorityQueue": (lambda: queue.PriorityQueue(2), ""),
    "queue.SimpleQueue": (queue.SimpleQueue, ""),
    "asyncio.Queue": (lambda: asyncio.Queue(1), ""),
}


def passing(make: Callable[[], Any], gets: bool, style: str) -> Trial:
    line = make()
    ends = line if isinstance(line, tuple) else (line, line)
    names = ("send", "receive") if isinstance(line, tuple) else ("put", "get")
    form = "await" if style[0] == "a" else style
    put, get = method(ends[0], names[0], form), method(ends[1], names[1], form)
    get_nowait = getattr(ends[1], f"{names[1]}_nowait")
    never_waits = form == "await" or isinstance(ends[0], fs.BroadcastSender)
    timed: tuple[Any, ...] = () if never_waits else (True, SHORT_S)
    sent: deque[object] = deque()
    received: deque[int] = deque()

    def check(results: list[Any]) -> str:
        if wrong := whole(*ends):
            return wrong
        rest = drained(get_nowait)
        if gets:
            ordered = not isinstance(line, (fs.LifoQueue, fs.PriorityQueue, queue.LifoQueue))
            return conserved(len(sent), [*results, *rest], ordered)
        got = [*received, *rest]
        return conserved(len(got), got) or late(len(got) - len(results), "objects too many")

    if not gets:
        calls = map(partial, repeat(put), count())
        return calling(form, calls, lambda: get(*timed), check, received.append)
    calls = repeat(get)
    if "for" in style:
        calls = repeat(aiter(ends[1]).__anext__ if form == "await" else partial(next, iter(ends[1])))
    return calling(form, calls, lambda: put(len(sent), *timed), check, sent.append)


def selecting(style: str) -> Trial:
    lines = fs.Queue(1), fs.Queue(1)
    sent: deque[object] = deque()
    select = fs.select_async if style == "await" else fs.select

    def check(results: list[Any]) -> str:
        rest = [item for line in lines for item in drained(line.get_nowait)]
        return whole(*lines) or conserved(len(sent), [one.value for one in results] + rest)

    def other() -> None:
        if not (line := chance.choice(lines)).full():
            line.put_nowait(len(sent))
            sent.append(None)

    cases = [map(call, repeat(line.get_async)) for line in lines]
    return calling(style, map(partial, repeat(select), *cases), other, check)


def limiting(style: str) -> Trial:
    clock, given = extra.ManualClock(), deque[object]()
    one = fs.RateLimiter(1, burst=1 << 20, clock=clock)
    one.acquire(False, n=1 << 20)

    def check(results: list[Any]) -> str:
        lost = len(given) - len(results) - one.statistics().available
        return whole(one) or late(lost, "permits are lost")

    return calling(
        style, repeat(method(one, "acquire", style)), partial(clock.advance, 1), check, given.append
    )


def combining(style: str) -> Trial:
    one, ran = extra.Combiner(), deque[int]()
    run = method(one, "run", style)

    def check(results: list[Any]) -> str:
        if one.locked():
            return "held for ever"
        return whole(one) or late(len(ran) - len(results), "calls too many")

    return calling(style, repeat(partial(run, partial(ran.append, 1))), partial(run, nap), check)


# What waits, and takes nothing


def waits_for(
    make: Callable[[], Any],
    wait: str,
    opens: Callable[[Any], Any],
    shuts: Callable[[Any], Any],
    style: str,
) -> Trial:
    one = make()

    def check(_: list[Any]) -> str:
        opens(one)
        return whole(one) or ("cannot be waited for" if getattr(one, wait)(timeout=0) is False else "")

    return calling(style, repeat(method(one, wait, style)), lambda: (opens(one), shuts(one))[0], check)


def do_all(one: Any) -> None:
    while one.unfinished_tasks:
        one.get_nowait()
        one.task_done()


def count_down(one: Any) -> None:
    if one.value:
        one.count_down(one.value)


def notifying(make: Callable[[], Any], style: str) -> Trial:
    one, items = make(), deque[int]()
    wait_for = method(one, "wait_for", "await" if style == "async" else "")

    def take() -> None:
        with one:
            while not items:
                one.wait()
            items.popleft()

    async def take_async() -> None:
        async with one:
            await wait_for(lambda: items)
            items.popleft()

    def give() -> None:
        if one.acquire(timeout=SHORT_S):
            items.append(1)
            one.notify()
            one.release()

    async def give_async() -> None:
        async with one:
            items.append(1)
            one.notify()

    def check(_: list[Any]) -> str:
        if (one if hasattr(one, "locked") else one._lock).locked():
            one.release()
            return "kept"
        return "a waiter is left" if waiters(one) else ""

    if style == "async":
        return calling("await", repeat(take_async), give_async, check)
    return calling("statement", repeat(take), give, check)


# Meetings and answers


def swapping(style: str) -> Trial:
    one: Any = extra.Exchanger()
    swap, got = method(one, "exchange", style), deque[str]()

    def check(results: list[Any]) -> str:
        if wrong := whole(one):
            return wrong
        second = threading.Thread(target=one.exchange, args=("second",))
        second.start()
        met = one.exchange("first", PATIENCE_S) == "second"
        second.join()
        return late(abs(len(got) - len(results)), "items are lost") if met else "cannot be met"

    timed = () if style == "await" else (SHORT_S,)
    return calling(style, repeat(partial(swap, "mine")), partial(swap, "other's", *timed), check, got.append)


def phases(style: str) -> Trial:
    one = extra.Phaser(1)
    wait = method(one, "wait_phase", style)

    def check(_: list[Any]) -> str:
        if wrong := whole(one):
            return wrong
        return "" if one.arrive() == one.phase - 1 else "has no next phase"

    return calling(style, repeat(lambda: wait(one.phase)), one.arrive, check)


def meeting(style: str) -> Trial:
    one = fs.Barrier(2)

    def meet(timeout: float | None = None) -> None:
        try:
            one.wait(timeout)
        except BrokenBarrierError:
            one.reset()

    def check(_: list[Any]) -> str:
        if one.n_waiting:
            return "a party is left"
        one.reset()
        second = threading.Thread(target=one.wait)
        second.start()
        one.wait(PATIENCE_S)
        second.join()
        return ""

    return calling(style, repeat(meet), partial(meet, SHORT_S), check)


def granting(style: str) -> Trial:
    newest: deque[Any] = deque([Waiter()], 1)

    def wait() -> Any:
        newest.append(Waiter())
        return method(newest[0], "wait", style)()

    def check(_: list[Any]) -> str:
        left = newest[0].cancel()
        right = left is (newest[0].value is None) and not newest[0].grant(2)
        return "" if right else "granted, though it left"

    return calling(style, repeat(wait), lambda: newest[0].grant(1), check)


def once_each(style: str) -> Trial:
    newest: deque[Any] = deque([fs.once(list)], 1)

    def call_too() -> Any:
        return newest[0].call_async() if style == "await" else newest[0]()

    def call_new() -> Any:
        newest.append(fs.once(lambda: nap() or [1]))
        return call_too()

    def check(_: list[Any]) -> str:
        _done, running, waiting = newest[0].statistics()
        if running or waiting:
            return "kept" if running else "a waiter is left"
        return "" if newest[0]() is newest[0]() else "called twice"

    return calling(style, repeat(call_new), call_too, check)


def answering(style: str) -> Trial:
    ends: deque[Any] = deque(fs.oneshot(), 2)

    def ask() -> None:
        ends.extend(fs.oneshot())
        ends[0].send(1)

    def check(_: list[Any]) -> str:
        sender, receiver = ends
        found = drained(receiver.receive_nowait)
        if not found:
            sender.send(1)
            found = drained(receiver.receive_nowait)
        return "" if found == [1] else "lost, or doubled"

    return calling(style, repeat(ask), pause, check)


def closing(style: str) -> Trial:
    sender, receiver = fs.channel(1)

    def use_with() -> None:
        with sender.clone(), receiver.clone():
            pass

    async def use_async() -> None:
        async with sender.clone(), receiver.clone():
            await asyncio.sleep(0)

    def check(_: list[Any]) -> str:
        if receiver.statistics()[:3] != (0, 1, 1):
            return f"the ends are counted wrong: {receiver.statistics()[1:3]}"
        sender.close()
        with suppress(ChannelClosedError):
            receiver.receive_nowait()
        return ""

    if style == "async":
        return calling("await", repeat(use_async), bool, check)
    return calling(style, repeat(use_with), bool, check)


def forms() -> Iterator[tuple[str, Form]]:
    for name, (make, peers) in LINES.items():
        ends = ["for", "async for"] if "channel" in name or "broadcast" in name else []
        own = ["await"] if "asyncio" in name else ["statement", "C"] + ["await"] * ("queue" not in name)
        for style in [*own, *ends]:
            form = Form(partial(passing, make, True, style), style in ("statement", "for"), style[0] == "a")
            other = peer_of(peers, style)
            yield f"{style} {name}.get", form._replace(peer=other and f"{other}.get")
            if style in own and "Simple" not in name and name != "broadcast":
                form = form._replace(make=partial(passing, make, False, style))
                yield f"{style} {name}.put", form._replace(peer=other and f"{other}.put")
    countdown = partial(waits_for, fs.CountdownEvent, "wait", count_down, fs.CountdownEvent.count_up)
    three, two = ("statement", "C", "await"), ("statement", "await")
    for name, trial, styles in (
        ("select", selecting, three),
        ("RateLimiter", limiting, three),
        ("Combiner", combining, three),
        ("Event", partial(waits_for, fs.Event, "wait", fs.Event.set, fs.Event.clear), three),
        ("CountdownEvent", countdown, three),
        ("Queue.join", partial(waits_for, fs.Queue, "join", do_all, lambda one: one.put(1)), three),
        ("once", once_each, two),
        ("Exchanger", swapping, two),
        ("Phaser", phases, two),
        ("lowlevel.Waiter", granting, two),
        ("Barrier", meeting, ("statement",)),
        ("oneshot", answering, ("statement",)),
        ("channel's end", closing, ("with", "async")),
    ):
        for style in styles:
            may = style == "statement" or name == "Exchanger" or (name == "once" and WINDOW_IN_WITH)
            yield f"{style} {name}", Form(partial(trial, style=style), may, style[0] == "a")
    for name, make, style in (
        ("Condition", lambda: fs.Condition(fs.Lock()), "with"),
        ("Condition", lambda: fs.Condition(fs.Lock()), "async"),
        ("threading.Condition", lambda: threading.Condition(threading.Lock()), "with"),
        ("asyncio.Condition", asyncio.Condition, "async"),
    ):
        other = "threading.Condition" if style == "with" else "asyncio.Condition"
        form = Form(partial(notifying, make, style), WINDOW_IN_WITH, style == "async")
        yield f"{style} {name}.wait", form._replace(peer=f"{other}.wait" if name == "Condition" else "")

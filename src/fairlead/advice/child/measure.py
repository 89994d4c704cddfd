"""Stage "measure": a pool is started, and passes over items are timed.

Runs in interpreters without fairlead too, with the standard library's threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import usage
from .calling import Awaited, Timing, timed
from .fingerprint import fingerprint
from .loading import interpreter, load_target, spread

if TYPE_CHECKING:
    from .worker import Activity

RunItems = Callable[[Callable[..., Any], list[Any]], Iterable[Any]]

GROWTH = 8
"""A calibrating pass has at most so many times the calls of the one before."""
TIMED = 200
"""Calls of which each is timed in a pass of their own, at most, unless the workers make more at once."""
LONG_S = 1e-3
"""A call that takes this long is timed in every pass: that takes a microsecond or two."""


def run(job: dict[str, Any], progress: Activity) -> dict[str, Any]:
    function, items = load_target(job, progress.say)
    try:
        return _measured(job, progress, function, items)
    except Exception as error:  # noqa: BLE001 - a function's, of an item that was not looked at before
        return {"failed": f"{type(error).__name__}: {' '.join(str(error).split())}"[:300].rstrip(": ")}


def _measured(
    job: dict[str, Any], progress: Activity, function: Callable[..., Any], items: list[Any]
) -> dict[str, Any]:
    requests, slot = job["requests"], job["slot_s"]
    bare = job["coroutines"] and job["kind"] in ("sequential", "async")
    if job["coroutines"] and not bare:
        function = Awaited(function)
    most: int = job["most_calls"]
    progress.say("start")
    first = _reading()
    with contextlib.ExitStack() as stack:
        begin = time.perf_counter()
        make = _maker(job, function, stack)
        start_s = time.perf_counter() - begin
        started = _reading()
        progress.say("check")
        places = job["check"]
        results = list(make(function, [items[place] for place in places]))
        marks = [fingerprint(value) for value in results]
        del results
        calls = len(places)
        progress.say("passes")
        passes: list[tuple[int, float]] = []
        timings: list[Timing] = []
        # a shorter one takes less time than to time it: that has a pass of its own
        long, measured = job["call_s"] >= LONG_S, timed(function, coroutine=bare)
        number = min(requests, max(job["first_pass"], 1))
        deadline = time.perf_counter() + job["time_s"]
        before: dict[str, Any] = _reading()
        while True:
            chosen = [items[place] for place in spread(len(items), number)]
            begin = time.perf_counter()
            if long:
                timings += [timing for _, timing in make(measured, chosen)]
            else:
                for _ in make(function, chosen):
                    pass
            wall = time.perf_counter() - begin
            calls += number
            short = wall < slot / 2 and number < requests
            more = requests
            if short:
                more = min(requests, number * GROWTH, max(2 * number, int(0.9 * number * slot / wall)))
            if short and calls + more <= most:
                number, passes, timings = more, [], []
                before = _reading()
                continue
            passes.append((number, wall))
            if len(passes) >= job["passes"] or time.perf_counter() > deadline or calls + number > most:
                break
        after = _reading()
        memory = usage.memory_kib(usage.members())
        progress.say("latency")
        begin = time.perf_counter()
        number, wall = passes[-1]
        at_once = min(requests, max(job["workers"], 1))  # fewer calls would have the workers for themselves
        count = min(requests, max(at_once, min(TIMED, int(slot * number / wall))))
        if not long and calls + count <= most and wall * count / number <= job["time_s"]:
            chosen = [items[place] for place in spread(len(items), count)]
            timings = [timing for _, timing in make(measured, chosen)]
            calls += count
        latency_s = time.perf_counter() - begin
    return {
        "interpreter": interpreter(),
        "start_s": start_s if job["kind"] != "sequential" else 0.0,
        "fingerprints": marks,
        "passes": passes,
        "timings": timings,
        "latency_s": latency_s,
        "calls": calls,
        "first": first,
        "started": started,
        "before": before,
        "after": after,
        "memory_kib": memory,
    }


def _reading() -> dict[str, Any]:
    """The counters of this session and of the machine, between two passes."""
    found = usage.members()
    return {
        "switches": usage.switches(found),
        "cpu_s": usage.cpu_s(found),
        "idle_s": usage.idle_s(),
        "at_s": time.monotonic(),
    }


def _maker(job: dict[str, Any], function: Callable[..., Any], stack: contextlib.ExitStack) -> RunItems:
    """What makes a pass's calls in the way of the job; its workers have loaded the function."""
    kind, workers = job["kind"], job["workers"]
    if kind == "sequential":
        if not job["coroutines"]:
            return map
        runner = stack.enter_context(asyncio.Runner())
        return lambda called, chosen: _one_by_one(runner, called, chosen)
    if kind == "free-threaded":
        from concurrent.futures import ThreadPoolExecutor

        threads = stack.enter_context(ThreadPoolExecutor(workers))
        list(threads.map(callable, [function] * workers))
        return threads.map
    from fairlead.pools import pool as make

    pool = stack.enter_context(make(kind, workers))
    if kind != "async":
        # each worker takes the function, as it has to before its first call
        list(pool.map(callable, [function] * (2 * workers), chunksize=1))
    mapped: RunItems = pool.map
    return mapped


def _one_by_one(runner: asyncio.Runner, function: Callable[..., Any], chosen: list[Any]) -> Iterator[Any]:
    for item in chosen:
        yield runner.run(_awaited(function, item))


async def _awaited(function: Callable[..., Any], item: Any) -> Any:
    return await function(item)

"""Stage "measure": a pool is started, and passes over items are timed.

The process does what the program would do that is asked about: it starts the pool, makes the calls, and ends
the pool. If there is no time for all calls, it makes a part of them, spread over the items, none twice. The
first pass is cold: it has each worker's first call, with its imports and caches. It has its own place in the
answer, so that it is never scaled up.

Runs in interpreters without fairlead too, with the standard library's threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from . import usage
from .calling import Awaited, Raised, Reached, caught, said, timed
from .fingerprint import fingerprint
from .loading import interpreter, load_target, sequence

if TYPE_CHECKING:
    from .worker import Activity

RunItems = Callable[[Callable[..., Any], list[Any]], Iterable[Any]]

PASSES = 2
"""After the cold one, where there is no time for all calls: the first counts only if the second agrees."""
TIMED = 200
"""Calls of which each is timed in a pass of their own, at most, unless the workers make more at once."""
LONG_S = 1e-3
"""A call that takes this long is timed in every pass: that takes a microsecond or two."""
REACH_S = 0.01
"""How long a worker is kept busy so that the next call goes to another one."""
TRIES = 10


def run(job: dict[str, Any], progress: Activity) -> dict[str, Any]:
    function, items = load_target(job, progress.say)
    catch: bool = job["catch"]
    while True:
        try:
            return _Measured(job, progress, function, items, catch=catch).run()
        except Exception as error:  # noqa: BLE001 - a function's, of an item that was not looked at before
            if catch:
                return {"failed": said(error)}
            catch = True


def following(job: dict[str, Any], passes: list[tuple[int, float]], left_s: float) -> int:
    """The calls of the next pass; 0 if there is none.

    The rest of the calls are one pass if they are all that the program makes, else the passes are some.
    """
    number, workers = job["number"], max(job["workers"], 1)
    rest = number - sum(calls for calls, _ in passes)
    if rest <= 0 or (len(passes) > 1 and left_s <= 0):
        return 0
    share = rest
    if number < job["requests"]:
        share = -(-(number - passes[0][0]) // PASSES)
        share = -(-share // workers) * workers
    calls, wall = passes[-1]
    # after a cold pass too little seems to fit: then a short one tells what does
    fitting = max(int(left_s * calls / max(wall, 1e-9)), workers)
    return int(min(share, rest, fitting))


class _Measured:
    def __init__(
        self,
        job: dict[str, Any],
        progress: Activity,
        function: Callable[..., Any],
        items: list[Any],
        *,
        catch: bool,
    ) -> None:
        self._job, self._progress, self._items = job, progress, items
        bare = job["coroutines"] and job["kind"] in ("sequential", "async")
        self._function = Awaited(function) if job["coroutines"] and not bare else function
        # a shorter one takes less time than to time it: that has a pass of its own
        self._long = job["call_s"] >= LONG_S
        safe = caught(self._function, coroutine=bare)
        self._timed = timed(safe, coroutine=bare)
        self._called = self._timed if self._long else safe if catch else self._function
        self._passes: list[tuple[int, float]] = []
        self._timings: list[float] = []
        self._raised: dict[int, str] = {}
        self._done = 0

    def run(self) -> dict[str, Any]:
        job, say = self._job, self._progress.say
        say("start")
        first = _reading()
        start = _maker(job, self._function)
        with contextlib.ExitStack() as stack:
            begin = time.perf_counter()
            self._make = start(stack)
            start_s = time.perf_counter() - begin
            _reach(self._make, job)
            say("check")
            results = self._pass(job["first"])
            marks = ["raised" if type(value) is Raised else fingerprint(value) for value in results]
            del results
            self._timings.clear()
            say("passes")
            before = _reading()
            self._warm()
            after = _reading()
            memory = usage.memory_kib(usage.members())
            say("latency")
            calls = self._done + self._latency()
            begin = time.perf_counter()
        alone = job["kind"] == "sequential"
        return {
            "interpreter": interpreter(),
            "start_s": 0.0 if alone else start_s + time.perf_counter() - begin,
            "fingerprints": marks,
            "passes": self._passes,
            "timings": self._timings,
            "calls": calls,
            "raised": list(self._raised.items()),
            "first": first,
            "before": before,
            "after": after,
            "memory_kib": memory,
        }

    def _pass(self, number: int) -> list[Any]:
        places = sequence(self._job["requests"], len(self._items), self._done, self._done + number)
        chosen = [self._items[place] for place in places]
        begin = time.perf_counter()
        results = list(self._make(self._called, chosen))
        self._passes.append((number, time.perf_counter() - begin))
        self._done += number
        if self._long:
            self._timings += [timing for _, timing in results]
            results = [value for value, _ in results]
        if self._called is not self._function:
            for place, value in zip(places, results, strict=True):
                if type(value) is Raised:
                    self._raised[place] = value
        return results

    def _warm(self) -> None:
        deadline = time.perf_counter() + self._job["time_s"]
        while number := following(self._job, self._passes, deadline - time.perf_counter()):
            self._pass(number)

    def _latency(self) -> int:
        """The calls that it takes to time single short ones; 0 where they have been timed, or take long."""
        job = self._job
        number, wall = self._passes[-1]
        at_once = min(job["requests"], max(job["workers"], 1))  # fewer would have the workers for themselves
        count = min(job["requests"], max(at_once, min(TIMED, int(job["time_s"] * number / max(wall, 1e-9)))))
        if self._long or self._done + count > job["most_calls"] or wall * count / number > job["time_s"]:
            return 0
        chosen = [self._items[place] for place in sequence(job["requests"], len(self._items), 0, count)]
        self._timings = [timing for _, timing in self._make(self._timed, chosen)]
        return int(count)


def _reading() -> dict[str, Any]:
    """The counters of this session and of the machine, between two passes."""
    return {
        "cpu_s": usage.cpu_s(usage.members()),
        "idle_s": usage.idle_s(),
        "at_s": time.monotonic(),
    }


def _reach(make: RunItems, job: dict[str, Any]) -> None:
    """Has every worker import what the measuring itself needs, so that no measured call pays for that."""
    if job["kind"] in ("sequential", "async"):
        return
    seen: set[tuple[int, int]] = set()
    for _ in range(TRIES):
        seen.update(
            worker for worker, _ in make(timed(Reached(), coroutine=False), [REACH_S] * job["workers"])
        )
        if len(seen) >= job["workers"]:
            return


def _maker(job: dict[str, Any], function: Callable[..., Any]) -> Callable[[contextlib.ExitStack], RunItems]:
    """What starts the pool, with all imported that a program imports before; its workers load the function.

    The pool returns what makes a pass's calls, and ends with the stack.
    """
    kind, workers = job["kind"], job["workers"]
    if kind == "sequential":
        if not job["coroutines"]:
            return lambda _: lambda called, chosen: [called(item) for item in chosen]
        runner = asyncio.Runner
        return lambda stack: partial(_in_turn, stack.enter_context(runner()))
    made: Any
    if kind == "free-threaded":
        from concurrent.futures import ThreadPoolExecutor

        made, options = ThreadPoolExecutor, {}
    else:
        from fairlead import pools
        from fairlead.record.advice import NAMES

        made, options = getattr(pools, NAMES[kind]), {"chunksize": 1}

    def start(stack: contextlib.ExitStack) -> RunItems:
        pool = stack.enter_context(made(workers))
        if kind != "async":
            # each worker takes the function, as it has to before its first call
            list(pool.map(callable, [function] * (2 * workers), **options))
        mapped: RunItems = pool.map
        return mapped

    return start


def _in_turn(runner: asyncio.Runner, function: Callable[..., Any], chosen: list[Any]) -> list[Any]:
    async def calls() -> list[Any]:
        return [await function(item) for item in chosen]

    return runner.run(calls())

"""Stage "look": the first calls, one at a time, and what they do with their time and to what they share.

The items looked at are called twice over. State that is another after the first round and the same after the
second is a cache; state that is another again grows with every call. The second round is also the one under
observation: the fingerprints of the first would be counted as the function's own work.

The very first call may import modules and fill caches: it is no sample of what a call takes.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from fairlead import gil
from fairlead.advice.child.calling import Raised, said
from fairlead.advice.child.fingerprint import fingerprint
from fairlead.advice.child.loading import Refused, Unfit, interpreter, load_target, sequence
from fairlead.advice.child.sending import Sending
from fairlead.errors import FairleadError
from fairlead.machine import run_delay_ns
from fairlead.pools.choose.call_profile import CallMeter
from fairlead.pools.choose.rules import has_gil
from fairlead.pools.choose.state import State
from fairlead.pools.serialization import function as told

if TYPE_CHECKING:
    from fairlead.advice.child.worker import Activity

MOST = 500
"""Items looked at."""
SENT = 5
"""Items and results whose way to another process is tried."""
WORTH_S = 0.1
"""The second round goes on for so long, so that the clocks of the kernel have something to count."""


def run(job: dict[str, Any], progress: Activity) -> dict[str, Any]:
    function, items = load_target(job, progress.say)
    for place, item in enumerate(items):
        if isinstance(item, Iterator):
            raise Refused(
                f"item {place} is of type {type(item).__name__}, which one call uses up: give a list of what "
                "it yields, or have the function make it"
            )
    _keep(job, items)
    coroutines = told.makes_coroutines(function)
    sending = Sending(function)
    cannot = sending.call(items[0])
    with asyncio.Runner() as runner:
        call = (lambda item: runner.run(_awaited(function, item))) if coroutines else function
        looked = _Look(job, progress, function, call, items)
        looked.first_round()
        again = looked.second_round()
    for item in looked.examples:
        cannot = cannot or sending.call(item)
    for value in looked.results:
        cannot = cannot or sending.result(value)
    refusals = {}
    if cannot is None:
        refusals = sending.refusals([*looked.examples, *looked.results])
    first, second, third = looked.states
    accumulates = [name for name in second if (second if again else first).get(name) != third.get(name)]
    caches = [name for name in first if first[name] != third.get(name) and name not in accumulates]
    return {
        "items": len(items),
        "interpreter": interpreter(),
        "gil_here": has_gil(),
        "fingerprints": looked.fingerprints,
        "calls": looked.calls,
        "raised": list(looked.raised.items()),
        "times": looked.warm,
        "call_s": fmean(looked.warm) if caches else looked.call_s,
        **looked.shares,
        "coroutines": coroutines,
        "cannot_be_sent": cannot,
        "argument_bytes": fmean(sending.call_bytes) if sending.call_bytes else None,
        "result_bytes": fmean(sending.result_bytes) if sending.result_bytes else None,
        "cannot_load": refusals,
        "accumulates": accumulates,
        "caches": caches,
        "guarded": looked.state.guarded,
        "changes_items": looked.changes_items,
    }


class _Look:
    def __init__(
        self,
        job: dict[str, Any],
        progress: Activity,
        function: Callable[..., Any],
        call: Callable[..., Any],
        items: list[Any],
    ) -> None:
        self._job = job
        self._progress = progress
        self._call = call
        self._items = items
        self._label = job["target"]["label"]
        self.places: list[int] = []
        self.raised: dict[int, str] = {}
        self.fingerprints: list[str] = []
        self.times: list[float] = []
        self.results: list[Any] = []
        self.examples: list[Any] = []
        self.calls = 0
        self.changes_items = False
        self.state = State(function)
        self.states = [self._state_now()] * 3
        self.shares: dict[str, Any] = {}

    def _state_now(self) -> dict[str, str]:
        return self.state.look(lambda _, value: fingerprint(value, self.state.of_own_class))

    @property
    def warm(self) -> list[float]:
        """Seconds of the first round's calls without its very first."""
        return self.times[1:] or self.times

    @property
    def call_s(self) -> float:
        """Mean time of a call, from the calls under observation unless that is the very first."""
        if self.shares["observed"] == 1:
            return fmean(self.warm)
        return float(self.shares["wall_s"] / self.shares["observed"])

    def first_round(self) -> None:
        """The first two calls, and as many others, evenly apart, as there is time for."""
        self._progress.say("call")
        slot = self._job["look_s"]
        requests = self._job["requests"] or len(self._items)
        most = max(1, min(MOST, requests, self._job["most_calls"] // 6))
        places = sequence(requests, len(self._items), 0, most)
        self.shares = self._observed(lambda: self._looked_at(places[0]))
        begin = time.perf_counter()
        for place in places[1:]:
            self._looked_at(place)
            if time.perf_counter() - begin > slot:
                break
        if set(self.fingerprints) == {"raised"}:
            place, error = next(iter(self.raised.items()))
            raise Unfit(
                f"{self._label} raised {error} when it was called with item {place}, "
                f"{self._items[place]!r:.60}: give items that it can handle"
            )
        self.states[1] = self._state_now()
        self.states[2] = self.states[1]

    def second_round(self) -> bool:
        """The same once more, if there is time for it; whether there was. If there is none, for other
        programs took it, calls are yet observed until the clocks have something to count: of one short call
        they say nothing."""
        whole: bool = sum(self.warm) <= self._job["look_s"] * 2
        if self.calls * 2 > self._job["most_calls"] or not (whole or min(self.warm) < WORTH_S):
            return False
        places = [place for place in self.places if place not in self.raised]
        failed: dict[int, str] = {}

        def calls() -> None:
            end = time.perf_counter() + WORTH_S
            limit = self._job["most_calls"] // 4
            while True:
                for place in places:
                    self._progress.call(place)
                    try:
                        self._call(self._items[place])
                    except Exception as error:  # noqa: BLE001 - whatever the function raises
                        failed.setdefault(place, said(error))
                    self.calls += 1
                    if not whole and time.perf_counter() > end:
                        return
                if time.perf_counter() > end or self.calls > limit:
                    return

        again = "when it was called with the same items once more: give one that can be called again"
        try:
            with self._limited():
                self.shares = self._observed(calls)
        except BaseException as error:
            raise Unfit(f"{self._label} raised {said(error)} {again}") from error
        if len(failed) == len(set(places)):
            raise Unfit(f"{self._label} raised {failed[places[0]]} {again}")
        if whole:
            self.states[2] = self._state_now()
        return whole

    def _looked_at(self, place: int) -> None:
        item = self._items[place]
        self._progress.call(place)
        before = fingerprint(item)
        try:
            with self._limited():
                begin = time.perf_counter()
                try:
                    value = self._call(item)
                except Exception as error:  # noqa: BLE001 - whatever the function raises
                    value = Raised(said(error))
                took = time.perf_counter() - begin
        except SystemExit as error:
            raise Unfit(
                f"{self._label} ends its process (sys.exit) when it is called with item {place}, "
                f"{item!r:.60}: give items for which it returns"
            ) from error
        except BaseException as error:
            raise Unfit(f"{self._label} raised {said(error)} when it was called with item {place}") from error
        self.times.append(took)
        self.calls += 1
        self.places.append(place)
        self.changes_items = self.changes_items or fingerprint(item) != before
        if type(value) is Raised:
            self.raised[place] = value
            self.fingerprints.append("raised")
            return
        self.fingerprints.append(fingerprint(value))
        if len(self.results) < SENT:
            self.results.append(value)
            self.examples.append(item)

    @contextmanager
    def _limited(self) -> Iterator[None]:
        """The kernel ends this process if a call does not return, whatever the call holds."""
        signal.setitimer(signal.ITIMER_REAL, self._job["call_limit_s"])
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _observed(self, calls: Callable[[], None]) -> dict[str, Any]:
        """What calls do with their time, as shares of it."""
        before = self.calls
        shares = self._shares(calls)
        return {**shares, "observed": self.calls - before}

    def _shares(self, calls: Callable[[], None]) -> dict[str, Any]:
        held, where = None, "none"
        if has_gil():
            try:
                observation = gil.observe(wait_threshold=None).start()
            except FairleadError:
                return self._napped(calls)
            try:
                spent = _spent(calls)
            finally:
                observation.stop()
            own = threading.get_native_id()
            # a hold goes on while its thread has no core: that part of it is as large as of the rest
            on_core = spent[1] / max(spent[1] + spent[2], 1e-9)
            # threads that calls start hold the same GIL
            held = sum(
                thread.held_seconds * (on_core if thread.native_id == own else 1)
                for thread in observation.threads
            )
            where = "observation"
        else:
            spent = _spent(calls)
        return _shares(*spent[:2], held or 0.0, where)

    def _napped(self, calls: Callable[[], None]) -> dict[str, Any]:
        """The same without observation: another thread takes naps, and sees how late it gets the GIL."""
        meter = CallMeter()
        found: list[Any] = []
        meter.expect()
        watcher = threading.Thread(target=lambda: found.append(meter.watch(60.0)))
        watcher.start()
        meter.begin()
        try:
            spent = _spent(calls)
        finally:
            meter.end()
            watcher.join()
        sample = found[0]
        held = spent[1] if sample is None or sample.held is not False else 0.0
        return _shares(*spent[:2], held, "naps")


async def _awaited(function: Callable[..., Any], item: Any) -> Any:
    return await function(item)


def _keep(job: dict[str, Any], items: list[Any]) -> None:
    """For the processes that come after this one: an expression could be another list there."""
    import cloudpickle

    path = Path(job["items"]["pickle"])
    if not path.exists():
        try:
            pickled = cloudpickle.dumps(items, 5)
        except Exception:  # noqa: BLE001 - they evaluate it themselves then
            return
        path.write_bytes(pickled)


def _spent(calls: Callable[[], None]) -> tuple[float, float, float]:
    """(seconds, of them on a core, seconds that it waited for a core besides)."""
    own = threading.get_native_id()
    begin, used, in_line = time.perf_counter(), time.process_time(), run_delay_ns(own)
    calls()
    wall, cpu = time.perf_counter() - begin, time.process_time() - used
    queued = (run_delay_ns(own) - in_line) / 1e9
    return max(wall - queued, 1e-9), cpu, queued


def _shares(wall: float, cpu: float, held: float, where: str) -> dict[str, Any]:
    with_gil = min(held, cpu)
    whole = max(wall, cpu)
    return {
        "gil": with_gil / whole,
        "free": (cpu - with_gil) / whole,
        "waiting": max(0.0, 1 - cpu / whole),
        "gil_from": where,
        "wall_s": wall,
    }

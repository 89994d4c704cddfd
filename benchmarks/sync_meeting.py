"""What it costs to meet: two that exchange what they have, and parties that arrive at phases.

    python benchmarks/sync_meeting.py [--rounds 9] [--only exchange] [--quick] [--json FILE]

No library found has an exchanger or a phaser: the peers are the same of a lock and a condition, of asyncio's
for tasks, and for parties that are always the same the barriers of threading and asyncio.
CPU ns is CPU time of the process per meeting or phase, us how long one takes.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import harness

from fairlead import sync

MEETINGS = 4_000


def per_meeting(count: int, cpu_begin: int, begin: int) -> dict[str, float]:
    return {
        "CPU ns": (time.process_time_ns() - cpu_begin) / count,
        "us": (time.perf_counter_ns() - begin) / count / 1000,
    }


class ByCondition:
    """An exchanger as one makes it of a lock and a condition."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._first: list[Any] | None = None

    def exchange(self, item: Any) -> Any:
        with self._changed:
            if self._first is not None:
                place, self._first = self._first, None
                other, place[0], place[1] = place[0], item, True
                self._changed.notify_all()
                return other
            mine = self._first = [item, False]
            while not mine[1]:
                self._changed.wait()
            return mine[0]


class ByTasksCondition:
    """The same for tasks."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._first: list[Any] | None = None

    async def exchange(self, item: Any) -> Any:
        async with self._changed:
            if self._first is not None:
                place, self._first = self._first, None
                other, place[0], place[1] = place[0], item, True
                self._changed.notify_all()
                return other
            mine = self._first = [item, False]
            while not mine[1]:
                await self._changed.wait()
            return mine[0]


def threads(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = MEETINGS // scale
        swap = sync.Exchanger[int]().exchange if mode == "fairlead" else ByCondition().exchange

        def party() -> None:
            for number in range(many):
                swap(number)

        other = threading.Thread(target=party)
        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        other.start()
        party()
        other.join()
        return per_meeting(many, cpu_begin, begin)

    return take


def tasks(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = MEETINGS // scale

        async def party(swap: Callable[[int], Awaitable[int]]) -> None:
            for number in range(many):
                await swap(number)

        async def main() -> dict[str, float]:
            swap: Callable[[int], Awaitable[int]] = (
                sync.Exchanger[int]().exchange_async if mode == "fairlead" else ByTasksCondition().exchange
            )
            cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
            await asyncio.gather(party(swap), party(swap))
            return per_meeting(many, cpu_begin, begin)

        return asyncio.run(main())

    return take


class CountedByCondition:
    """A phaser as one makes it of a lock and a condition, as far as arriving."""

    def __init__(self, parties: int) -> None:
        self._changed = threading.Condition()
        self._parties = self._missing = parties
        self._phase = 0

    def arrive(self) -> int:
        with self._changed:
            phase = self._phase
            self._missing -= 1
            if self._missing == 0:
                self._missing = self._parties
                self._phase += 1
                self._changed.notify_all()
            return phase

    def arrive_and_wait(self) -> None:
        with self._changed:
            phase = self.arrive()
            while self._phase == phase:
                self._changed.wait()


def alone(scale: int) -> Callable[[str], dict[str, float]]:
    """One party, and no other to wait for."""

    def take(mode: str) -> dict[str, float]:
        many = 20 * MEETINGS // scale
        arrive: Callable[[], Any] = (
            sync.Phaser(1).arrive if mode == "fairlead" else CountedByCondition(1).arrive
        )
        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        for _ in range(many):
            arrive()
        return per_meeting(many, cpu_begin, begin)

    return take


def phases_of_threads(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = MEETINGS // scale // 4 + 1
        wait: Callable[[], Any] = {
            "fairlead": lambda: sync.Phaser(4).arrive_and_wait,
            "threading.Barrier": lambda: threading.Barrier(4).wait,
            "lock and condition": lambda: CountedByCondition(4).arrive_and_wait,
        }[mode]()

        def party() -> None:
            for _ in range(many):
                wait()

        threads = [threading.Thread(target=party) for _ in range(3)]
        cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
        for thread in threads:
            thread.start()
        party()
        for thread in threads:
            thread.join()
        return per_meeting(many, cpu_begin, begin)

    return take


def phases_of_tasks(scale: int) -> Callable[[str], dict[str, float]]:
    def take(mode: str) -> dict[str, float]:
        many = MEETINGS // scale // 4 + 1

        async def party(wait: Callable[[], Awaitable[Any]]) -> None:
            for _ in range(many):
                await wait()

        async def main() -> dict[str, float]:
            wait: Callable[[], Awaitable[Any]] = {
                "fairlead": lambda: sync.Phaser(4).arrive_and_wait_async,
                "asyncio.Barrier": lambda: asyncio.Barrier(4).wait,
            }[mode]()
            cpu_begin, begin = time.process_time_ns(), time.perf_counter_ns()
            await asyncio.gather(*(party(wait) for _ in range(4)))
            return per_meeting(many, cpu_begin, begin)

        return asyncio.run(main())

    return take


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 40 if options.quick else 1
    modes = ["lock and condition", "fairlead"]

    def at_most(multiple: float, of: str = "lock and condition") -> list[harness.Target]:
        return [harness.Target(figure, "fairlead", at_most=multiple, of=of) for figure in ("CPU ns", "us")]

    rows = [  # threads cost the switches between them, in whichever thread
        harness.Row("exchange of two threads", threads(scale), modes, at_most(1.2)),
        harness.Row("exchange of two tasks", tasks(scale), modes, at_most(0.9)),
        harness.Row("phases of one party", alone(scale), modes, at_most(0.3)),
        harness.Row(
            "phases of four threads",
            phases_of_threads(scale),
            ["threading.Barrier", *modes],
            at_most(1, "threading.Barrier") + at_most(1),
        ),
        harness.Row(
            "phases of four tasks",
            phases_of_tasks(scale),
            ["asyncio.Barrier", "fairlead"],
            at_most(0.8, "asyncio.Barrier"),
        ),
    ]
    harness.run("What it costs to meet", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()

"""What it costs to meet: two that exchange what they have.

    python benchmarks/sync_meeting.py [--rounds 9] [--only exchange] [--quick] [--json FILE]

No library found has an exchanger: the peer is the same of a lock and a condition, of asyncio's for tasks.
CPU ns is CPU time of the process per meeting, us how long one takes.
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


def main() -> None:
    parser = harness.arguments(__doc__ or "", rounds=9)
    parser.add_argument("--only", default="", help="rows whose name contains this")
    options = parser.parse_args()
    scale = 40 if options.quick else 1
    modes = ["lock and condition", "fairlead"]

    def at_most(multiple: float) -> list[harness.Target]:
        return [
            harness.Target(figure, "fairlead", at_most=multiple, of="lock and condition")
            for figure in ("CPU ns", "us")
        ]

    rows = [  # two threads cost the switches between them, whoever does it
        harness.Row("exchange of two threads", threads(scale), modes, at_most(1.2)),
        harness.Row("exchange of two tasks", tasks(scale), modes, at_most(0.9)),
    ]
    harness.run("What it costs to meet", [row for row in rows if options.only in row.name], options)


if __name__ == "__main__":
    main()

"""StripedCounter: a number that many threads add to at once."""

from __future__ import annotations

import threading
from operator import index
from threading import Lock
from typing import NamedTuple, final

from fairlead.sync.extra._common import refuse_pickling


class StripedCounterStatistics(NamedTuple):
    """A counter at one moment.

    Attributes:
        sum: what was added.
        stripes: how many cells it consists of.
    """

    sum: int
    stripes: int


class _Cells(list[list[int]]):
    """The cells of one thread that no call of ``add`` is using. When the thread has ended they are the next
    one's."""

    __slots__ = ("_unowned",)

    def __init__(self, unowned: list[list[int]]) -> None:
        self._unowned = unowned

    def __del__(self) -> None:
        self._unowned.extend(self)


@final
class StripedCounter:
    """A number that many threads add to at once: each in a cell of its own, and a sum reads all cells.

    Nothing that is added is lost or counted twice, and sums are exact, however large.
    """

    # Invariant: one call of `add` at a time writes a cell. It takes the cell out of its thread's list, so
    # that a signal handler or a destructor which interrupts it in that thread uses another.
    __slots__ = ("__weakref__", "_cells", "_lock", "_mine", "_taken", "_unowned")

    def __init__(self, value: int = 0) -> None:
        self._cells: list[list[int]] = [[index(value)]]
        self._unowned: list[list[int]] = []
        self._mine = threading.local()
        self._lock = Lock()
        self._taken = 0
        """What sum_and_reset has returned; the cells only ever count on."""

    def add(self, n: int, /) -> None:
        """Adds a whole number, which may be negative. Any thread or task; never waits, and a signal handler
        or a destructor may call it.
        """
        n = index(n)
        try:
            mine = self._mine.cells
        except AttributeError:
            mine = self._mine.cells = _Cells(self._unowned)
        try:
            cell = mine.pop()
        except IndexError:
            cell = self._new_cell()
        cell[0] += n
        mine.append(cell)

    def increment(self) -> None:
        """As add(1)."""
        self.add(1)

    def decrement(self) -> None:
        """As add(-1)."""
        self.add(-1)

    def sum(self) -> int:
        """All that was added before this call began, and of what is added meanwhile any part: no snapshot,
        exact without concurrent additions. If nothing negative is added, later sums are never smaller.
        """
        with self._lock:
            return self._all() - self._taken

    def sum_and_reset(self) -> int:
        """As ``sum``, and what it returns is subtracted: every number that is ever added is in exactly one of
        these sums, or in what is left, whatever threads do meanwhile.
        """
        with self._lock:
            before, self._taken = self._taken, self._all()
            return self._taken - before

    def reset(self) -> None:
        """As ``sum_and_reset``, and forgets the sum."""
        self.sum_and_reset()

    def statistics(self) -> StripedCounterStatistics:
        """A record of the moment: sum, stripes (how many cells it consists of)."""
        return StripedCounterStatistics(self.sum(), len(self._cells))

    def _new_cell(self) -> list[int]:
        try:
            return self._unowned.pop()
        except IndexError:
            cell = [0]
            self._cells.append(cell)
            return cell

    def _all(self) -> int:
        return sum(cell[0] for cell in list(self._cells))

    def __int__(self) -> int:
        return self.sum()

    __reduce__ = refuse_pickling

    def __repr__(self) -> str:
        total, stripes = self.statistics()
        return f"<fairlead.sync.extra.StripedCounter sum={total}, {stripes} stripes, at {id(self):#x}>"

"""Why it is a square: which threads run on each pass of the scheduler, worked out turn by turn and drawn.

The model is the plainest one that shows the effect: one core, turns in a fixed order, and a thread that is
let through keeps running. On each pass every running thread has one turn, so that the one just woken
waits behind all of them. The number of turns is counted off the passes that are drawn; no formula is written
down anywhere. Source of the model: the section on the square in aiologic's documentation (performance.rst).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from fairlead.record.summary import Schedule

STARTER = 0
"""The number of the one that starts the others; they are 1 to n."""


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of the scheduler."""

    runs: tuple[int, ...]
    """The threads that have a turn, in order."""
    waits: int | None
    """The thread that has been woken on this pass and waits until all of ``runs`` had their turns."""


def passes(kind: Schedule, n: int) -> tuple[Pass, ...]:
    """The passes until all ``n`` are through; empty for an experiment that has no such picture."""
    match kind:
        case "start":
            return tuple(_start(n))
        case "pass":
            return tuple(_pass(n))
        case _:
            return ()


def _start(n: int) -> Iterator[Pass]:
    running: list[int] = []
    for newcomer in range(1, n + 1):
        yield Pass((STARTER, *running), waits=newcomer)
        running.insert(0, newcomer)
        # the newcomer gives its word on its first turn, but the starter hears it behind all that run
        yield Pass(tuple(running), waits=STARTER)
    yield Pass((STARTER,), waits=None)


def _pass(n: int) -> Iterator[Pass]:
    running: list[int] = []
    for newcomer in range(1, n + 1):
        running.insert(0, newcomer)
        yield Pass(tuple(running), waits=newcomer + 1 if newcomer < n else None)


def turns(drawn: tuple[Pass, ...]) -> int:
    """How many turns the passes hold together: one context switch each."""
    return sum(len(p.runs) for p in drawn)


def sum_in_words(drawn: tuple[Pass, ...], n: int) -> str:
    """ "1 + 1 + 2 + 2 + 3 + 3 + 1 = 13 = 2 (1 + 2 + 3) + 1", every figure counted off ``drawn``."""
    total = turns(drawn)
    triangles, rest = divmod(total, sum(range(1, n + 1)))
    triangle = f"({' + '.join(map(str, range(1, n + 1)))})"
    closed = " ".join(
        filter(None, (str(triangles) if triangles > 1 else "", triangle, f"+ {rest}" if rest else ""))
    )
    heights = " + ".join(str(len(p.runs)) for p in drawn)
    return f"{heights} = {total}" if f"({heights})" == closed else f"{heights} = {total} = {closed}"


def singular(size_name: str) -> str:
    """ "threads" -> "thread", "processes" -> "process"."""
    return size_name.removesuffix("es") if size_name.endswith("sses") else size_name.removesuffix("s")


_CELL, _GAP, _LEFT, _TOP = 26, 3, 74, 24


def svg(kind: Schedule, n: int, size_name: str) -> str:
    """The passes as a picture, a row for each thread and a column for each pass; empty without passes.

    Colours come from the page's style sheet by class: ``turn``, ``turn new`` and ``wait``.
    """
    drawn = passes(kind, n)
    if not drawn:
        return ""
    one = escape(singular(size_name))
    rows = sorted({number for p in drawn for number in p.runs})
    top_of = {number: _TOP + i * (_CELL + _GAP) for i, number in enumerate(rows)}
    bottom = _TOP + len(rows) * (_CELL + _GAP)
    width, height = _LEFT + len(drawn) * (_CELL + _GAP), bottom + 24
    parts = [
        f'<svg class="schedule{" narrow" if len(drawn) <= n else ""}" viewBox="0 0 {width} {height}" '
        f'role="img" aria-label="Threads that run on each of {len(drawn)} passes with {n} '
        f'{escape(size_name)}: {turns(drawn)} turns in all.">'
    ]
    for number, top in top_of.items():
        label = "starter" if number == STARTER else f"{one} {number}"
        parts.append(_text(_LEFT - 8, top + _CELL / 2, label, "row"))
    parts += [
        _text(_LEFT - 8, _TOP - 13, "pass", "head row"),
        _text(_LEFT - 8, bottom + 12, "turns", "head row"),
    ]
    seen: set[int] = set()
    for column, p in enumerate(drawn):
        left = _LEFT + column * (_CELL + _GAP)
        parts.append(_text(left + _CELL / 2, _TOP - 13, str(column + 1), "head"))
        for place, number in enumerate(p.runs, start=1):
            new = number != STARTER and number not in seen
            parts.append(_rect(left, top_of[number], "turn new" if new else "turn"))
            parts.append(
                _text(
                    left + _CELL / 2, top_of[number] + _CELL / 2, str(place), "place new" if new else "place"
                )
            )
        seen.update(p.runs)
        if p.waits is not None:
            parts.append(_rect(left, top_of[p.waits], "wait"))
        parts.append(_text(left + _CELL / 2, bottom + 12, str(len(p.runs)), "sum"))
    return "".join([*parts, "</svg>"])


def _rect(left: float, top: float, kind: str) -> str:
    inset = 1 if kind == "wait" else 0
    side = _CELL - 2 * inset
    return (
        f'<rect class="{kind}" x="{left + inset}" y="{top + inset}" width="{side}" height="{side}" rx="4"/>'
    )


def _text(x: float, y: float, text: str, kind: str) -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{text}</text>'

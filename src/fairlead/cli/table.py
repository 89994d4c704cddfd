"""Plain tables for the terminal, without any library."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from textwrap import wrap

_WIDEST = 100
"""Longer lines are tiring to read."""


def columns() -> int:
    """How wide a line may be: as the terminal is, but never too wide to read."""
    return min(_WIDEST, shutil.get_terminal_size((_WIDEST, 24)).columns)


def table(rows: Sequence[Sequence[str]], *, indent: int = 2, width: int | None = None) -> str:
    """Lines with the columns of ``rows`` aligned to the left.

    With a ``width``, the last column is wrapped at words. It goes below the others if one of its words
    does not fit beside them.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [(" " * indent + "  ".join(map(str.ljust, row, widths))).rstrip() for row in rows]
    if width is None or max(map(len, lines)) <= width:
        return "\n".join(lines)
    begin = indent + sum(widths[:-1]) + 2 * len(widths[:-1])
    beside = begin + max((len(word) for row in rows for word in row[-1].split()), default=0) <= width
    margin = " " * (begin if beside else indent + 2)
    folded = []
    for line, row in zip(lines, rows, strict=True):
        below = wrap(
            row[-1],
            width,
            initial_indent=margin,
            subsequent_indent=margin,
            break_long_words=False,
            break_on_hyphens=False,
        )
        if beside and below:
            below[0] = line[:begin] + below[0][begin:]
        elif head := line[:begin].rstrip():
            below.insert(0, head)
        folded += below
    return "\n".join(folded)

"""Plain tables for the terminal, without any library."""

from __future__ import annotations

from collections.abc import Sequence


def table(rows: Sequence[Sequence[str]], *, indent: int = 2) -> str:
    """Lines with the columns of ``rows`` aligned to the left, the last one as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join((" " * indent + "  ".join(map(str.ljust, row, widths))).rstrip() for row in rows)

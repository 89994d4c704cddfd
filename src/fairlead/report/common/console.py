"""A page for the terminal, written into a string by rich."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING

from fairlead.report.common.extra import needed_for

if TYPE_CHECKING:
    from rich.table import Table

_STYLES = {
    "settled": "green",
    "rough": "green",
    "open": "yellow",
    "contrary": "magenta",
    "faster": "green",
    "slower": "red",
}
_UNIT = re.compile(
    r"(?<=[\d%]) (?=(?:s|ms|us|ns|KiB|MiB|GiB|%|M/s|k/s|cores?|threads?)\b|%)|(?<=±) (?=\d)|(?<=\d) (?=±)"
)
"""The space within a figure: "5.90 ms", "± 26 %"."""
_TIED = "\N{PUNCTUATION SPACE}"
"""A space that ``textwrap`` does not break at, and that no text of ours holds."""
_FIGURES = ("<claim", "<times", "<published", "<elapsed", "<request", "<start", "<delay", "<verdict")
"""Columns that are flush left and never broken."""
_RULED_HEAD = "    \n    \n -- \n    \n    \n    \n    \n    \n"
"""A table's frame in rich's notation: nothing but a line of hyphens below the head."""


class Page:
    """Lines and tables, folded to a width. Text is taken as it stands: no mark-up in it is obeyed.

    Raises:
        MissingExtraError: rich is not installed.
    """

    def __init__(self, width: int, colour: bool) -> None:
        with needed_for("the terminal report"):
            from rich.console import Console
        self._out = StringIO()
        self._console = Console(
            file=self._out,
            width=width,
            force_terminal=colour,
            color_system="standard" if colour else None,
            no_color=not colour,
            markup=False,
            emoji=False,
            highlight=False,
            legacy_windows=False,
        )
        self._gap = True

    def line(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """One paragraph, wrapped at words; further lines of an indented one stand in by two more."""
        from rich.text import Text

        margin = " " * indent
        lines = wrap(
            _UNIT.sub(_TIED, text),
            self._console.width,
            initial_indent=margin,
            subsequent_indent=f"{margin}  ",
            break_on_hyphens=False,
        )
        self._console.print(Text("\n".join(lines).replace(_TIED, " "), style=style, overflow="fold"))
        self._gap = False

    def lines(self, lines: Iterable[str], *, indent: int = 0) -> None:
        """A picture of characters: each line as it is."""
        from rich.text import Text

        for line in lines:
            self._console.print(Text(" " * indent + line, no_wrap=True, overflow="crop"))
            self._gap = False

    def table(self, table: Table, *, indent: int = 0) -> None:
        """A table made by ``table``; columns that do not fit are left out, the last ones first."""
        from rich.padding import Padding

        for column in table.columns:
            if column.no_wrap:  # or its words are what it is measured by, and rich cuts what is wider
                cells = (column.header, *column.cells)
                column.min_width = max(self._console.measure(cell).maximum for cell in cells)
        left_out: list[str] = []
        while len(table.columns) > 3 and self._console.measure(table).minimum > self._console.width - indent:
            left_out.append(str(table.columns.pop().header))
        self._console.print(Padding(table, (0, 0, 0, indent), expand=False))
        self._gap = False
        if left_out:
            self.line(f"for want of width without: {', '.join(reversed(left_out))}", indent=indent)

    def columns(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows below their heads, a line each; where they are too wide the last columns are left out.

        A first cell that is a verdict gets its colour.
        """
        from rich.text import Text

        kept = len(heads)
        while kept > 3 and self._wide(heads, rows, kept, 1) > self._console.width:
            kept -= 1
        gap = 2 if self._wide(heads, rows, kept, 2) <= self._console.width else 1
        if self._wide(heads, rows, kept, gap) > self._console.width:
            for row in rows:
                self.line(" ".join(filter(None, row)))
            return
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(kept)]
        for number, row in enumerate((heads, *rows)):
            text = (" " * gap).join(map(str.ljust, row[:kept], widths)).rstrip()
            line = Text(text, style="" if number else "bold", no_wrap=True)
            line.stylize(_STYLES.get(row[0], ""), 0, len(row[0]))
            self._console.print(line)
        self._gap = False

    @staticmethod
    def _wide(heads: Sequence[str], rows: Sequence[Sequence[str]], kept: int, gap: int) -> int:
        widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(kept)]
        return sum(widths) + gap * (kept - 1)

    def gap(self) -> None:
        """An empty line, unless there is one."""
        if not self._gap:
            self._console.print()
        self._gap = True

    def text(self) -> str:
        """All that was written, without spaces at the ends of lines."""
        return "".join(f"{line.rstrip()}\n" for line in self._out.getvalue().splitlines())


def table(*columns: str) -> Table:
    """An empty table with these heads; a column is flush right unless its head begins with "<"."""
    from rich.box import Box
    from rich.table import Table

    made = Table(
        box=Box(_RULED_HEAD, ascii=True),
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for head in columns:
        left = head.startswith("<")
        # a figure is never broken, least of all from its unit
        figures = not left or "[" in head or head in _FIGURES
        made.add_column(
            head.removeprefix("<"),
            justify="left" if left else "right",
            overflow="fold",
            no_wrap=figures,
        )
    return made


def add_row(table: Table, first: str, *others: str, indent: int = 0) -> None:
    """A row of ``table``, its first cell indented throughout; a cell that is a verdict gets its colour."""
    from rich.padding import Padding
    from rich.text import Text

    cells = (Text(cell, style=_STYLES.get(cell, "")) for cell in others)
    table.add_row(Padding(Text(first), (0, 0, 0, indent)), *cells)

"""A page for the terminal, written into a string by rich."""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from textwrap import wrap
from typing import TYPE_CHECKING

from fairlead.report.extra import needed_for

if TYPE_CHECKING:
    from rich.table import Table

_STYLES = {
    "stable": "green",
    "noisy": "yellow",
    "bimodal": "magenta",
    "undecided": "bright_black",
    "faster": "green",
    "slower": "red",
}
_RULED_HEAD = "    \n    \n -- \n    \n    \n    \n    \n    \n"
"""A table's frame in rich's notation: nothing but a line of hyphens below the head."""


class Page:
    """Lines and tables, folded to a width. Text is taken as it stands: no mark-up in it is obeyed.

    Raises:
        MissingExtra: rich is not installed.
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
            text, self._console.width, initial_indent=margin, subsequent_indent=margin and f"{margin}  "
        )
        self._console.print(Text("\n".join(lines), style=style, overflow="fold"))
        self._gap = False

    def lines(self, lines: Iterable[str], *, indent: int = 0) -> None:
        """A picture of characters: each line as it is."""
        from rich.text import Text

        for line in lines:
            self._console.print(Text(" " * indent + line, no_wrap=True, overflow="crop"))
            self._gap = False

    def table(self, table: Table, *, indent: int = 0) -> None:
        """A table made by ``table``."""
        from rich.padding import Padding

        self._console.print(Padding(table, (0, 0, 0, indent), expand=False))
        self._gap = False

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
        made.add_column(head.removeprefix("<"), justify="left" if left else "right", overflow="fold")
    return made


def add_row(table: Table, first: str, *others: str, indent: int = 0) -> None:
    """A row of ``table``, its first cell indented throughout; a cell that is a verdict gets its colour."""
    from rich.padding import Padding
    from rich.text import Text

    cells = (Text(cell, style=_STYLES.get(cell, "")) for cell in others)
    table.add_row(Padding(Text(first), (0, 0, 0, indent)), *cells)

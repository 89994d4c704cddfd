"""Tables for the terminal."""

from __future__ import annotations

import pytest

from fairlead.cli.table import table

pytestmark = pytest.mark.once

ROWS = [("a", "one", "first words of it"), ("bcd", "two", ""), ("e", "three", "more")]


def test_last_column_is_wrapped_below_itself_or_below_the_others() -> None:
    assert table(ROWS) == "  a    one    first words of it\n  bcd  two\n  e    three  more"
    assert table(ROWS, width=31) == table(ROWS)
    assert table(ROWS, width=25).splitlines() == [
        "  a    one    first words",
        "              of it",
        "  bcd  two",
        "  e    three  more",
    ]
    rows = [("name", "path"), ("python", "/usr/local/bin/python3-debug")]
    assert table(rows, width=34).splitlines() == [
        "  name",
        "    path",
        "  python",
        "    /usr/local/bin/python3-debug",
    ]

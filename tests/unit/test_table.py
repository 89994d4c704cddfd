"""Tables for the terminal."""

from __future__ import annotations

from fairlead.cli.table import table

ROWS = [("a", "one", "first words of it"), ("bcd", "two", ""), ("e", "three", "more")]


def test_last_column_is_as_long_as_it_is_without_a_width() -> None:
    assert table(ROWS) == "  a    one    first words of it\n  bcd  two\n  e    three  more"
    assert table(ROWS, width=31) == table(ROWS)


def test_last_column_is_wrapped_at_words_and_stays_below_itself() -> None:
    assert table(ROWS, width=25).splitlines() == [
        "  a    one    first words",
        "              of it",
        "  bcd  two",
        "  e    three  more",
    ]


def test_last_column_goes_below_the_others_where_a_word_does_not_fit_beside_them() -> None:
    rows = [("name", "path"), ("python", "/usr/local/bin/python3-debug")]
    assert table(rows, width=34).splitlines() == [
        "  name",
        "    path",
        "  python",
        "    /usr/local/bin/python3-debug",
    ]

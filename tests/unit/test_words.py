"""Times, sizes and cores as users write them."""

from __future__ import annotations

from typing import Any

import click
import pytest

from fairlead.cli import words

pytestmark = pytest.mark.ends

CONTEXT = click.Context(click.Command("test"))
OPTION = click.Option(["--it"])


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("60s", 60), ("1.5 s", 1.5), ("5m", 300), ("2min", 120), ("1h", 3600)]
)
def test_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert words.duration(CONTEXT, OPTION, text) == seconds


@pytest.mark.parametrize(
    ("text", "cores"), [("0", (0,)), ("3,1", (1, 3)), ("0-3", (0, 1, 2, 3)), ("0-1, 5,5", (0, 1, 5))]
)
def test_cores_are_read_sorted_and_once(text: str, cores: tuple[int, ...]) -> None:
    assert words.cores(CONTEXT, OPTION, text) == cores


def test_sizes_are_read_sorted_and_once() -> None:
    assert words.sizes(CONTEXT, OPTION, "200,50,50") == (50, 200)


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((words.duration, text) for text in ("", "0", "-5", "soon", "5d", "1e3", "nan", "5 s s")),
        *((words.cores, text) for text in ("", "a", "1,", "3-1", "-1", "1.5", "99999")),
        *((words.sizes, text) for text in ("", "0", "x", "5,,6", "-3", "2.5", "10;20")),
    ],
)
def test_nonsense_is_refused_and_quoted(read: Any, text: str) -> None:
    with pytest.raises(click.BadParameter):
        read(CONTEXT, OPTION, text)


@pytest.mark.parametrize("read", [words.duration, words.cores, words.sizes])
def test_option_that_is_not_given_stays_so(read: Any) -> None:
    assert read(CONTEXT, OPTION, None) is None

"""What several of these need."""

from __future__ import annotations

from typing import NoReturn

from fairlead.sync import Event

_SET = Event()
_SET.set()


def check_timeout(timeout: float | None) -> None:
    """Raises what every wait raises for a wrong time-out, before anything has changed."""
    _SET.wait(timeout)


def refuse_pickling(primitive: object) -> NoReturn:
    """A ``__reduce__``."""
    raise TypeError(
        f"cannot pickle 'fairlead.sync.extra.{type(primitive).__name__}' object: "
        "it belongs to one interpreter"
    )

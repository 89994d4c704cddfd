"""A chunk: one task that calls a function for several items. Imported by workers; keep its imports few."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from fairlead.pools.failure import Failure


def call_chunk(function: Callable[..., Any], items: Sequence[Any], star: bool) -> tuple[list[Any], int]:
    """What each call came to, a Failure where it raised, and the nanoseconds that all took."""
    begin = time.monotonic_ns()
    outcomes: list[Any] = []
    for item in items:
        try:
            outcomes.append(function(*item) if star else function(item))
        except Exception as error:  # noqa: BLE001 - the item's outcome
            outcomes.append(Failure(error))
    return outcomes, time.monotonic_ns() - begin

"""A chunk: one task that calls a function for several items. Imported by workers; keep its imports few."""

from __future__ import annotations

import time

from fairlead.pools.engine.stopped import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def _failure(error: BaseException) -> Any:
    from fairlead.pools.serialization.failure import Failure

    return Failure(error)


def call_chunk(
    function: Callable[..., Any],
    items: Sequence[Any],
    star: bool,
    failed: Callable[[BaseException], Any] = _failure,
) -> tuple[list[Any], int]:
    """What each call came to, a Failure where it raised, and the nanoseconds that all took.

    Args:
        failed: makes the Failure.
    """
    begin = time.monotonic_ns()
    outcomes: list[Any] = []
    for item in items:
        try:
            outcomes.append(function(*item) if star else function(item))
        except Stopped:
            raise
        except BaseException as error:  # noqa: BLE001 - the item's outcome, sys.exit() too
            outcomes.append(failed(error))
    return outcomes, time.monotonic_ns() - begin

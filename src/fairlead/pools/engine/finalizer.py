"""How a worker's ``finalizer`` is called, in every kind. Workers import this: its imports are few."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def finalize(finalizer: Callable[[], object] | None) -> None:
    """What it raises is logged, because no task is left that could raise it."""
    if finalizer is None:
        return
    try:
        finalizer()
    except BaseException:
        import logging

        logging.getLogger("fairlead.pools").exception("exception calling a worker's finalizer")

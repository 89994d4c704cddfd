"""Stage "plan": the function and its items are looked at, and nothing is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .loading import interpreter, load_target

if TYPE_CHECKING:
    from .worker import Activity


def run(job: dict[str, Any], progress: Activity) -> dict[str, Any]:
    from fairlead.advice.child.sending import Sending
    from fairlead.pools.serialization import function as told

    function, items = load_target(job, progress.say)
    sending = Sending(function)
    return {
        "items": len(items),
        "interpreter": interpreter(),
        "coroutines": told.makes_coroutines(function),
        "cannot_be_sent": sending.call(items[0]),
        "cannot_load": sending.refusals(items[:1]),
    }

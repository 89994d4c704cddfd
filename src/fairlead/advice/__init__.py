"""Which kind of pool, and how many workers, for a function of yours: it is measured under each.

``fairlead.advise(fn, items)`` is the way in; the records that it returns are of ``fairlead.record.advice``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.advice.jobs import Report
    from fairlead.record.advice import Advice

__all__ = ["advise"]


def advise(
    fn: Callable[[Any], Any],
    items: Iterable[Any],
    *,
    budget: float = 30.0,
    requests: int | None = None,
    max_calls: int | None = None,
    kinds: Sequence[str] | None = None,
    memory_mib: int | None = None,
    report: Report | None = None,
) -> Advice:
    """Measure ``fn(item)`` under every kind of pool that can run it, and say which one to take.

    **The function is called many times**, in other processes, each of them new: whatever it writes, sends or
    deletes happens as often. ``max_calls`` bounds that.

    Args:
        fn: a function, coroutine functions included, that other processes can be given: one of a module, or
            one that cloudpickle can send (lambdas, closures, those of ``__main__``).
        items: what it is called with, one at a time. At most 100,000 are taken.
        budget: seconds that it may take, about.
        requests: calls that the advice is for; None: one for each item. The start of a pool counts among
            their time, so that few short calls are best made without one.
        max_calls: the most calls in all.
        kinds: names of the kinds to be measured, "sequential" always among them; None: all that apply.
        memory_mib: the most memory in MiB, of all processes together, that what is advised may take.
        report: called with a ``fairlead.lab.run.runner.Progress`` before each step.

    Returns:
        the choice with its reasons, every candidate with its figures, and code to paste.

    Raises:
        UsageError: the arguments are off: no items, not callable, a budget that is none.
        SerializationError: the function or its items cannot be given to another process.
        AdviceError: the function raised, exited, or did not return; or the budget is too small for it.
        KeyboardInterrupt: Ctrl-C; nothing that was started is left.
        MissingExtraError: numpy is not installed.
    """
    import signal

    from fairlead.advice.session import Session
    from fairlead.advice.target import given
    from fairlead.errors import RunInterruptedError

    with given(fn, items, requests) as target:
        try:
            return Session(
                target, budget, max_calls=max_calls, kinds=kinds, memory_mib=memory_mib, report=report
            ).run()
        except RunInterruptedError as stopped:
            if stopped.signum == signal.SIGINT:
                raise KeyboardInterrupt from stopped
            raise

"""Which kind of pool a function should be given to, and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fairlead.pools.choose import rules
from fairlead.pools.choose.call_profile import CallSample

PoolKind = Literal["threads", "processes", "interpreters", "async"]


@dataclass(frozen=True, slots=True)
class ChoiceFacts:
    """What a choice rests on. The callables cost something, and are asked only where it matters."""

    cores: int
    gil: bool
    makes_coroutines: bool
    sample: CallSample | None
    alone: bool
    """Each call is a task by itself, not one of many in a chunk."""
    cannot_be_sent: Callable[[], str | None]
    """Why the call or its result cannot go to another process; None if it can."""
    shares: Callable[[], str | None]
    """Why its calls must be made in this process, whatever they do with their time; None if they need not."""
    no_interpreters: str | None
    """Why there are no interpreters to choose; None if there are."""
    refusals: Callable[[], Mapping[str, str]]
    """Modules that it needs and that subinterpreters cannot import, and what is said of them."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The kind, and the reasons in plain words; ``str()`` is a sentence."""

    kind: PoolKind
    workers: int | None
    """None: as many as the kind makes by itself."""
    reasons: tuple[str, ...]
    against: Mapping[str, str] = field(default_factory=dict)
    """Kinds that were considered before it, and what speaks against each."""

    def __str__(self) -> str:
        kinds: dict[str, list[str]] = {}
        for kind, reason in self.against.items():
            kinds.setdefault(reason, []).append(kind)
        against = "".join(f"; not {' or '.join(those)}: {reason}" for reason, those in kinds.items())
        return f"{self.kind}, because {', and '.join(self.reasons)}{against}"


def choose(facts: ChoiceFacts) -> Choice:
    """The first kind that fits: coroutines on a loop, waiting in threads, computing wherever there is no
    GIL in common."""
    if facts.makes_coroutines:
        return Choice("async", None, ("the function makes coroutines",))
    sample = facts.sample
    if sample is None:
        computes = "what its calls do is not known"
    else:
        share = f"{sample.busy * 100:.0f} % of {_time(sample.wall_s)}"
        if rules.waits(1 - sample.busy):
            return Choice("threads", None, (f"its calls mostly wait (busy for {share})",))
        computes = f"its calls compute (busy for {share})"
    if not facts.gil:
        return Choice("threads", facts.cores, (computes, "this interpreter has no GIL"))
    if facts.cores == 1:
        return Choice("threads", 1, (computes, "there is one core to do so"))
    if sample is not None and sample.held is False:
        return Choice("threads", facts.cores, (computes, "they let go of the GIL meanwhile"))
    if sample is not None and facts.alone and rules.too_short_to_send(sample.wall_s):
        return Choice("threads", facts.cores, (computes, "each is over sooner than it could be sent away"))
    if (reason := facts.shares()) is not None:
        return in_threads(facts.cores, computes, reason)
    if (reason := facts.cannot_be_sent()) is not None:
        return in_threads(facts.cores, computes, reason)
    against: dict[str, str] = {}
    held = "hold the GIL" if sample is not None and sample.held else "are taken to hold the GIL"
    why = (computes, f"they {held}", f"{facts.cores} cores can do so at once without a GIL in common")
    if facts.no_interpreters is not None:
        against["interpreters"] = facts.no_interpreters
    elif (reason := rules.refused(facts.refusals())) is not None:
        against["interpreters"] = reason
    else:
        return Choice("interpreters", facts.cores, why)
    return Choice("processes", facts.cores, why, against)


def in_threads(cores: int, computes: str, reason: str) -> Choice:
    """``reason``: why not elsewhere."""
    against = dict.fromkeys(("interpreters", "processes"), reason)
    return Choice(
        "threads", cores, (computes, "other kinds could not make them as this process does"), against
    )


def _time(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"

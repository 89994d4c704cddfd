"""What speaks for and against a kind of pool. AutoPool chooses by it, from a look at the first calls; for
``fairlead advise`` it says what is worth measuring, and why a result came out so."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from fairlead.pools.interpreter import tracing

MOSTLY = 0.7
"""A call that waits for more of its time than this is one that waits: a second thread of Python that computes
leaves it half of the GIL, and so busy for more than the rest."""

SLIGHT = 0.1
"""What takes less of a call's time than this is not worth more workers than cores, if it is waiting, nor more
cores, if it is computing."""

SENDING_S = 100e-6
"""What it takes to have another process make a call."""


def waits(waiting: float) -> bool:
    """Whether a call that waits for this share of its time is one that waits."""
    return waiting > MOSTLY


def gains_by_waiting_at_once(waiting: float) -> bool:
    """Whether more workers than cores can pay."""
    return waiting > SLIGHT


def gains_by_cores(busy: float) -> bool:
    """Whether a second core can pay."""
    return busy > SLIGHT


def too_short_to_send(call_s: float) -> bool:
    return call_s < SENDING_S


def no_interpreters() -> str | None:
    """Why a pool of interpreters cannot be chosen here; None if it can."""
    if sys.version_info < (3, 13):
        return "they need Python 3.13"
    return tracing.why_not()


def refused(modules: Mapping[str, str]) -> str | None:
    """Why interpreters cannot make calls that need these modules, by what each says on being imported there;
    None if there are none."""
    for name, said in modules.items():
        return f"{name} cannot be imported there ({_in_short(said)})"
    return None


def _in_short(said: str) -> str:
    """What a module says of why it cannot be imported, in a line: some say it on forty."""
    lines = [line.strip(" .") for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if "interpreter" in line.lower() and "version" not in line.lower()]
    return (telling or lines or [""])[-1 if telling else 0][-120:]


def has_gil() -> bool:
    return bool(getattr(sys, "_is_gil_enabled", lambda: True)())

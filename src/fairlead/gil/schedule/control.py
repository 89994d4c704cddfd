"""The scheduler's switch."""

from __future__ import annotations

from fairlead import machine
from fairlead.errors import UnsupportedInterpreterError, UsageError
from fairlead.gil.observe import tested
from fairlead.gil.observe.access import require
from fairlead.record.policies import CANARY_STATES, POLICIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fairlead.record.policies import CanaryState
    from fairlead.record.policies import Policy as Policy

SHARE_ONE = 1024
SPIN_QUOTA = 2.5
"""Cores: one for the holder of the GIL, one for the thread that spins, and a margin for what runs beside."""
FOREVER_NS = 2**62
"""More than a hundred years."""

share = 0.05
"""The last that was given to ``switch``."""
_open = False


def check(policy: str, cpu_share: float, timer_slack: float | None = None) -> None:
    """Raises UsageError unless these can be given to ``switch``."""
    if policy not in POLICIES:
        raise UsageError(f"no policy {policy!r}; it is one of {', '.join(POLICIES)}")
    if not 0.01 <= cpu_share <= 0.95:
        raise UsageError(
            f"cpu_share is from .01 to .95, not {cpu_share:g}: .05 keeps 5 % of the GIL for computing threads"
        )
    if timer_slack is not None and not 1e-9 <= timer_slack <= 1:
        raise UsageError(f"timer_slack is from 1e-9 to 1 second, not {timer_slack}")


def slacken(timer_slack: float | None) -> None:
    """Sets this thread's timer slack, and that of those that it starts; None leaves it.

    Raises:
        UnsupportedInterpreterError: the system has none.
    """
    if timer_slack is not None and not machine.set_timer_slack_ns(round(timer_slack * 1e9)):
        raise UnsupportedInterpreterError("only Linux has timer slack: leave it out")


def may_spin(cores: machine.Cores) -> bool:
    """Whether a waiting thread may look for the GIL on its core: not if that can use a CPU quota up.

    When a quota is used up, the kernel stops the whole process for the rest of a period, the holder included.
    That costs more than all that spinning wins.
    """
    return cores.usable > 1 and (cores.quota is None or cores.quota >= SPIN_QUOTA)


def switch(
    policy: Policy,
    cpu_share: float,
    timer_slack: float | None = None,
    for_s: float | None = None,
    *,
    trial: bool = False,
) -> bool:
    """``fairlead.gil.schedule``; after so many seconds the interpreter's own scheduling is back.

    False: this is a trial, and another process has ordered a policy, which stays.

    The hooks see to that end, and not a thread of ours: forked children keep to it, and nothing else is in
    the program for it.
    """
    global share
    check(policy, cpu_share, timer_slack)
    require()
    from fairlead import _probe

    for_ns = 0 if for_s is None else max(1, min(round(for_s * 1e9), FOREVER_NS))
    spin = may_spin(machine.cores())
    done = _probe.schedule(POLICIES.index(policy), round(cpu_share * SHARE_ONE), spin, for_ns, trial)
    tested.warn(frames_checked=True)  # no stack is read
    share = cpu_share
    _open_to_orders()
    slacken(timer_slack)
    return done


def _open_to_orders() -> None:
    """``fairlead ctl`` finds this process, and each child that it forks (see ``outside.py``)."""
    global _open
    if not _open:
        from fairlead import _probe

        _open = True
        _probe.control()


def canary(now: CanaryState) -> None:
    """Say what a trial has come to, for ``state()``, the counters and ``fairlead ctl``.

    Raises: as ``switch``.
    """
    require()
    from fairlead import _probe

    _probe.canary(CANARY_STATES.index(now))

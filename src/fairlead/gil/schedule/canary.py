"""Does scheduling help this program, under this load? Tried in the program itself, in turns.

Windows of some seconds come in pairs, one with the interpreter's own scheduling and one scheduled, in random
order; load that rises and falls does so in both. Of each window two figures are taken: how long a turn of the
GIL was waited for on average, and the 99th percentile of the waits there were. For each, the logarithms of
the pairs' ratios have Student's interval around their mean. That is looked at three times, after 6, 12 and 24
pairs, at a level of 5 % for the three together. It ends with the first look that tells a difference.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from fairlead.errors import FairleadError
from fairlead.gil.observe.observation import Observation
from fairlead.gil.schedule import control
from fairlead.gil.schedule.state import state
from fairlead.measure.ratio import Ratio, paired

if TYPE_CHECKING:
    from fairlead.record.policies import CanaryState, Policy

LOOKS = (6, 12, 24)
"""So many pairs are looked at."""
LEVEL = 1 - 0.05 / len(LOOKS)
"""Of the interval of each look."""
REGRESSION = 1.10
SETTLES = 0.2
"""Share of a window that is left out: what waits was begun in the one before."""
LEAST_WAITS = 20
"""In a window; with fewer it says nothing."""

Decision = Literal["keep", "stock"]


class CanaryWindow(NamedTuple):
    """What was measured in one window."""

    wait_per_turn: float
    p99_wait: float


@dataclass(frozen=True, slots=True)
class CanaryVerdict:
    """What the pairs so far say."""

    pairs: int
    per_turn: Ratio
    """Scheduled over stock: under 1 is better."""
    p99: Ratio
    decision: Decision | None
    """None: too early to tell."""
    reason: str


def judge(pairs: Sequence[tuple[CanaryWindow, CanaryWindow]]) -> CanaryVerdict | None:
    """What pairs of (stock, scheduled) say; None unless there are as many as one looks at."""
    if len(pairs) not in LOOKS:
        return None
    per_turn = paired([scheduled.wait_per_turn / stock.wait_per_turn for stock, scheduled in pairs], LEVEL)
    p99 = paired([scheduled.p99_wait / stock.p99_wait for stock, scheduled in pairs], LEVEL)
    assert per_turn is not None, "each look has enough pairs"
    assert p99 is not None
    decision: Decision | None = None
    reason = ""
    if per_turn.low > REGRESSION or p99.low > REGRESSION:
        decision, reason = "stock", "threads wait more than 10 % longer"
    elif per_turn.high < 1 and p99.value <= REGRESSION:
        decision, reason = "keep", "threads wait less"
    elif len(pairs) == max(LOOKS):
        decision, reason = "stock", "no gain can be told"
    return CanaryVerdict(len(pairs), per_turn, p99, decision, reason)


def percentile(histogram: Sequence[int], share: float) -> float:
    """Seconds, of a histogram whose bucket k counts durations of 2^k to 2^(k+1) ns."""
    wanted = share * sum(histogram)
    for k, count in enumerate(histogram):
        if count and wanted <= count:
            return math.ldexp(2.0 ** (wanted / count), k) / 1e9
        wanted -= count
    return math.ldexp(1.0, len(histogram)) / 1e9


class Canary:
    """Alternates, judges, and leaves the better in force. Runs in a thread of its own."""

    def __init__(self, policy: Policy, cpu_share: float, window_s: float) -> None:
        self.policy: Policy = policy
        self.cpu_share = cpu_share
        self.window_s = window_s
        self.verdict: CanaryVerdict | None = None

    def run(self) -> None:
        """To the end of the trial. Never raises: what goes wrong ends it in one line."""
        try:
            control.canary("tries")
            control.canary(self._alternate())
        except FairleadError as error:
            control.canary("none")
            _say(f"the canary has ended: {error}")

    def _alternate(self) -> CanaryState:
        choose = random.Random()
        pairs: list[tuple[CanaryWindow, CanaryWindow]] = []
        while self.verdict is None or self.verdict.decision is None:
            order: list[Policy] = ["stock", self.policy]
            choose.shuffle(order)
            seen: dict[Policy, CanaryWindow | None] = {}
            for policy in order:
                switched = control.switch(policy, self.cpu_share, trial=True)
                seen[policy] = self._window() if switched else None
                now = state()
                if not switched or (now.policy, now.canary) != (policy, "tries"):
                    return _ended_by_others()
            stock, scheduled = seen["stock"], seen[self.policy]
            if stock is not None and scheduled is not None:
                pairs.append((stock, scheduled))
                self.verdict = judge(pairs) or self.verdict
        kept: Policy = self.policy if self.verdict.decision == "keep" else "stock"
        if not control.switch(kept, self.cpu_share, trial=True):
            return _ended_by_others()
        _say(_told(self.verdict, kept, self.window_s))
        return "rejected" if kept == "stock" else "kept"

    def _window(self) -> CanaryWindow | None:
        time.sleep(self.window_s * SETTLES)
        with Observation(None) as observation:
            time.sleep(self.window_s * (1 - SETTLES))
        threads = observation.threads
        turns = sum(thread.acquisitions for thread in threads)
        waits = sum(thread.contended for thread in threads)
        if waits < LEAST_WAITS:
            return None
        histogram = [sum(counts) for counts in zip(*(t.wait_histogram for t in threads), strict=True)]
        waited = sum(thread.waited_seconds for thread in threads)
        return CanaryWindow(waited / turns, percentile(histogram, 0.99))


def _ended_by_others() -> CanaryState:
    _say(f"the canary has ended: the policy was switched to {state().policy} meanwhile")
    return "none"


def _told(verdict: CanaryVerdict, kept: Policy, window_s: float) -> str:
    return (
        f"canary: scheduled, threads wait {_times(verdict.per_turn)} as long for a turn of the GIL, and"
        f" {_times(verdict.p99)} at the 99th percentile ({verdict.pairs} pairs of windows of {window_s:g} s):"
        f" {verdict.reason}; policy {kept}"
    )


def _times(ratio: Ratio) -> str:
    return f"{ratio.value:.2f} times [{ratio.low:.2f}, {ratio.high:.2f}]"


def _say(text: str) -> None:
    if sys.stderr is not None:
        print(f"fairlead: process {os.getpid()}: {text}", file=sys.stderr, flush=True)

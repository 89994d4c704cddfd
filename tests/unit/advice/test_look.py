"""How a function is looked at: its first calls, one at a time."""

from __future__ import annotations

import itertools
import time
from types import SimpleNamespace

import pytest

from fairlead.advice.child import look

pytestmark = pytest.mark.ends


class Silent:
    """An activity that nobody looks at."""

    def say(self, doing: str) -> None:
        pass

    def call(self, place: int) -> None:
        pass


@pytest.mark.parametrize(("look_s", "whole"), [(60.0, True), (1e-9, False)])
def test_what_calls_do_is_seen_in_more_than_one_short_call(
    look_s: float, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine the first round may use up all the time that there is for a second. Here a
    millisecond passes each time that the clock is read."""
    reads = itertools.count()
    clock = SimpleNamespace(perf_counter=lambda: next(reads) / 1000, process_time=time.process_time)
    monkeypatch.setattr(look, "time", clock)

    def call(number: int) -> int:
        return sum(range(2000 + number))

    job = {"target": {"label": "call"}, "look_s": look_s, "requests": 8}
    job |= {"most_calls": 1 << 60, "call_limit_s": 60.0}
    looked = look._Look(job, Silent(), call, call, list(range(8)))
    looked.first_round()
    assert looked.second_round() is whole
    assert looked.shares["observed"] > 10
    assert looked.shares["gil"] + looked.shares["free"] + looked.shares["waiting"] == pytest.approx(1)

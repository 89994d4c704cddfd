"""Successive halving: when it begins to measure, and when it says that there is no time for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from fairlead.advice.candidates import Way
from fairlead.advice.jobs import Bench
from fairlead.advice.successive_halving import UNBOUNDED, CandidateState, Halving, Limits
from fairlead.errors import AdviceError
from fairlead.lab.isolation.stop import Stop

pytestmark = pytest.mark.ends


class Refusing:
    """Every job fails."""

    def run(self, *_: Any, **__: Any) -> dict[str, Any]:
        return {"failed": "KeyError: 1"}


@pytest.fixture(autouse=True)
def _no_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead.advice.successive_halving.time", SimpleNamespace(monotonic=lambda: 0.0))


def refusal(call_s: float, left_s: float, waiting: float = 0.0, workers: int = 2) -> str:
    limits = Limits(
        label="shop:price", coroutines=False, requests=100, call_s=call_s, waiting=waiting,
        check=(0,), marks=("",), budget_s=2.0, end=left_s, most_calls=UNBOUNDED,
    )  # fmt: skip
    states = [CandidateState(Way("sequential", 1), "3.14"), CandidateState(Way("threads", workers), "3.14")]
    with Stop() as stop, pytest.raises(AdviceError) as raised:
        Halving(cast(Bench, Refusing()), stop, limits, lambda *_: None).run(states)
    return str(raised.value)


def test_refusal_is_of_what_takes_long_and_not_of_what_waits_or_had_no_time() -> None:
    assert refusal(10.0, 2.0).startswith("one call of shop:price takes 10 s, and comparing 2 ways")
    assert refusal(1e-7, -1.5).startswith(
        "shop:price, called one after another in a new process: KeyError: 1"
    )
    at_once = {"call_s": 0.5, "left_s": 2.0, "workers": 64}
    assert "comparing 2 ways" in refusal(**at_once, waiting=0.0)
    assert "comparing 2 ways" not in refusal(**at_once, waiting=1.0)

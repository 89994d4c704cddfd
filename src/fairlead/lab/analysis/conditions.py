"""What disturbed a run: other load, the host, a quota, and cores that ran faster and slower, told apart."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from statistics import median

from fairlead.record.sample import Sample
from fairlead.record.summary import Conditions


def conditions(samples: Sequence[Sample]) -> Conditions:
    """Of all samples that were measured."""
    good = [sample for sample in samples if sample.status == "ok"]
    others = [
        max(0.0, one.foreign_share - (one.stolen_share or 0.0))
        for one in good
        if one.foreign_share is not None
    ]
    stolen = [one.stolen_share for one in good if one.stolen_share is not None]
    throttled = [one.throttled_s for one in good if one.throttled_s is not None]
    spins = [one.spin_s for one in good if one.spin_s]
    warm_up = {
        f"{one.interpreter.get('implementation')} {one.interpreter.get('version')}"
        for one in good
        if one.interpreter.get("jit")
    }
    return Conditions(
        other_load=median(others) if others else None,
        highest_load=_of_twenty(others, 19) if others else None,
        stolen=_of_twenty(stolen, 19) if stolen else None,
        throttled_s=sum(throttled) if throttled else None,
        speed_varied=(
            (_of_twenty(spins, 19) - _of_twenty(spins, 1)) / 2 / median(spins) if len(spins) > 1 else None
        ),
        spin_s=median(spins) if spins else None,
        rejected=sum(sample.attempt for sample in samples),
        warm_up=tuple(sorted(warm_up)),
        wrong_clock=next((s.started for s in samples if s.started and not _credible(s.started)), None),
    )


def _credible(started: str) -> bool:
    """Whether a sample can have been taken then: a clock that was never set says 1970."""
    return 2020 <= datetime.fromisoformat(started).year < 2090


def _of_twenty(values: Sequence[float], place: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * place // 20)]

"""What an answer says of how sure it is, of functions and of servers."""

from __future__ import annotations

from fairlead.report.common import units

BUSY = 0.10
"""The share of the cores that others may take unmentioned."""


def busy(foreign: float | None) -> str | None:
    """What other programs took; None if that is not worth a word."""
    if foreign is None or foreign <= BUSY:
        return None
    return (
        f"Other programs took up to {units.percent(foreign)} of the cores meanwhile: all figures are those "
        "beside them. Ask again on a quieter machine."
    )


def loss(expected: float | None, rounds: int, others: str, what: str) -> str:
    """What the choice may cost."""
    if expected is None:
        count = "one round" if rounds == 1 else f"{rounds} rounds"
        return f"Measured in {count}: what it may lose is not known. A larger --budget has more rounds."
    return f"Expected loss against the best of the other {others}: {units.percent(expected)} of the {what}."

"""An advice as JSON: what its file holds."""

from __future__ import annotations

from fairlead.record.advice import Advice, dumps


def render(advice: Advice) -> str:
    """One object: schema, choice, candidates and the rest, by the names of ``fairlead.record.advice``."""
    return dumps(advice)

"""The policies by which the GIL is scheduled, by the number that the extension and recordings give them."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["stock", "interactive"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


def name_of(mode: int) -> str:
    """A policy's name; a later version's may have none here."""
    return POLICIES[mode] if 0 <= mode < len(POLICIES) else f"policy {mode}"

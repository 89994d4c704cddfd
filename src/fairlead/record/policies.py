"""The policies of the GIL, the priorities of threads and the states of a canary, in the order of the
extension's numbers."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["stock", "interactive"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

Priority = Literal["normal", "io", "background"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)

CanaryState = Literal["none", "tries", "kept", "rejected"]
CANARY_STATES: tuple[CanaryState, ...] = get_args(CanaryState)


def policy_name(mode: int) -> str:
    """A policy's name; a later version's may have none here."""
    return POLICIES[mode] if 0 <= mode < len(POLICIES) else f"policy {mode}"

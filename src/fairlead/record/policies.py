"""The policies of the GIL, the priorities of threads and the states of a canary, in the order of the
extension's numbers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Policy = Literal["stock", "interactive"]
    Priority = Literal["normal", "io", "background"]
    CanaryState = Literal["none", "tries", "kept", "rejected"]

POLICIES: tuple[Policy, ...] = ("stock", "interactive")
PRIORITIES: tuple[Priority, ...] = ("normal", "io", "background")
CANARY_STATES: tuple[CanaryState, ...] = ("none", "tries", "kept", "rejected")


def policy_name(mode: int) -> str:
    """A policy's name; a later version's may have none here."""
    return POLICIES[mode] if 0 <= mode < len(POLICIES) else f"policy {mode}"

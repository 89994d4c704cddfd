"""The policies of the GIL and the priorities of threads, in the order of the extension's numbers."""

from __future__ import annotations

from typing import Literal, get_args

Policy = Literal["stock", "interactive"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

Priority = Literal["normal", "io", "background"]
PRIORITIES: tuple[Priority, ...] = get_args(Priority)


def policy_name(mode: int) -> str:
    """A policy's name; a later version's may have none here."""
    return POLICIES[mode] if 0 <= mode < len(POLICIES) else f"policy {mode}"

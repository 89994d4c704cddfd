"""The GIL of an interpreter: ``observe`` (who holds it, who waits, who blocked whom), and ``simulate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.gil.simulation import simulate as simulate


def __getattr__(name: str) -> Any:
    if name == "simulate":
        from fairlead.gil.simulation import simulate

        return simulate
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""Pickle, and cloudpickle for what pickle refuses: lambdas, closures, classes made in functions."""

from __future__ import annotations

import pickle
from typing import Any

from fairlead.pools.serialization import of_main

loads = pickle.loads


def dumps(value: Any) -> bytes:
    """Raises what pickle says of it if neither can."""
    try:
        return of_main.dumps(value)
    except Exception as refusal:  # noqa: BLE001 - objects raise what they like when they are asked
        try:
            import cloudpickle

            pickled: bytes = cloudpickle.dumps(value, 5)
        except Exception:  # noqa: BLE001 - the plain refusal says more
            raise refusal from None
        return pickled

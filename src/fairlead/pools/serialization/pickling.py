"""Pickle, and cloudpickle for what pickle refuses: lambdas, closures, classes made in functions."""

from __future__ import annotations

import pickle
from typing import Any

from fairlead.pools.engine.stopped import Stopped
from fairlead.pools.serialization.messages import Parts, pickled

OF_THE_THREAD = (KeyboardInterrupt, Stopped)
"""Meant for the thread that pickles; whatever else comes out of pickling is an object's."""

loads = pickle.loads


def pickled_either_way(value: Any, *, by_value: bool = False, whole: bool = False) -> Parts:
    """Tries the given way first. Raises what is said of it then if neither works."""
    try:
        return pickled(value, by_value=by_value, whole=whole)
    except OF_THE_THREAD:
        raise
    except BaseException as refusal:  # noqa: BLE001 - objects raise what they like when they are asked
        try:
            return pickled(value, by_value=not by_value, whole=whole)
        except OF_THE_THREAD:
            raise
        except BaseException:  # noqa: BLE001 - as above
            raise refusal from None


def dumps(value: Any, *, by_value: bool = False) -> bytes:
    return b"".join(pickled_either_way(value, by_value=by_value, whole=True).stream)

"""What probes share that needs fairlead in the interpreter that is measured: scheduling, observing, pools."""

import sys

import probe


def schedule(policy):
    """Have fairlead schedule the GIL from here on, unless the policy is "off"."""
    if policy == "off":
        return
    try:
        import fairlead.gil
        from fairlead.errors import UnsupportedInterpreterError
    except ImportError:
        raise probe.no_fairlead()
    try:
        fairlead.gil.schedule(policy=policy)
    except UnsupportedInterpreterError as error:
        raise probe.Skipped(str(error))


def pool(kind, workers):
    """One of fairlead's pools."""
    try:
        from fairlead.errors import UnsupportedInterpreterError
        from fairlead.pools import pool
    except ImportError:
        raise probe.no_fairlead()
    try:
        return pool(kind, workers)
    except UnsupportedInterpreterError as error:
        raise probe.Skipped(str(error))


def gil_share(run):
    """(share of the time of ``run()`` in which the GIL was held, None), or (None, why that is not known).

    Of several GILs it is that of the one that was held longest.
    """
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None, "there is no GIL"
    try:
        import fairlead.gil
        from fairlead.errors import UnsupportedInterpreterError
    except ImportError:
        return None, str(probe.no_fairlead())
    seen = fairlead.gil.observe(wait_threshold=None)
    try:
        seen.start()
    except UnsupportedInterpreterError as error:
        return None, str(error)
    run()
    seen.stop()
    held = {}
    for thread in seen.threads:
        held[thread.gil] = held.get(thread.gil, 0.0) + thread.held_seconds
    return min(1.0, max(held.values()) / seen.seconds), None

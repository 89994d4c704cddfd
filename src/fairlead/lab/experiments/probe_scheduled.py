"""What probes share that can be scheduled by fairlead: then that interpreter needs it."""

import probe


def schedule(policy):
    """Have fairlead schedule the GIL from here on, unless the policy is "off"."""
    if policy == "off":
        return
    try:
        import fairlead.gil
        from fairlead.errors import UnsupportedInterpreter
    except ImportError:
        raise probe.no_fairlead()
    try:
        fairlead.gil.schedule(policy=policy)
    except UnsupportedInterpreter as error:
        raise probe.Skipped(str(error))

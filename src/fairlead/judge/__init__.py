"""The judge: from what was measured of a process to what its threads waited for, dearest first.

Every report of the GIL asks it: ``evidence`` is what it may know, each function of ``holders`` and ``crowds``
looks for one cause, ``places`` finds the user's own line, and ``verdict`` puts what was found in order.
"""

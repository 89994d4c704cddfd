"""Which releases of CPython the GIL hooks were tested on, and what is said on a later one."""

from __future__ import annotations

import os
import sys
from _warnings import warn as _warn

from fairlead.errors import UntestedInterpreterWarning

TESTED = {(3, 11): 7, (3, 12): 1, (3, 13): 0, (3, 14): 10, (3, 15): 2}
"""The latest release of each version that the tests have passed on. For a later version the extension has no
hooks (compat.h), unless its build is told otherwise."""

VARIABLE = "FAIRLEAD_UNTESTED"

_warned = False


def warn(*, frames_checked: bool) -> None:
    """Warn, once in the process, if this release is later than all that were tested, and the self-check
    leaves something open: its version is not known at all, or its frames, of which stacks are read, look
    otherwise.

    To be called when the hooks are in: they have checked by then that the GIL looks as expected.
    """
    global _warned
    version = sys.version_info
    name = f"{version.major}.{version.minor}.{version.micro}"
    known = (version.major, version.minor) in TESTED
    latest = TESTED.get((version.major, version.minor), -1)
    if _warned or version.micro <= latest or (known and frames_checked) or os.environ.get(VARIABLE) == name:
        return
    _warned = True
    tested = f"{version.major}.{version.minor}.{latest}" if known else "none of its version"
    so = "its frames do not, so stacks are not recorded" if known else "so they are in"
    _warn(
        f"CPython {name} is later than the releases that fairlead's GIL hooks were tested on (to {tested});"
        f" its GIL looks as expected, {so}. {VARIABLE}={name} in the environment accepts that",
        UntestedInterpreterWarning,
        stacklevel=2,
    )

"""How the judge says names, numbers and shares."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from fairlead.record import places
from fairlead.record.gil_summary import GilThread
from fairlead.record.recording import Frame

COMMAND_MOST = 60
Numerals = dict[str, float | int | str]


def names_of(threads: Iterable[GilThread]) -> tuple[str, ...]:
    """Each name once, in this order."""
    return tuple(dict.fromkeys(thread.name for thread in threads))


def listed(names: Sequence[str]) -> str:
    """ "a and b", or "a, b and 6 more"."""
    if len(names) <= 2:
        return " and ".join(names)
    return f"{names[0]}, {names[1]} and {len(names) - 2} more"


def verb(plural: str, names: Sequence[str]) -> str:
    """As fits so many."""
    return plural if len(names) > 1 else f"{plural}s"


def times(count: int) -> str:
    """ "once", "188 times"."""
    return "once" if count == 1 else f"{count:,} times"


def duration(seconds: float) -> str:
    """Three digits and the unit that fits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def command_of(argv: Sequence[str]) -> str:
    """A program's command line, to be typed again; COMMAND if that is not known, or long."""
    command = shlex.join(argv)
    return command if 0 < len(command) <= COMMAND_MOST else "COMMAND"


def percent(share: float, decimals: int = 0) -> str:
    """Of a part of 1."""
    return f"{share * 100:.{decimals}f} %"


def line_of(frame: Frame | None) -> Numerals:
    """The user's own line, in a finding's evidence."""
    if frame is None:
        return {}
    function, file, line = frame
    return {"function": places.short(function), "file": file, "line": line}

"""Where in the program: the user's own line among the frames of a stack.

A stack's innermost frame is often the standard library's or a package's, and says nothing to the reader who
wrote the line that called it. A frame is the user's own if its file belongs to neither.
"""

from __future__ import annotations

import linecache
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import PurePath

from fairlead.record.recording import Frame, Frames

_LIBRARY = re.compile(
    r"(/|^)(src/fairlead|lib(64)?/python3(\.\d+t?)?|site-packages|dist-packages|python3\d+\.zip)/|^<frozen "
)
DESTROYS = "<deallocation>"
"""As the innermost frame: the one beside it runs an instruction that destroys objects, and calls nothing."""
_BEGINNINGS = (
    "Thread._bootstrap",
    "Thread._bootstrap_inner",
    "Thread.run",
    "_run_module_as_main",
    "_run_code",
)
"""Functions of the standard library within which a thread's or a program's own code runs."""


def is_library(file: str) -> bool:
    """Whether the file is the standard library's or a package's, or ours."""
    return _LIBRARY.search(file) is not None


def own(frames: Frames) -> Frame | None:
    """The innermost frame of the user's own; of a program that is itself installed, of a package's."""
    for foreign in (is_library, lambda file: is_library(file) and not _packaged(file)):
        for frame in frames:
            if frame[1] and not foreign(frame[1]) and frame[0] not in _BEGINNINGS:
                return frame
    return next((frame for frame in frames if frame[1] and frame[0] not in _BEGINNINGS), None)


def _packaged(file: str) -> bool:
    return "site-packages/" in file or "dist-packages/" in file


def within(frames: Frames, *functions: str) -> bool:
    """Whether one of these functions runs, at any depth."""
    return any(frame[0] in functions for frame in frames)


def said(frames: Frames) -> str:
    """ " in handle (app.py:31)", with what that has called: " in JSONEncoder.iterencode, called from export
    (app.py:31)"; empty when nothing is known."""
    at = own(frames)
    if at is None:
        return ""
    function, file, line = at
    where = f"{short(function)} ({PurePath(file).name}:{line})"
    inner = next(frame for frame in frames if frame[1])
    said = f"in {where}" if inner == at else f"in {short(inner[0])}, called from {where}"
    return f" {' '.join(said.split())}"  # a file may have any name


def destroys(frames: Frames) -> bool:
    """Whether objects are destroyed there."""
    return bool(frames) and frames[0][0] == DESTROYS


def short(function: str) -> str:
    """Without what it is nested in: "handle" for "main.<locals>.handle"."""
    return function.rpartition("<locals>.")[2]


def tail(path: str, width: int) -> str:
    """The path, which loses its beginning where it is longer: ".../shop/app.py"."""
    return path if len(path) <= width else f"...{path[len(path) - max(width - 3, 1) :]}"


def code(frame: Frame) -> str:
    """The text of its line, "" when the file is not here."""
    return " ".join(linecache.getline(frame[1], frame[2]).split())


def dearest(weighted: Iterable[tuple[Frames, float]]) -> Frames:
    """The frames with the user's own line that has the most seconds."""
    sums: defaultdict[Frame | None, float] = defaultdict(float)
    example: dict[Frame | None, tuple[float, Frames]] = {}
    for frames, seconds in weighted:
        at = own(frames)
        sums[at] += seconds
        if at not in example or seconds > example[at][0]:
            example[at] = seconds, frames
    if not sums:
        return ()
    return example[max(sums, key=lambda at: (at is not None, sums[at]))][1]

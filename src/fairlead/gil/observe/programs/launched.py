"""In a program that is recorded from outside: begins the recording, says whether it did, and ends it."""

from __future__ import annotations

import os

from fairlead.errors import FairleadError
from fairlead.gil.observe import recorder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def begin(settings: dict[str, Any]) -> str | None:
    """Before the program's first line: begin a recording with ``launch.Settings``, or end the process.

    The first Python of the program has the file that was asked for; another one, of a shell script say, has
    one beside it with its process id, and is not ended when that cannot be: then this returns why. One that
    an exec has put in the place of a recorded one (``following.py``, which counts those) goes on with its
    file; what was recorded before stays beside it.
    """
    wanted = dict(settings)
    if execs := wanted.pop("execs", 0):
        if os.path.exists(wanted["out"]):  # noqa: PTH110
            os.replace(wanted["out"], f"{wanted['out']}.before-exec-{execs}")  # noqa: PTH105
        return _failure(wanted)
    try:
        ready = os.open(wanted["ready"], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return _failure({**wanted, "out": f"{wanted['out']}.{os.getpid()}"})
    said = _start(wanted)
    os.write(ready, said.encode())
    os.close(ready)
    if said != "ok":
        os._exit(1)
    return None


def attach(wanted: dict[str, Any]) -> str:
    """In a program that runs already: begin a recording. "ok", or why not."""
    return _start(wanted)


def detach() -> str:
    """End the recording that ``attach`` began. "ok", or why not. Also when its lease has expired, or its time
    is up."""
    try:
        if recording := recorder.current():
            recording.stop()
    except FairleadError as error:
        return str(error)
    return "ok"


def _failure(wanted: dict[str, Any]) -> str | None:
    said = _start(wanted)
    return None if said == "ok" else f"process {os.getpid()} is not recorded: {said}"


def _start(wanted: dict[str, Any]) -> str:
    try:
        recorder.Recorder(
            wanted["out"],
            wanted["threshold_s"],
            wanted["events"],
            wanted["counters_s"],
            wanted["lease"] or None,
            wanted["duration_s"],
            wanted["most_bytes"],
        ).start()
    except FairleadError as error:
        return str(error)
    return "ok"

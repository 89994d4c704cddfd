"""Schedules a program that runs already, for a while. See ``fairlead.gil.observe.attach``."""

from __future__ import annotations

import json
import tempfile
import threading
from pathlib import Path
from typing import Any

from fairlead.errors import FairleadError
from fairlead.gil.observe import attach
from fairlead.gil.schedule import control
from fairlead.gil.schedule.control import Policy


def begin(pid: int, policy: Policy, cpu_share: float, for_s: float | None) -> None:
    """Schedule another process, for so many seconds; None: until it is told otherwise.

    Raises: as ``attach.record``.
    """
    control.check(policy, cpu_share)
    settings = {"policy": policy, "cpu_share": cpu_share, "for_s": for_s}
    with tempfile.TemporaryDirectory(prefix="fairlead-") as directory:
        Path(directory).chmod(0o755)  # the process may be another user's
        attach.call(pid, __name__, "begin_here", settings, Path(directory))


def begin_here(settings: str) -> None:
    """In that process: switch the scheduler on, have it switched off in time, and say how that went."""
    wanted: dict[str, Any] = json.loads(settings)
    try:
        control.switch(wanted["policy"], wanted["cpu_share"])
    except FairleadError as error:
        said = str(error)
    else:
        said = "ok"
        if wanted["for_s"] is not None:
            timer = threading.Timer(wanted["for_s"], control.switch, ("stock", wanted["cpu_share"]))
            timer.name = "fairlead-back"
            timer.daemon = True
            timer.start()
    Path(wanted["ready"]).write_text(said, encoding="utf-8")

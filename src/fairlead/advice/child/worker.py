"""What a process that measures is: one job, one answer, and its end.

The job is a JSON file, the answer another, written whole. What is going on meanwhile stands in a file in
memory, for the parent that finds this process dead or has to kill it: a function may do anything.
"""

from __future__ import annotations

import importlib
import json
import mmap
import os
import time
from pathlib import Path
from typing import Any

from .loading import Refused

PROGRESS_BYTES = 64


class Activity:
    """What is being done: a word, and the place of the item that the function was called with."""

    def __init__(self, path: str) -> None:
        with Path(path).open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), PROGRESS_BYTES)

    def say(self, word: str) -> None:
        self._map[16:PROGRESS_BYTES] = word.encode().ljust(PROGRESS_BYTES - 16, b"\0")

    def call(self, place: int) -> None:
        self._map[0:8] = place.to_bytes(8, "little")


def main(path: str) -> None:
    job: dict[str, Any] = json.loads(Path(path).read_text(encoding="utf-8"))
    startup_s = time.monotonic() - job["begin_s"]
    progress = Activity(job["progress"])
    stage = importlib.import_module(f".{job['stage']}", __package__)
    try:
        answer = stage.run(job, progress)
    except Refused as refused:
        answer = {"refused": str(refused), "called": refused.called}
    answer["startup_s"] = startup_s
    progress.say("done")
    written = Path(job["answer"] + ".new")
    written.write_text(json.dumps(answer), encoding="utf-8")
    written.rename(job["answer"])
    os._exit(0)  # threads that the function has left must not keep it

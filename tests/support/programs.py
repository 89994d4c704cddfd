"""Small programs for tests to start, and a look at what is left of them."""

from __future__ import annotations

import os
from pathlib import Path


def script(path: Path, text: str) -> Path:
    """Write an executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def living(text: str) -> list[int]:
    """The processes, zombies left out, that have this text in their environment or command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if int(entry.name) == os.getpid():
            continue
        try:
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            seen = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if state != "Z" and text.encode() in seen:
            found.append(int(entry.name))
    return found

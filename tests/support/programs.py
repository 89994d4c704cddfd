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


RESULT = (
    '{"wall_s": 0.01, "user_s": 0.004, "sys_s": 0.001, "cpu_percent": 50, "ctx_voluntary": 3, '
    '"ctx_involuntary": 1, "max_rss_kb": 900, "sum_rss_kb": 900, "details": {}}'
)
"""What a probe prints when all is well."""


def interpreter(path: Path, probe: str = f"echo '{RESULT}'", version: str = "3.99.1") -> Path:
    """A script that says it is an interpreter of this version, and runs shell code in place of every probe.

    The experiment's file is "$1" to that code, the parameters are "$2".
    """
    answer = (
        f'fairlead: {{"executable": "{path}", "implementation": "CPython", "version": "{version}", '
        '"free_threaded": false, "gil": true, "jit": false, "build": {}}'
    )
    return script(path, f"if [ \"$1\" = -c ]; then echo noise; echo '{answer}'; exit; fi\n{probe}")


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

"""The interpreters of this machine, and one that plans and samples name and that nothing runs."""

from __future__ import annotations

import functools
from typing import Any

from fairlead.lab.catalogue.interpreters import Discovery, Interpreter, discover


@functools.cache
def here() -> Discovery:
    """Those of this machine, each of which is started once for all files of tests."""
    return discover()


def made(version: str, implementation: str = "CPython", *, free: bool = False, **changes: Any) -> Interpreter:
    """One that nothing runs."""
    known: dict[str, Any] = {
        "name": version, "path": "python", "executable": "python", "implementation": implementation,
        "version": version, "free_threaded": free, "gil": not free, "jit": False, "build": {},
    }  # fmt: skip
    return Interpreter(**{**known, **changes})


PYTHON = made("3.13.0", name="3.13", path="/opt/python", executable="/opt/python")

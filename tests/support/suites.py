"""The interpreter's own tests, where it comes with them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterable


def ships(name: str) -> bool:
    """Whether there is this module of tests."""
    try:
        return importlib.util.find_spec(name) is not None
    except ImportError:
        return False


def run_suite(program: str, left_out: Iterable[str]) -> None:
    """Runs a program that ends with 0 when the tests passed. It finds the names of those to leave out in
    ``LEFT_OUT``."""
    done = subprocess.run(
        [sys.executable, "-c", f"LEFT_OUT = {set(left_out)!r}\n{program}"],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr

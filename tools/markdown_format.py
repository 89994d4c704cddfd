"""Markdown as `make lint` wants it, for the tools that write a page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def formatted(text: str) -> str:
    """By mdformat, with the rules of .mdformat.toml."""
    command = [sys.executable, "-m", "mdformat", "-"]
    return subprocess.run(command, cwd=ROOT, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout

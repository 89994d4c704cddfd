"""A virtual environment with the fairlead under test in it, as an installed wheel would be."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

MAIN = "from fairlead.cli import main; main()"


class Environment:
    """Of its own for a test: what the interpreter of the tests imports at its start is not in it."""

    def __init__(self, place: Path) -> None:
        self.python = place / "bin" / "python"
        command = [sys.executable, "-m", "venv", "--without-pip", place]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
        (self.site,) = place.glob("lib/python3*/site-packages")
        for name in ("fairlead", "click"):
            source = Path(str(import_module(name).__file__)).parent
            shutil.copytree(source, self.site / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("_native", "_probe"):  # beside the package's build, when its install is editable
            shutil.copy(str(import_module(f"fairlead.{name}").__file__), self.site / "fairlead")

    def run(
        self, *arguments: str | Path, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEAD", "PYTHON"))}
        command, where = (
            [self.python, *arguments],
            {"cwd": cwd or self.site.parent, "env": environment | variables},
        )
        return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, **where)

    def fairlead(
        self, *arguments: str | Path, cwd: Path | None = None, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return self.run("-P", "-c", MAIN, *arguments, cwd=cwd, **variables)

"""The packages of the examples, installed from their registry into an environment in the user's cache.

One environment for each version of Python; an example's packages are installed when it runs first. fairlead
is not installed there: a program sees that of the Python that runs the example, which its variables name.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Sequence
from pathlib import Path

FAIRLEAD = {"EXAMPLE_FAIRLEAD": sysconfig.get_path("purelib")}
"""What a program of the environment needs in its variables to find fairlead."""

PATH_FILE = """\
import os, site; "EXAMPLE_FAIRLEAD" in os.environ and site.addsitedir(os.environ["EXAMPLE_FAIRLEAD"])
"""

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fairlead-examples"


class Environment:
    def __init__(self) -> None:
        self.path = CACHE / f"{sys.implementation.cache_tag}{sys.abiflags}"
        self.python = self.path / "bin" / "python"

    def _marker(self, packages: Sequence[str]) -> Path:
        return self.path / f"installed-{hashlib.sha256(' '.join(packages).encode()).hexdigest()[:12]}"

    def has(self, packages: Sequence[str]) -> bool:
        return self._marker(packages).exists()

    def install(self, packages: Sequence[str]) -> None:
        if self.has(packages):
            return
        if not self.python.exists():
            venv.create(self.path, with_pip=True)
            prefix = {"base": str(self.path), "platbase": str(self.path)}
            place = Path(sysconfig.get_path("purelib", scheme="venv", vars=prefix))
            (place / "fairlead-of-the-example.pth").write_text(PATH_FILE)
        print(f"installing {', '.join(packages)} into {self.path}", file=sys.stderr)
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet", *packages], check=False)
        if done.returncode != 0:
            raise SystemExit(f"pip could not install {', '.join(packages)}; its message is above")
        self._marker(packages).touch()

    def versions(self, packages: Sequence[str]) -> dict[str, str]:
        """The versions that are installed, by package."""
        code = "import importlib.metadata as m, sys; print(*(m.version(name) for name in sys.argv[1:]))"
        done = subprocess.run(
            [self.python, "-c", code, *packages], capture_output=True, text=True, check=True
        )
        return dict(zip(packages, done.stdout.split(), strict=True))

"""Which Python interpreters this machine has, each identified by running it once."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpreter:
    """One interpreter, as it described itself."""

    name: str
    """Short and unique on this machine: "3.13", "3.13t", "2.7", "pypy3.11"; a second one "3.13#2"."""
    path: str
    """What is started."""
    executable: str
    """The real path of sys.executable: two paths that lead to the same one are the same interpreter."""
    implementation: str
    """"CPython" or "PyPy" (platform.python_implementation())."""
    version: str
    """"3.13.0"."""
    free_threaded: bool
    gil: bool
    """Whether this process has a GIL right now (a free-threaded build can be started with one)."""
    jit: bool
    build: dict[str, Any]
    """Compiler, configure arguments that matter (optimisation, LTO, debug), shared or static."""

    def as_record(self) -> dict[str, Any]:
        """What a results file keeps of it."""
        return asdict(self)

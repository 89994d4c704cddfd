"""Further interpreters in this process, whatever this version of Python calls their module."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlead
from fairlead import _native
from fairlead._native import handle

# An editable install looks for work in a process of its own, which isolated interpreters may not start.
IMPORTABLE = f"""
import sys
sys.meta_path[:] = [one for one in sys.meta_path if type(one).__name__ != "MesonpyMetaFinder"]
sys.path[:] = [{str(Path(fairlead.__file__).parents[1])!r}, *{sys.path!r}]
import fairlead
fairlead.__path__.append({str(Path(_native.__file__).parent)!r})
"""

MODULE = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"


class Subinterpreter:
    """One with a GIL of its own from 3.12 on; it refuses extensions that do not support that."""

    def __init__(self) -> None:
        self.closed = False
        self._module: Any = importlib.import_module(MODULE)
        self._id = self._module.create("isolated") if sys.version_info >= (3, 13) else self._module.create()
        self.run(IMPORTABLE)

    @property
    def gil(self) -> str:
        """ "own" or "shared"."""
        if sys.version_info >= (3, 13):
            return str(self._module.get_config(self._id).gil)
        return "own" if sys.version_info >= (3, 12) else "shared"

    def run(self, program: str) -> None:
        """Run a program in it; fails with what was raised there."""
        try:
            failure = self._module.run_string(self._id, program)
        except RuntimeError as error:  # until 3.12 a failure is raised, from 3.13 on it is returned
            failure = error
        assert failure is None, getattr(failure, "errdisplay", failure)

    def give(self, **primitives: Any) -> None:
        """Objects of its own for the same primitives, under these names."""
        for name, primitive in primitives.items():
            self.run(
                "import fairlead.sync\nfrom fairlead._native import attach\n"
                f"{name} = attach({handle(primitive)})\n"
            )

    def close(self) -> None:
        self._module.destroy(self._id)
        self.closed = True


@pytest.fixture
def importable() -> str:
    """A program after which another interpreter can import fairlead."""
    return IMPORTABLE


@pytest.fixture
def new_interpreter() -> Iterator[Callable[[], Subinterpreter]]:
    """Makes interpreters; those that are still there at the end of the test are closed then."""
    made: list[Subinterpreter] = []

    def new() -> Subinterpreter:
        made.append(Subinterpreter())
        return made[-1]

    yield new
    for interpreter in made:
        if not interpreter.closed:
            interpreter.close()

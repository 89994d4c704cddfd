"""The interpreters of this machine, and one that plans and samples name and that nothing runs."""

from __future__ import annotations

import functools

from fairlead.lab.catalogue.interpreters import Discovery, Interpreter, discover


@functools.cache
def here() -> Discovery:
    """Those of this machine, each of which is started once for all files of tests."""
    return discover()


PYTHON = Interpreter(
    name="3.13",
    path="/opt/python",
    executable="/opt/python",
    implementation="CPython",
    version="3.13.0",
    free_threaded=False,
    gil=True,
    jit=False,
    build={},
)

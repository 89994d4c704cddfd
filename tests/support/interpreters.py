"""An interpreter that plans and samples name, and that nothing runs."""

from __future__ import annotations

from fairlead.lab.catalogue.interpreters import Interpreter

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

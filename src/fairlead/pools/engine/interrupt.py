"""How a thread is interrupted that runs Python."""

from __future__ import annotations

import ctypes
import sys

if sys.implementation.name == "cpython":
    _send = ctypes.pythonapi.PyThreadState_SetAsyncExc
    _send.argtypes = (ctypes.c_ulong, ctypes.py_object)
    _send.restype = ctypes.c_int


def send_exception(ident: int, kind: type[BaseException] | None) -> None:
    """Has a thread raise it at its next step in Python; None: takes back what has not arrived yet.

    PyPy has no such call: there a thread goes on, and finds by ``check_cancelled()`` that it is to end.
    """
    if sys.implementation.name == "cpython":
        _send(ident, ctypes.py_object() if kind is None else kind)

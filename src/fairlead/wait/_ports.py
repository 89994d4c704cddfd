"""The ports of this interpreter, which close with it."""

from __future__ import annotations

import atexit
from weakref import WeakSet

from fairlead._native import Port, in_main_interpreter

_ports: WeakSet[Port] = WeakSet()


def enlisted(port: Port) -> Port:
    """The port, which is now known to this interpreter; for every adapter that makes one."""
    _ports.add(port)
    return port


def _close() -> None:
    """No task of this interpreter runs again: none may stay in a queue that other interpreters share."""
    for port in list(_ports):
        port.close()


if not in_main_interpreter():  # whose end is that of the process, and which may still have daemon threads
    atexit.register(_close)

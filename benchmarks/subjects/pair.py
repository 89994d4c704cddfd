"""What one release and retake of the GIL costs, when no other thread wants it.

A C function that does next to nothing is called through ctypes, once by way of CDLL, which lets go of the
GIL for the call, and once by way of PyDLL, which does not. The difference is the pair. Another thread has
waited for the GIL before, unless the hooks are to rest. Settings: hooks (stock, counting, recording,
scheduled, resting), calls, runs. Prints nanoseconds of CPU time; of many short runs the quickest one counts,
which nothing has interrupted.
"""

from __future__ import annotations

import ctypes
import os
import tempfile
import threading
import time
from contextlib import ExitStack
from itertools import repeat
from pathlib import Path

import subject


def nanoseconds(function: ctypes._NamedFuncPointer, calls: int) -> float:
    begin = time.thread_time_ns()
    for _ in repeat(None, calls):
        function(1)
    return (time.thread_time_ns() - begin) / calls


def main() -> None:
    calls, runs, hooks = (subject.SETTINGS[name] for name in ("calls", "runs", "hooks"))
    with ExitStack() as stack:
        if hooks != "stock":
            import fairlead.gil

            if hooks == "counting":
                stack.enter_context(fairlead.gil.observe())
            elif hooks == "recording":
                directory = stack.enter_context(tempfile.TemporaryDirectory())
                stack.enter_context(fairlead.gil.record(Path(directory) / "recording"))
            else:
                fairlead.gil.schedule()
        if hooks != "resting":
            other = threading.Thread(target=time.sleep, args=(0,))
            other.start()
            sum(range(1_000_000))  # while it wants to begin
            other.join()
        lets_go, keeps = ctypes.CDLL(None).abs, ctypes.PyDLL(None).abs
        times = [(nanoseconds(lets_go, calls), nanoseconds(keeps, calls)) for _ in range(runs)]
        apart = [min(column) for column in zip(*times, strict=True)]
    subject.say(**{"pair ns": apart[0] - apart[1]})


subject.say()
main()
os._exit(0)

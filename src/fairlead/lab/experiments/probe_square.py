"""What the squares share: threads that stop, turns, a GIL on demand, and processes of multiprocessing."""

from __future__ import absolute_import, division, print_function

import multiprocessing
import os
import signal
import sys

import probe


def work(name):
    """As ``probe.work``; and None for "stop", when a thread or process that is through ends at once."""
    return None if name == "stop" else probe.work(name)


def with_turns(answer, worked, first, turns):
    """The answer with the turns that threads really took, over those of the picture of the schedule.

    ``worked``: how often each yielded. Threads that only compute take none of their own accord.
    """
    if sum(worked) < 1000 * turns:
        answer["details"]["metrics"]["turns"] = (sum(worked) + first) / float(turns)
    return answer


def set_gil(gil):
    """Start this process again with the GIL, which a free-threaded build has on demand only."""
    if gil == "as built":
        return
    if not hasattr(sys, "_is_gil_enabled") or "free-threading" not in sys.version:
        raise probe.Skipped("this build always has a GIL: it is the variant without a name")
    if not sys._is_gil_enabled():
        os.execv(sys.executable, [sys.executable, "-X", "gil=1"] + sys.argv)


def context():
    """multiprocessing that forks, whatever the default way of starting processes is."""
    get_context = getattr(multiprocessing, "get_context", None)
    return get_context("fork") if get_context else multiprocessing


class Processes(probe.Family):
    """Children of multiprocessing.Process: what starts, runs and ends them is that, and not a bare fork."""

    def start(self, body, index):
        process = context().Process(target=self._run, args=(body, index))
        process.daemon = True
        process.start()
        self._alive.add(process.pid)

    def _run(self, body, index):
        signal.alarm(self._seconds)
        try:
            body(index)
        except Exception:
            os.write(self._mouth, probe.describe().encode("utf-8", "replace")[:1000])
            sys.exit(1)


def array(n):
    """n flags that processes share; ``all`` and ``any`` of them are Python code, as in the document."""
    try:
        return context().Array("b", n, lock=False)
    except (ImportError, OSError) as error:
        raise probe.Skipped("multiprocessing.Array is not to be had here: %s" % error)

"""What fairlead's own experiments share: what is measured, by name; loops over a statement; clocks.

A way's name is the expression that makes it, as ``threading.Lock`` or ``Lock(fair=True)``: without a module
it is one of ``fairlead.sync``.
"""

import asyncio
import importlib
import re
import resource
import subprocess
import threading
import time
from dataclasses import replace

import probe
import processes

FLOOR = 0.3
WAYS = {
    **processes.ways(),
    f"floor {FLOOR}": processes.scheduled("--cpu-share", str(FLOOR)),
    "priority io": replace(processes.scheduled(), settings={"priority": "io"}),
    "2 workers": processes.Way(settings={"workers": 2}),  # as `gunicorn -w 2` starts it
}
"""How a measured program is started; what is called otherwise has stock CPython."""
LACKS = "import importlib.util as u, sys; print(*(one for one in sys.argv[1:] if u.find_spec(one) is None))"


def main(experiment, cases):
    """Run the case that is asked for: a function that returns the time, or all metrics, of the way, if there
    are several, and n."""

    def measure(params):
        try:
            importlib.import_module("fairlead.sync")
        except ImportError:
            raise probe.no_fairlead() from None
        begin, before = probe.clock(), probe.used()
        took = cases[params["case"]](*(params[name] for name in ("by", "n") if name in params))
        wall_s, used = probe.clock() - begin, probe.used() - before
        peaks = [probe.peak_kb(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss]
        metrics = took if isinstance(took, dict) else {"took_s": took}
        return probe.result(wall_s, used, [*filter(None, peaks)], {}, metrics)

    probe.main(experiment, measure)


def gil():
    """``fairlead.gil``, where it knows the GIL of this interpreter."""
    try:
        why = importlib.import_module("fairlead.gil.observe.access").why_not()
    except ImportError:
        raise probe.no_fairlead() from None
    if why is not None:
        raise probe.Skipped(why)
    return importlib.import_module("fairlead.gil")


def peer(name):
    """A module that need not be there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise probe.Skipped(f"needs {name} in this interpreter: pip install {name}") from None


def made(by):
    """What the expression makes."""
    name = re.match(r"\w+", by)[0]
    there = peer(name) if by.startswith(f"{name}.") else getattr(peer("fairlead.sync"), name)
    return eval(by if "(" in by else f"{by}()", {name: there})


def way(by, *packages):
    """How a program is started that needs these packages, on an interpreter that can run it."""
    from fairlead.lab.catalogue import interpreters

    found = WAYS.get(by, processes.STOCK)
    if found.command:
        gil()
    if by == "free-threaded":
        free = interpreters.free_threaded()
        if free is None:
            raise probe.Skipped("needs an interpreter without a GIL, as python3.14t on the PATH")
        found = processes.Way(python=free.path)
    command = [found.python, "-c", LACKS, *packages]
    if packages and (missing := subprocess.check_output(command, text=True).strip()):
        raise probe.Skipped(f"needs {missing} in {found.python}: {found.python} -m pip install {missing}")
    return found


def ends(by, in_tasks=False, line=None):
    """put and get of a queue or channel, a new one unless it is given, for threads or for tasks."""
    line = made(by) if line is None else line
    if isinstance(line, tuple):
        sender, receiver = line
        return (sender.send_async, receiver.receive_async) if in_tasks else (sender.send, receiver.receive)
    library, dot, _ = by.partition(".")
    if library == "aiologic":
        return (line.async_put, line.async_get) if in_tasks else (line.green_put, line.green_get)
    if library in ("janus", "culsans"):
        line = line.async_q if in_tasks else line.sync_q
    return (line.put_async, line.get_async) if in_tasks and not dot else (line.put, line.get)


def pair(statement, n, make):
    """Seconds of CPU time that a statement takes of this thread, the loop over it included.

    It is compiled with the loop, so that no call is measured but those of the statement; one that awaits runs
    in a task.

    ``make`` gives the names that stand in it.
    """
    awaits = statement.startswith(("async", "await"))
    source = (
        f"{'async ' * awaits}def run(n):\n"
        "    begin = clock()\n"
        "    for _ in range(n):\n"
        f"        {statement}\n"
        "    return (clock() - begin) / n\n"
    )
    scope = {"clock": time.thread_time}
    exec(source, scope)
    run, first = scope["run"], max(1, n // 10)

    async def in_a_task():
        scope.update(make())
        await run(first)
        return await run(n)

    if awaits:
        return asyncio.run(in_a_task())
    scope.update(make())
    run(first)
    return run(n)


class Clocks:
    """Time of the clock, and of all threads of the process."""

    def __init__(self):
        self._begin = time.perf_counter(), time.process_time()

    def each(self, n=1):
        """The metrics of n operations."""
        begin, used = self._begin
        return {"took_s": (time.process_time() - used) / n, "clock_s": (time.perf_counter() - begin) / n}


def in_threads(count, body):
    """Run it in so many threads at once; when the last has returned, the times since they were let go."""
    gate = threading.Event()
    threads = [threading.Thread(target=lambda: gate.wait() and body()) for _ in range(count)]
    for thread in threads:
        thread.start()
    clocks = Clocks()
    gate.set()
    for thread in threads:
        thread.join()
    return clocks

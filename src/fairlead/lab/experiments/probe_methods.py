"""Ways to have one function called for many items: what the party's workloads are run by.

A method is a function of a ``Job``. It gives every result to ``job.take`` and calls ``job.see`` while its
workers are still there. What it imports it imports itself, so that no method carries another's modules.
"""

from __future__ import absolute_import, division, print_function

import gc
import os
import sys

import probe
import probe_fairlead


class Job(object):
    """``function`` is to be called with each of the items; ``answer`` is the right result of any."""

    def __init__(self, function, items, answer, workers):
        self.function = function
        self.items = items
        self.workers = workers
        self.peaks_kb = {}
        self._answer = _digest(answer)
        self._right = []

    def take(self, result):
        """Look at a result and let go of it; from any thread."""
        self._right.append(_digest(result) == self._answer)

    def see(self):
        """Note the peak memory of all processes below this one; asked for before they end."""
        self.peaks_kb.update(peaks_below())

    @property
    def taken(self):
        return len(self._right)

    @property
    def wrong(self):
        return self._right.count(False)


def _digest(result):
    """Of a long list its length and its ends: to compare all of it would take longer than to make it."""
    return (len(result), result[0], result[-1]) if isinstance(result, list) else result


def peaks_below():
    """Peak memory, by number, of the processes below this one that are alive."""
    peaks = [(pid, probe.status_kb("VmHWM", pid)) for pid in _below(os.getpid())]
    return dict((pid, peak) for pid, peak in peaks if peak is not None)


def _below(pid):
    found = []
    try:
        for task in os.listdir("/proc/%s/task" % pid):
            with open("/proc/%s/task/%s/children" % (pid, task)) as children:
                for child in children.read().split():
                    found += [int(child)] + _below(child)
    except (IOError, OSError):
        pass
    return found


# ---- threads


def sequential(job):
    for item in job.items:
        job.take(job.function(item))


def threads(job):
    from queue import Empty, SimpleQueue

    items = SimpleQueue()
    for item in job.items:
        items.put(item)

    def body(index):
        while True:
            try:
                item = items.get_nowait()
            except Empty:
                return
            job.take(job.function(item))

    for thread in probe.start(job.workers, body):
        thread.join()


def thread_pool(job):
    from multiprocessing.pool import ThreadPool

    with ThreadPool(job.workers) as pool:
        for result in pool.imap(job.function, job.items):
            job.take(result)
        pool.close()
        pool.join()


def futures(job):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(job.workers) as pool:
        for result in pool.map(job.function, job.items):
            job.take(result)


# ---- processes


def processes(start):
    def run(job):
        import multiprocessing

        if start not in multiprocessing.get_all_start_methods():
            raise probe.Skipped("this system cannot start processes by %s" % start)
        with multiprocessing.get_context(start).Pool(job.workers) as pool:
            for result in pool.imap(job.function, job.items):
                job.take(result)
            job.see()
            pool.close()
            pool.join()
        end_forkserver()

    return run


def end_forkserver():
    """Have the server, if there is one, end and wait for it: with it comes what its children have used."""
    forkserver = sys.modules.get("multiprocessing.forkserver")
    if forkserver is not None and hasattr(forkserver._forkserver, "_stop"):
        forkserver._forkserver._stop()


# ---- interpreters


def _interpreters():
    if sys.implementation.name != "cpython" or sys.version_info < (3, 13):
        raise probe.Skipped("interpreters with a GIL of their own and queues between them need CPython 3.13")
    import probe_interpreters

    return probe_interpreters


def interpreters_channel(job):
    there = _interpreters()
    items, results = there.Board(), there.Board()

    def body(index):
        number = there.make(job.function)
        there.run(number, "probe_interpreters.serve(function, %r, %r)" % (items.numbers, results.numbers))
        there.destroy(number)

    workers = probe.start(job.workers, body)
    # no more than two each are under way: a worker that is done finds another, and memory is bounded
    ahead = 2 * job.workers
    for item in job.items[:ahead]:
        items.put(item)
    for index in range(len(job.items)):
        job.take(results.get()[1])
        if index + ahead < len(job.items):
            items.put(job.items[index + ahead])
    items.close()
    for worker in workers:
        worker.join()
    items.destroy()
    results.close()
    results.destroy()


def interpreters_call(job):
    there = _interpreters()
    from queue import Empty, SimpleQueue

    left = SimpleQueue()
    for item in job.items:
        left.put(item)

    def body(index):
        number = there.make(job.function)
        call, close = _caller(there, number, job.function)
        while True:
            try:
                item = left.get_nowait()
            except Empty:
                break
            job.take(call(item))
        close()
        there.destroy(number)

    for worker in probe.start(job.workers, body):
        worker.join()


def _caller(there, number, function):
    """What calls the function in an interpreter, and what ends that."""
    if sys.version_info >= (3, 14):
        from concurrent.interpreters import Interpreter

        interpreter = Interpreter(number)
        return (lambda item: interpreter.call(function, item)), (lambda: None)
    inbox, outbox = there.Board(), there.Board()
    code = "probe_interpreters.answer(function, %r, %r)" % (inbox.numbers, outbox.numbers)

    def call(item):
        inbox.put(item)
        there.run(number, code)
        return outbox.get()[1]

    def close():
        for board in (inbox, outbox):
            board.close()
            board.destroy()

    return call, close


# ---- fairlead's pools


def fairlead(kind):
    def run(job):
        with probe_fairlead.pool(kind, job.workers) as workers:
            for result in workers.stream(job.function, job.items):
                job.take(result)
            job.see()
        end_forkserver()

    return run


METHODS = {
    "sequential": sequential,
    "threads": threads,
    "thread-pool": thread_pool,
    "futures": futures,
    "processes-fork": processes("fork"),
    "processes-spawn": processes("spawn"),
    "processes-forkserver": processes("forkserver"),
    "interpreters-channel": interpreters_channel,
    "interpreters-call": interpreters_call,
    "fairlead-threads": fairlead("threads"),
    "fairlead-processes": fairlead("processes"),
    "fairlead-interpreters": fairlead("interpreters"),
    "fairlead-auto": fairlead("auto"),
}


# ---- one measurement


def measure(method, function, items, answer, workers):
    """Run all of it, then a part of it again under observation of the GIL; the line to print.

    The first says time, processor, memory and answers, with nothing else in the process; the second, of
    which nothing else is kept, the share of time in which the GIL was held.
    """
    run = METHODS[method]
    job = Job(function, items, answer, workers)
    before, begin = probe.used(), probe.clock()
    run(job)
    end, after = probe.clock(), probe.used()
    for _ in range(3):
        gc.collect()  # what pools leave ends by itself only where references are counted
    if job.taken != len(items):
        raise probe.Failed("%d results of %d tasks" % (job.taken, len(items)))
    usage = after - before
    peaks_kb = [probe.peak_kb()] + sorted(job.peaks_kb.values())
    told = probe.result(end - begin, usage, peaks_kb, {"done": job.taken})
    part = Job(function, items[: max(1, len(items) // 4)], answer, workers)
    share, reason = None, "the tasks run in other processes"
    if not job.peaks_kb:
        share, reason = probe_fairlead.gil_share(lambda: run(part))
    told["details"]["metrics"] = {
        "cpu_share": told["cpu_percent"] / 100 / probe.cores(),
        "peak_kb": told["sum_rss_kb"],
        "wrong_answers": job.wrong,
    }
    told["details"]["not_measured"] = {}
    if reason is None:
        told["details"]["metrics"]["gil_share"] = share
    else:
        told["details"]["not_measured"]["gil_share"] = reason
    return told

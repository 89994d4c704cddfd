"""What the experiments on models share: the work, a local server that answers late, and ways to run tasks."""

from __future__ import absolute_import, division, print_function

import asyncio
import http.client  # noqa: F401 - so that fetch() has it, and forked processes have
import multiprocessing
import os
import socket
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import probe
import probe_fairlead
import probe_methods
from probe_tasks import compute, fetch  # noqa: F401 - by their names here for the cases

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nanswer"


async def fetch_async(work):
    """The same by a client that awaits."""
    reader, writer = await asyncio.open_connection(work[0], work[1])
    writer.write(b"GET / HTTP/1.1\r\nHost: local\r\n\r\n")
    body = (await reader.read()).rpartition(b"\r\n\r\n")[2]
    writer.close()
    if body != b"answer":
        raise probe.Failed("the local server answered %r" % body)


# ---- ways to run n times the same task


def sequential(task, work, n, workers):
    for _ in range(n):
        task(work)


def threads(task, work, n, workers):
    for thread in probe.start(n, lambda index: task(work)):
        thread.join()


def processes(task, work, n, workers):
    _fork(lambda index: task(work), n)


def _fork(run, n):
    """``run(index)`` in n processes."""
    fork = multiprocessing.get_context("fork")
    peaks = probe.Numbers(n)

    def body(index):
        run(index)
        # a short task may have ended before the first look
        peaks.put(index, float(probe.peak_kb()))

    started = [fork.Process(target=body, args=(index,)) for index in range(n)]
    for process in started:
        process.start()
    for index, process in enumerate(started):
        process.join()
        if process.exitcode != 0:
            raise probe.Failed("a process ended with %s" % process.exitcode)
        _peaks[process.pid] = int(peaks.get(index)[0])


def pooled(make):
    """All in a pool, an Executor of the standard library or of fairlead."""

    def run(task, work, n, workers):
        with make(workers) as pool:
            list(pool.map(task, [work] * n))
            see_children()
        probe_methods.end_forkserver()

    return run


def pooled_async(task, work, n, workers):
    """All in fairlead's AsyncPool, on an event loop in a thread of its own."""
    with probe_fairlead.pool("async", workers) as pool:
        list(pool.map(fetch_async, [work] * n))


def gathered(*coroutines):
    """All at once on one event loop; of two coroutines by turns."""

    def run(task, work, n, workers):
        async def main():
            await asyncio.gather(*[coroutines[index % len(coroutines)](work) for index in range(n)])

        asyncio.run(main())

    return run


def loops(*coroutines):
    """As many processes as there are cores, each with an event loop and its share of the tasks."""

    def run(task, work, n, workers):
        count = min(n, workers or probe.cores())
        share = [n // count + (index < n % count) for index in range(count)]

        _fork(lambda index: gathered(*coroutines)(task, work, share[index], None), count)

    return run


def one_by_one(coroutine):
    def run(task, work, n, workers):
        async def main():
            for _ in range(n):
                await coroutine(work)

        asyncio.run(main())

    return run


def in_executor(coroutine, make, by_turns=False):
    """All at once on one event loop, each with a task that a pool does for it; ``coroutine`` comes first, or,
    by turns, takes the place of every other task."""

    def run(task, work, n, workers):
        async def one(pool, index):
            if not by_turns or index % 2:
                await coroutine(work)
            if not by_turns or index % 2 == 0:
                await asyncio.get_running_loop().run_in_executor(pool, task, work)

        async def main(pool):
            await asyncio.gather(*[one(pool, index) for index in range(n)])

        with make(workers) as pool:
            asyncio.run(main(pool))
            see_children()
        probe_methods.end_forkserver()

    return run


# ---- pools


def forked(workers):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))


def interpreters(workers):
    try:
        from concurrent.futures import InterpreterPoolExecutor
    except ImportError:
        raise probe.Skipped("needs CPython 3.14: concurrent.futures.InterpreterPoolExecutor")
    # an interpreter does not know the directory of the program
    path = os.path.dirname(os.path.abspath(__file__))
    return InterpreterPoolExecutor(
        workers, initializer=exec, initargs=("import sys; sys.path.insert(0, %r)" % path,)
    )


def fairlead(kind):
    return lambda workers: probe_fairlead.pool(kind, workers)


# ---- one measurement

_peaks = {}
_before = set()
"""Processes that belong to no model: the local server."""


def see_children():
    """Note the peak memory of the processes that run tasks; asked for before they end."""
    seen = probe_methods.peaks_below()
    _peaks.update((pid, seen[pid]) for pid in seen if pid not in _before)


def measure(run, task, params):
    """Run ``run(task, work, n, workers)``; beside the local server, if there is a ``delay_ms`` for it."""
    workers = {"default": None, "cores": probe.cores(), "4 x cores + 1": 4 * probe.cores() + 1}
    workers = workers.get(params["workers"], params["workers"])
    with probe.Family(params["timeout_s"]) as family:
        address = serve(family, params["delay_ms"] / 1000.0) if "delay_ms" in params else ("", 0)
        work = (*address, params.get("repeat", 1))
        _before.update(probe_methods.peaks_below())
        before, begin = probe.used(), probe.clock()
        run(task, work, params["n"], workers)
        end, after = probe.clock(), probe.used()
    usage = after - before
    answer = probe.result(
        end - begin, usage, [probe.peak_kb()] + sorted(_peaks.values()), {"done": params["n"]}
    )
    answer["details"]["metrics"] = {"user_s": usage.values[0], "system_s": usage.values[1]}
    return answer


def serve(family, delay_s):
    """A process of its own that answers every request after a time; its address."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(1024)

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(delay_s)
        writer.write(ANSWER)
        await writer.drain()
        writer.close()

    async def main():
        server = await asyncio.start_server(answer, sock=listener)
        async with server:
            await server.serve_forever()

    address = listener.getsockname()
    family.fork(lambda index: asyncio.run(main()), 0)
    listener.close()
    return address

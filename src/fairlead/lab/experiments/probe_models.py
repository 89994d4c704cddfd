"""What the experiments on models share: the work, a local server that answers late, and ways to run tasks."""

from __future__ import absolute_import, division, print_function

import asyncio
import http.client
import multiprocessing
import socket
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import probe

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nanswer"
FIB = 24
FIB_ANSWER = 46368


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def compute(address=None):
    """The CPU-bound task."""
    if fib(FIB) != FIB_ANSWER:
        raise probe.Failed("a Fibonacci number came out wrong")


def fetch(address):
    """The task that waits: a document of the local server, by a client that blocks."""
    connection = http.client.HTTPConnection(address[0], address[1])
    connection.request("GET", "/")
    body = connection.getresponse().read()
    connection.close()
    if body != b"answer":
        raise probe.Failed("the local server answered %r" % body)


async def fetch_async(address):
    """The same by a client that awaits."""
    reader, writer = await asyncio.open_connection(address[0], address[1])
    writer.write(b"GET / HTTP/1.1\r\nHost: local\r\n\r\n")
    body = (await reader.read()).rpartition(b"\r\n\r\n")[2]
    writer.close()
    if body != b"answer":
        raise probe.Failed("the local server answered %r" % body)


# ---- ways to run n times the same task


def sequential(task, address, n, workers):
    for _ in range(n):
        task(address)


def threads(task, address, n, workers):
    for thread in probe.start(n, lambda index: task(address)):
        thread.join()


def processes(task, address, n, workers):
    fork = multiprocessing.get_context("fork")
    peaks = probe.Numbers(n)

    def body(index):
        task(address)
        # a short task may have ended before anybody looks
        peaks.put(index, float(probe.peak_kb()))

    started = [fork.Process(target=body, args=(index,)) for index in range(n)]
    for process in started:
        process.start()
    for index, process in enumerate(started):
        process.join()
        if process.exitcode != 0:
            raise probe.Failed("a process ended with %s" % process.exitcode)
        _peaks[process.pid] = int(peaks.get(index)[0])


def thread_pool(task, address, n, workers):
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(task, [address] * n))


def process_pool(task, address, n, workers):
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(task, [address] * n))
        see_children()


def gathered(coroutine):
    """All coroutines at once on one event loop."""

    def run(task, address, n, workers):
        async def main():
            await asyncio.gather(*[coroutine(address) for _ in range(n)])

        asyncio.run(main())

    return run


def one_by_one(coroutine):
    def run(task, address, n, workers):
        async def main():
            for _ in range(n):
                await coroutine(address)

        asyncio.run(main())

    return run


def in_executor(coroutine, make):
    """All at once on one event loop, each with a task that a pool does for it; ``coroutine`` comes first."""

    def run(task, address, n, workers):
        async def one(pool):
            if coroutine is not None:
                await coroutine(address)
            await asyncio.get_running_loop().run_in_executor(pool, task, address)

        async def main(pool):
            await asyncio.gather(*[one(pool) for _ in range(n)])

        with make(workers) as pool:
            asyncio.run(main(pool))
            see_children()

    return run


def forked(workers):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("fork"))


# ---- one measurement

_peaks = {}


def see_children():
    """Note the peak memory of the children that are alive; asked for before they end."""
    for child in multiprocessing.active_children():
        peak = probe.status_kb("VmHWM", child.pid)
        if peak is not None:
            _peaks[child.pid] = peak


def measure(run, task, params):
    """Run ``run(task, address, n, workers)``; beside the local server, if there is a ``delay_ms`` for it."""
    workers = {"default": None, "cores": probe.cores(), "4 x cores + 1": 4 * probe.cores() + 1}
    workers = workers[params["workers"]]
    with probe.Family(params["timeout_s"]) as family:
        address = serve(family, params["delay_ms"] / 1000.0) if "delay_ms" in params else None
        before, begin = probe.used(), probe.clock()
        run(task, address, params["n"], workers)
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

"""The scheduler under libraries that switch stacks, run loops of their own, or compute without the GIL."""

from __future__ import annotations

import importlib.util

import pytest
from scheduled import run

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def needs(library: str) -> pytest.MarkDecorator:
    found = importlib.util.find_spec(library) is not None
    return pytest.mark.skipif(not found, reason=f"{library} is not installed (pip install --group guests)")


@needs("greenlet")
def test_greenlets_switch_in_several_threads_beside_cpu_threads() -> None:
    program = """
import greenlet
gil.schedule()
spinners(2, daemon=True)
counts = []
def work():
    def other():
        while True:
            greenlet.getcurrent().parent.switch(1)
    made = greenlet.greenlet(other)
    count = 0
    for _ in range(2000):
        count += made.switch()
        if count % 100 == 0:
            os.stat("/")
    counts.append(count)
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(counts))
"""
    assert run(program) == [2000] * 4


@needs("gevent")
def test_a_gevent_server_answers_beside_its_own_thread_pool() -> None:
    program = """
from gevent import monkey
monkey.patch_all()
import gevent, gevent.threadpool
from gevent import socket
from gevent.server import StreamServer
gil.schedule()
def handle(connection, address):
    while data := connection.recv(100):
        connection.sendall(data)
server = StreamServer(("127.0.0.1", 0), handle)
server.start()
pool = gevent.threadpool.ThreadPool(2)
jobs = [pool.spawn(lambda: [sum(range(1000)) for _ in range(3000)]) for _ in range(2)]
def client():
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        for _ in range(100):
            connection.sendall(b"x")
            assert connection.recv(1) == b"x"
    return 100
clients = [gevent.spawn(client) for _ in range(5)]
counts = [one.get() for one in clients]
for job in jobs:
    job.get()
server.stop()
print(json.dumps(sum(counts)))
"""
    assert run(program) == 500


@needs("uvloop")
def test_a_uvloop_server_answers_beside_cpu_threads() -> None:
    program = """
import asyncio, uvloop
gil.schedule()
threads = spinners(2)
async def handle(reader, writer):
    while data := await reader.read(100):
        writer.write(data)
    writer.close()
async def client(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for _ in range(100):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
    writer.close()
    return 100
async def main():
    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    counts = await asyncio.gather(*[client(port) for _ in range(5)])
    counts.append(await asyncio.to_thread(lambda: 1))
    server.close()
    return sum(counts)
total = uvloop.new_event_loop().run_until_complete(main())
stop.set()
print(json.dumps(total))
"""
    assert run(program) == 501


@needs("numpy")
def test_numpy_computes_in_several_threads_beside_cpu_threads() -> None:
    program = """
import numpy
gil.schedule()
spinners(2, daemon=True)
sums = []
def work(seed):
    matrix = numpy.full((60, 60), float(seed))
    for _ in range(50):
        result = matrix @ matrix
    sums.append(float(result[0, 0]))
threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(sorted(sums)))
"""
    assert run(program) == [60.0, 240.0, 540.0, 960.0]

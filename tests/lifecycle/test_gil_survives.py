"""What real processes do and what is done to them, while their GIL is scheduled, observed and recorded, or
watched by the endpoint: nothing hangs, crashes or stays behind, and what is said of the GIL stays true."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from scheduled import HEAD, INTERPRETERS, run

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))

SURVIVORS = {
    "scheduled": """
SCHEDULED = True
gil.schedule()

def survived():
    now = gil.scheduler()
    return (now.policy, now.watchdog_trips) == ("interactive", 0)

def is_new():
    return survived()

def is_calm():
    return survived() and gil.scheduler().waiting == 0
""",
    "observed": """
SCHEDULED = False
recorder, seen = gil.record(sys.argv[1]).start(), gil.observe().start()

def survived():
    threads, most = seen.threads, seen.seconds + 1e-6
    held = {}
    for thread in threads:
        held[thread.gil] = held.get(thread.gil, 0) + thread.held_seconds
    each = all(thread.held_seconds + thread.waited_seconds <= most for thread in threads)
    return each and max(held.values()) <= most

def is_new():
    with gil.observe():
        pass
    mine = [thread.native_id for thread in seen.threads if thread.name == "MainThread"]
    return survived() and {t.name for t in seen.threads} == {"MainThread", "child"} and mine == [os.getpid()]

def is_calm():
    return survived() and "child" not in {thread.name for thread in seen.threads}
""",
    "served": """
from urllib.request import urlopen
SCHEDULED = False
server = gil.serve("127.0.0.1:0", stalled_after=60)

def survived(port=None):
    with urlopen(f"http://127.0.0.1:{port or server.port}/healthz", timeout=30) as answer:
        return json.load(answer)["status"] in ("ok", "computing")

def is_new():  # it does not serve, and may
    with gil.serve("127.0.0.1:0") as own:
        return own.port != server.port and survived(own.port)

def is_calm():
    return survived()

alone = os.listdir("/proc/self/fd")
survived()  # it imports: a thread that is in an import at a fork leaves the child the module locked
while os.listdir("/proc/self/fd") != alone:  # the endpoint closes a connection a little after its client
    pass
""",
}
"""What is said before the event and what must be true after it, in a forked child, and when all is over."""


class Event(NamedTuple):
    program: str
    head: str = ""
    needs: str = ""
    """A library."""
    first: tuple[int, int] = (3, 11)
    """The first version that can do it."""
    times: int = 1


EVENTS = {
    "children are forked beside computing threads": Event("""
threads = spinners(2)
def look():
    while not stop.is_set():
        survived()
threads.append(threading.Thread(target=look))
threads[-1].start()
for _ in range(20):
    pid = os.fork()
    if not pid:
        start_and_join([threading.Thread(target=sum, args=(range(20_000),), name="child") for _ in range(2)])
        os._exit(7 if is_new() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
end(threads)
answer = is_calm()
"""),
    "threads come and go": Event("""
for _ in range(300):
    start_and_join([threading.Thread(target=os.getpid)])
start_and_join([threading.Thread(target=os.stat, args=("/",)) for _ in range(100)])
answer = is_calm()
"""),
    "signals come, and Ctrl-C, beside computing threads": Event("""
import signal
came = []
signal.signal(signal.SIGALRM, lambda *_: came.append(threading.get_ident()))
threads = spinners(2)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
try:
    while True:
        stop.wait(0.001)
        if len(came) >= 30:
            signal.setitimer(signal.ITIMER_REAL, 0)
            os.kill(os.getpid(), signal.SIGINT)
except KeyboardInterrupt:
    stop.set()
for thread in threads:
    thread.join()
answer = set(came) == {threading.main_thread().ident}
"""),
    "it is stopped and continued": Event("""
import signal
pid, state = os.getpid(), lambda pid: open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
helper = os.fork()
if not helper:
    for _ in range(20):
        os.kill(pid, signal.SIGSTOP)
        while state(pid) != "T":
            pass
        os.kill(pid, signal.SIGCONT)
        while state(pid) == "T":
            pass
    os._exit(0)
threads = spinners(3)
ends = os.pipe()
while os.waitpid(helper, os.WNOHANG) == (0, 0):
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
end(threads)
answer = True
"""),
    "it ends beside daemon threads of every kind": Event(
        """
ends, lock = os.pipe(), threading.Lock()
lock.acquire()
def for_ever(step):
    while True:
        step()
def echo():
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
steps = (lambda: time.sleep(0.0001), lambda: time.sleep(0), echo, lambda: lock.acquire(timeout=0.0001))
for step in (*steps, lock.acquire, spin, lambda: time.sleep(1e5)):
    for _ in range(2):
        threading.Thread(target=for_ever, args=(step,), daemon=True).start()
answer = True
""",
        times=4,
    ),
    "interpreters share its GIL": Event(
        """
COUNT = '''
import os, threading
ends = os.pipe()
for _ in range(10):
    os.write(ends[1], b"x")
    os.read(ends[0], 1)
    sum(range(1000))
thread = threading.Thread(target=sum, args=([1],))
thread.start()
thread.join()
'''
def look_about():
    while not stop.is_set():
        os.stat("/")
# until 3.12 only threads of its own interpreter can ask a spinner to let go, unless each waiter asks
computing = spinners(2) if SCHEDULED else [threading.Thread(target=look_about)]
SCHEDULED or computing[0].start()
for _ in range(3):
    made = create("legacy")
    run_in(made, COUNT)
    interpreters.destroy(made)
at_once = [create("legacy") for _ in range(2)]
for made in at_once:  # up to 3.11 an interpreter ends well only where threading was first imported
    run_in(made, "import threading")
start_and_join([threading.Thread(target=run_in, args=(made, COUNT)) for made in at_once])
for made in at_once[1:]:  # one is there still when the process ends
    interpreters.destroy(made)
end(computing)
answer = "seen" not in globals() or {thread.gil for thread in seen.threads} == {0}
""",
        INTERPRETERS,
    ),
    "interpreters with GILs of their own come and go": Event(
        """
work = "import threading; t = threading.Thread(target=sum, args=([1],)); t.start(); t.join()"
def census():
    return len(os.listdir("/proc/self/fd")), threading.active_count()
before, gils = census(), set()
threads = spinners(1)
for _ in range(25):  # more than records of dead ones are kept: those are used again
    made = create("isolated")
    run_in(made, work)
    gils |= {thread.gil for thread in seen.threads} if "seen" in globals() else set(range(26))
    interpreters.destroy(made)
if sys.version_info >= (3, 13):  # 3.12 itself never ends one that a thread has run in that is over
    at_once = [create("isolated") for _ in range(5)]
    start_and_join([threading.Thread(target=run_in, args=(made, work)) for made in at_once])
    for made in at_once:
        interpreters.destroy(made)
end(threads)
answer = census() == before and len(gils) >= 26
""",
        INTERPRETERS,
        first=(3, 12),
    ),
    "traces are dumped beside computing threads": Event("""
import faulthandler
threads, ends = spinners(3), os.pipe()
faulthandler.dump_traceback_later(0.01, repeat=True, file=ends[1])
text = b""
while text.count(b"most recent call first") < 12:
    text += os.read(ends[0], 10000)
faulthandler.cancel_dump_traceback_later()
end(threads)
answer = b"in spin" in text
"""),
    "greenlets switch in several threads": Event(
        """
import greenlet
spinners(2, daemon=True)
counts = []
def work():
    def other():
        while True:
            greenlet.getcurrent().parent.switch(1)
    made, count = greenlet.greenlet(other), 0
    for _ in range(2000):
        count += made.switch()
        if count % 100 == 0:
            os.stat("/")
    counts.append(count)
start_and_join([threading.Thread(target=work) for _ in range(4)])
answer = counts == [2000] * 4
""",
        needs="greenlet",
    ),
    "a gevent server answers beside its own thread pool": Event(
        """
import gevent, gevent.threadpool
from gevent import socket
from gevent.server import StreamServer
def handle(connection, address):
    while data := connection.recv(100):
        connection.sendall(data)
server = StreamServer(("127.0.0.1", 0), handle)
server.start()
pool = gevent.threadpool.ThreadPool(2)
jobs = [pool.spawn(lambda: [sum(range(1000)) for _ in range(1000)]) for _ in range(2)]
def client():
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        for _ in range(100):
            connection.sendall(b"x")
            assert connection.recv(1) == b"x"
    return 100
clients = [gevent.spawn(client) for _ in range(5)]
answer = sum(one.get() for one in clients) == 500
for job in jobs:
    job.get()
server.stop()
""",
        "from gevent import monkey\nmonkey.patch_all()\n",
        "gevent",
    ),
    "a uvloop server answers beside computing threads": Event(
        """
import asyncio, uvloop
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
answer = uvloop.new_event_loop().run_until_complete(main()) == 501
end(threads)
""",
        needs="uvloop",
    ),
    "numpy computes in several threads": Event(
        """
import numpy
spinners(2, daemon=True)
sums = []
def work(seed):
    matrix = numpy.full((60, 60), float(seed))
    for _ in range(50):
        result = matrix @ matrix
    sums.append(float(result[0, 0]))
start_and_join([threading.Thread(target=work, args=(seed,)) for seed in (1, 2, 3, 4)])
answer = sorted(sums) == [60.0, 240.0, 540.0, 960.0]
""",
        needs="numpy",
    ),
}


@pytest.mark.parametrize(
    ("event", "survivor"),
    [(event, one) for event in EVENTS for one in SURVIVORS if one != "served" or not EVENTS[event].needs],
)
def test_process_goes_on_and_what_is_said_of_its_gil_stays_true(
    event: str, survivor: str, tmp_path: Path
) -> None:
    program, head, needs, first, times = EVENTS[event]
    if needs and importlib.util.find_spec(needs) is None:
        pytest.skip(f"{needs} is not installed (pip install --group guests)")
    if sys.version_info < first:
        pytest.skip("before 3.12 all interpreters share one GIL")
    path = tmp_path / "out.flrec"
    for _ in range(times):
        end = "\nprint(json.dumps([bool(answer), survived()]))\n"
        assert run(SURVIVORS[survivor] + program + end, str(path), head=head + HEAD) == [True, True]
        if survivor == "observed":
            recording = Recording(path)
            assert [block.type for block in recording.blocks()][-1] == BlockType.END
            assert recording.problems == ()

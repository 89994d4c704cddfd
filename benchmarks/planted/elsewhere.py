"""Programs that wait, and not for the GIL; and programs that have no trouble."""

from __future__ import annotations

import asyncio
import hashlib
import multiprocessing
import queue
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from plant import count, healthy, late, main, passing, planted, start


@healthy
def slow_upstream() -> None:
    with ThreadPoolExecutor(4) as pool:
        while passing():
            list(pool.map(lambda _: time.sleep(0.05), range(4)))


@planted("lock")
def lock_held_while_it_sleeps() -> float:
    lock = threading.Lock()

    def works() -> None:
        while passing():
            with lock:  # here
                time.sleep(0.02)

    for thread in start(*[works] * 4):
        thread.join()
    return 3 * 2.0


@healthy
def waits_for_a_child() -> None:
    while passing():
        subprocess.run([sys.executable, "-c", "import time; time.sleep(.2)"], check=True)


@healthy
def empty_queue() -> None:
    items: queue.Queue[int] = queue.Queue()

    def worker() -> None:
        while True:
            items.get()

    start(*[worker] * 4)
    while passing():
        time.sleep(0.1)
        items.put(1)


@healthy
def computes_alone() -> None:
    while passing():
        count(5000)


@healthy
def computes_alone_with_idle_threads() -> None:
    over = threading.Event()
    start(*[over.wait] * 5)
    while passing():
        count(5000)


@healthy
def processes_compute() -> None:
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        pool.map(count, [1_000_000] * 2, 1)
        while passing():
            time.sleep(0.1)


@healthy
def quick_requests() -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: late(0.01, lambda: count(200)), range(4)))


@healthy
def event_loop_of_short_callbacks() -> None:
    async def client() -> None:
        while passing():
            await asyncio.sleep(0.005)
            count(500)

    async def serve() -> None:
        await asyncio.gather(*(client() for _ in range(5)))

    asyncio.run(serve())


@healthy
def compresses_in_two_threads() -> None:
    data = b"abc" * 2_000_000

    def works() -> None:
        while passing():
            zlib.compress(data)

    for thread in start(works, works):
        thread.join()


@healthy
def hashes_large_blocks() -> None:
    data = b"x" * 4_000_000

    def works() -> None:
        while passing():
            hashlib.sha256(data).digest()

    for thread in start(works, works):
        thread.join()


@healthy
def sqlite_on_disk() -> None:
    with tempfile.TemporaryDirectory() as name:

        def works() -> None:
            base = sqlite3.connect(Path(name, threading.current_thread().name))
            base.execute("create table t (a)")
            while passing():
                base.execute("insert into t values (1)")
                base.commit()
                time.sleep(0.005)

        for number, thread in enumerate(start(works, works)):
            thread.join()
            assert number < 2


@healthy
def echo_without_a_report() -> None:
    here, there = socket.socketpair()

    def answers() -> None:
        while data := there.recv(8):
            there.sendall(data)

    start(answers)
    while passing():
        time.sleep(0.001)
        here.sendall(b"x")
        here.recv(8)


@healthy
def timers_in_three_threads() -> None:
    def works() -> None:
        late(0.005, lambda: count(300))

    for thread in start(works, works, works):
        thread.join()


@healthy
def writes_a_log() -> None:
    with tempfile.TemporaryFile("w") as file:
        while passing():
            file.write("a line\n" * 100)
            file.flush()
            time.sleep(0.001)


@healthy
def main_waits_for_one_worker() -> None:
    def works() -> None:
        while passing():
            count(5000)

    start(works)[0].join()


@healthy
def reads_a_pipe_line_by_line() -> None:
    code = "import time\nfor i in range(1500):\n print(i, flush=True); time.sleep(.001)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        for line in child.stdout:
            count(len(line))


@healthy
def event_loop_that_waits() -> None:
    async def serve() -> None:
        while passing():
            await asyncio.sleep(0.2)

    asyncio.run(serve())


@healthy
def allocates_and_frees() -> None:
    def works() -> None:
        while passing():
            [[i] for i in range(2000)]
            time.sleep(0.005)

    for thread in start(works, works):
        thread.join()


@healthy
def short_program() -> None:
    count(2_000_000)


if __name__ == "__main__":
    main()

"""Threads that need the GIL for moments, beside threads that compute in Python."""

from __future__ import annotations

import asyncio
import queue
import socket
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from plant import count, late, main, passing, planted, start


def report() -> None:
    while passing():
        count(2000)  # here


def asks(address: tuple[str, int], pause: float = 0.001) -> float:
    """A client process sends 8 bytes and waits for them, in turns: how long it waited."""
    code = (
        "import socket, sys, time\ns = socket.create_connection((sys.argv[1], int(sys.argv[2])))\n"
        f"end = time.monotonic() + 1.6\nlost = 0\nwhile time.monotonic() < end:\n time.sleep({pause})\n"
        " b = time.monotonic(); s.sendall(b'x' * 8); s.recv(8); lost += time.monotonic() - b\nprint(lost)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, address[0], str(address[1])], capture_output=True, check=True
    )
    return float(done.stdout)


@planted("convoy")
def echo_server() -> float:
    class Echo(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while data := self.request.recv(64):
                self.request.sendall(data)

    socketserver.ThreadingTCPServer.daemon_threads = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Echo) as server:
        start(server.serve_forever, report)
        return asks(server.server_address)


@planted("convoy")
def poller() -> float:
    start(report)
    return late(0.001)


@planted("convoy")
def timer_beside_two_reports() -> float:
    start(report, report)
    return late(0.0067)


@planted("convoy")
def heartbeat_in_a_thread() -> float:
    lost: list[float] = []
    beat = threading.Thread(target=lambda: lost.append(late(0.005, lambda: count(200))), name="heartbeat")
    beat.start()
    report()
    beat.join()
    return lost[0]


@planted("convoy")
def pipeline_of_queues() -> float:
    first: queue.Queue[float] = queue.Queue()
    second: queue.Queue[float] = queue.Queue()

    def stage() -> None:
        while True:
            second.put(first.get())

    start(stage, report)
    lost = 0.0
    while passing():
        time.sleep(0.001)
        began = time.monotonic()
        first.put(began)
        second.get()
        lost += time.monotonic() - began
    return lost


@planted("convoy")
def executor_of_requests() -> float:
    start(report)
    with ThreadPoolExecutor(4) as pool:
        return sum(pool.map(lambda _: late(0.003, lambda: count(500)), range(4))) / 4


@planted("convoy")
def reads_small_files() -> float:
    with tempfile.TemporaryDirectory() as name:
        file = Path(name, "a")
        file.write_bytes(b"x" * 100)
        start(report)
        return late(0.001, file.read_bytes)


@planted("convoy")
def queries_sqlite() -> float:
    base = sqlite3.connect(":memory:")
    base.execute("create table t (a)")
    base.execute("insert into t values (1)")
    start(report)
    return late(0.002, lambda: base.execute("select a from t").fetchone())


@planted("convoy")
def asyncio_beside_to_thread() -> float:
    async def serve() -> float:
        lost = 0.0
        computing = asyncio.create_task(asyncio.to_thread(report))
        while passing():
            began = time.monotonic()
            await asyncio.sleep(0.002)
            lost += max(0.0, time.monotonic() - began - 0.003)
        await computing
        return lost

    return asyncio.run(serve())


@planted("convoy")
def http_server() -> float:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        start(server.serve_forever, report)
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        return late(0.01, lambda: urllib.request.urlopen(url).read())


@planted("convoy")
def condition_of_two_threads() -> float:
    ready = threading.Condition()

    def answers() -> None:
        with ready:
            while True:
                ready.wait()

    def tells() -> None:
        with ready:
            ready.notify()

    start(answers, report)
    return late(0.002, tells)


@planted("convoy")
def socket_pair() -> float:
    here, there = socket.socketpair()

    def answers() -> None:
        while data := there.recv(8):
            there.sendall(data)

    def asks_once() -> None:
        here.sendall(b"x")
        here.recv(8)

    start(answers, report)
    return late(0.001, asks_once)


@planted("import", "convoy")
def import_beside_a_report() -> float:
    start(report)
    began = time.monotonic()
    import ctypes.util
    import email.mime.multipart
    import unittest.mock
    import xml.dom.minidom
    import xmlrpc.server

    took = time.monotonic() - began
    assert all((ctypes.util, email.mime.multipart, unittest.mock, xml.dom.minidom, xmlrpc.server))
    while passing():
        time.sleep(0.2)
    return took


@planted("thread-start", "convoy")
def starts_a_thread_a_request() -> float:
    start(report)

    def request() -> None:
        count(20)

    lost = 0.0
    while passing():
        began = time.monotonic()
        thread = threading.Thread(target=request)
        thread.start()
        thread.join()
        lost += time.monotonic() - began
    return lost


if __name__ == "__main__":
    main()

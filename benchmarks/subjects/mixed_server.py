"""A threaded server of requests that each need some Python work, one thread for each connection, with
CPU-bound threads beside. A request is a line that names its kind of work, and so is the answer.

Settings: steps: for each kind of work how many steps it takes.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from contextlib import suppress

import subject
from steps import count_to

STEPS: dict[bytes, int] = {f"{kind}\n".encode(): steps for kind, steps in subject.SETTINGS["steps"].items()}


def serve(connection: socket.socket) -> None:
    with connection, suppress(ConnectionError):
        while line := connection.recv(64):
            count_to(STEPS[line])
            connection.sendall(line)


def accept(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(connection,), daemon=True).start()


subject.set_switch_interval()
listener = socket.create_server(("127.0.0.1", 0), backlog=256)
subject.fork_workers()
threading.Thread(target=accept, args=(listener,), daemon=True).start()
work = subject.spinners()
subject.say(port=listener.getsockname()[1], pid=os.getpid(), **work)
sys.stdin.read()

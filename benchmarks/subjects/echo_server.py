"""A threaded echo server, one thread for each connection, with CPU-bound threads beside."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress

import subject


def serve(connection: socket.socket) -> None:
    with connection, suppress(ConnectionResetError):
        while data := connection.recv(4096):
            connection.sendall(data)


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
subject.say(port=listener.getsockname()[1], **work)
sys.stdin.read()

"""Puts load on a server of this machine: each client sends its next request when the last is answered.

Settings: port, clients, seconds, warm_up; http: a path to GET (keep-alive), none: echoes of 64 bytes.
Prints a line when the warm-up is over, and then what was seen.
"""

from __future__ import annotations

import select
import socket
import time
from array import array

import subject

PORT: int = subject.SETTINGS["port"]
PATH: str | None = subject.SETTINGS.get("http")
REQUEST = b"x" * 64 if PATH is None else f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()


def connect() -> socket.socket:
    client = socket.create_connection(("127.0.0.1", PORT))
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.sendall(REQUEST)
    return client


def answered(data: bytes) -> bool:
    """Is this a whole answer?"""
    if PATH is None:
        return len(data) >= len(REQUEST)
    head, end, body = data.partition(b"\r\n\r\n")
    if not end:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"load: the server says {head[:80]!r}")
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(value)
    raise SystemExit("load: an answer without its length")


def exchange(clients: list[socket.socket], got: dict[int, bytes], seconds: float) -> array[int]:
    """Nanoseconds of each request that was sent and answered within the time. `got` is what has come of the
    answers that are under way, by file number."""
    clock = time.perf_counter_ns
    poll = select.epoll()
    by_number = {client.fileno(): client for client in clients}
    begin = clock()
    sent = dict.fromkeys(by_number, 0)  # those that are on their way do not count
    for number in by_number:
        poll.register(number, select.EPOLLIN)
    end = begin + int(seconds * 1e9)
    took = array("q")
    while (now := clock()) < end:
        for number, _ in poll.poll((end - now) / 1e9):
            client = by_number[number]
            data = client.recv(65536)
            if not data:
                raise SystemExit("load: the server closed a connection")
            got[number] += data
            if answered(got[number]):
                now = clock()
                if sent[number]:
                    took.append(now - sent[number])
                got[number] = b""
                sent[number] = now
                client.send(REQUEST)
    # a client that still waits has waited that long at least: a server that never answers must not look quick
    took.extend(end - (at or begin) for at in sent.values() if end - (at or begin) > 100_000_000)
    poll.close()
    return took


def exchange_one(client: socket.socket, seconds: float) -> array[int]:
    """The same with a single client, which needs no poll."""
    clock = time.perf_counter_ns
    took = array("q")
    now = begin = clock()
    end = begin + int(seconds * 1e9)
    first = True
    while now < end:
        data = client.recv(65536)
        while not answered(data):
            data += client.recv(65536)
        at, now = now, clock()
        if not first:
            took.append(now - at)
        first = False
        client.send(REQUEST)
    return took


def main() -> None:
    clients = [connect() for _ in range(subject.SETTINGS["clients"])]
    got = {client.fileno(): b"" for client in clients}
    seconds = subject.SETTINGS["seconds"]

    def serve(duration: float) -> array[int]:
        return exchange_one(clients[0], duration) if len(clients) == 1 else exchange(clients, got, duration)

    serve(subject.SETTINGS["warm_up"])
    subject.say()
    begin = time.perf_counter()
    took = sorted(serve(seconds))
    elapsed = time.perf_counter() - begin
    at = [
        took[min(len(took) - 1, int(len(took) * part))] / 1e3 if took else elapsed * 1e6
        for part in (0.5, 0.99, 1)
    ]
    subject.say(**{"requests/s": len(took) / elapsed, "p50 us": at[0], "p99 us": at[1], "max us": at[2]})


main()

"""A callback of an event loop keeps the others of the loop waiting."""

from __future__ import annotations

import asyncio
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable

from plant import count, main, passing, planted


async def ticks() -> float:
    lost = 0.0
    while passing():
        began = time.monotonic()
        await asyncio.sleep(0.005)
        lost += max(0.0, time.monotonic() - began - 0.006)
    return lost


def beside(handle: Callable[[], object], pause: float = 0.03) -> float:
    async def serve() -> float:
        ticking = asyncio.create_task(ticks())
        while passing():
            await asyncio.sleep(pause)
            handle()
        return await ticking

    return asyncio.run(serve())


@planted("callback")
def computes_in_a_handler() -> float:
    def renders() -> None:
        count(800_000)  # here

    return beside(renders)


@planted("callback")
def sleeps_in_a_coroutine() -> float:
    async def polls() -> None:
        while passing():
            await asyncio.sleep(0.02)
            time.sleep(0.05)  # here

    async def serve() -> float:
        polling = asyncio.create_task(polls())
        lost = await ticks()
        await polling
        return lost

    return asyncio.run(serve())


@planted("callback")
def reads_a_socket_that_blocks() -> float:
    here, there = socket.socketpair()

    def upstream() -> None:
        while True:
            there.recv(1)
            time.sleep(0.04)
            there.sendall(b"x")

    def fetches() -> None:
        here.sendall(b"x")
        here.recv(1)  # here

    threading.Thread(target=upstream, daemon=True).start()
    return beside(fetches)


@planted("callback", "long-hold")
def dumps_in_a_handler() -> float:
    data = [{"a": i} for i in range(60_000)]

    def exports() -> None:
        json.dumps(data)  # here

    return beside(exports)


@planted("callback")
def waits_for_a_future() -> float:
    done = threading.Event()

    def work() -> None:
        while True:
            time.sleep(0.05)
            done.set()

    def waits() -> None:
        done.clear()
        done.wait()  # here

    threading.Thread(target=work, daemon=True).start()
    return beside(waits)


@planted("callback")
def hashes_a_password() -> float:
    def checks() -> None:
        hashlib.pbkdf2_hmac("sha256", b"secret", b"salt", 60_000)  # here

    return beside(checks)


@planted("convoy")
def loop_beside_a_computing_thread() -> float:
    def trains() -> None:
        while passing():
            count(2000)  # here

    threading.Thread(target=trains, name="trains").start()
    return asyncio.run(ticks())


if __name__ == "__main__":
    main()

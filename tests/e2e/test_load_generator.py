"""The open-loop load generator counts what a client would have waited, whatever the server does."""

from __future__ import annotations

import asyncio
import os
import runpy
import shutil
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

LOAD = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "load" / "__init__.py"))
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]
COMPILERS = (os.environ.get("CC"), *map(shutil.which, ("cc", "gcc", "clang")))
pytestmark = [
    pytest.mark.once,
    pytest.mark.skipif(not any(COMPILERS), reason="no C compiler: the load generator is compiled"),
]


@contextmanager
def server(handler: Handler) -> Iterator[int]:
    """A server on a loop in a thread of its own; its port."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def stop() -> None:
        listening.close()
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        for task in rest:
            task.cancel()
        await asyncio.gather(*rest, return_exceptions=True)

    listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(handle, "127.0.0.1", 0), loop).result()
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def answering(answer: bytes, *, requests: int = 1 << 30, hold_s: float = 0.0) -> Handler:
    """Answers so many requests of a connection, each after some time, and closes it."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(requests):
            await reader.readuntil(b"\r\n\r\n")
            await asyncio.sleep(hold_s)
            writer.write(answer)
            await writer.drain()

    return handle


def load(port: int, **settings: Any) -> Any:
    """It ends when all is answered, or after the drain."""
    settings = {"seconds": 0.5, "warm_up": 0.1, "drain": 30, "rate": 200.0, **settings}
    classes = [LOAD["Requests"]("all", settings.pop("rate"), 1.0, "/")]
    return LOAD["openloop"](port, classes, **settings)


BODY = b"x" * 40_000
ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\ncontent-length: 40000\r\n\r\n" + BODY,
    "empty": b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9C40\r\n"
    + BODY
    + b"\r\n2\r\nab\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_load_reads_every_form_of_an_answer_and_keeps_the_connection(answer: bytes) -> None:
    with server(answering(answer)) as port:
        seen = load(port)
    assert seen["errors"] == seen["unanswered"] == 0
    assert seen["classes"]["all"]["requests"] == seen["requests"] > 50
    assert seen["opened"] == seen["connections"], "no connection was closed"


@pytest.mark.parametrize(
    "answer",
    [b"HTTP/1.0 200 OK\r\n\r\nbody", b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"],
)
def test_load_opens_a_connection_for_each_request_where_the_server_closes_it(answer: bytes) -> None:
    with server(answering(answer, requests=1)) as port:
        seen = load(port)
    assert seen["errors"] == seen["unanswered"] == 0
    assert seen["opened"] >= seen["requests"]


def test_load_sends_a_request_again_if_the_connection_was_closed_while_idle() -> None:
    with server(answering(ANSWERS["empty"], requests=3)) as port:
        seen = load(port, rate=400.0)
    assert seen["errors"] == seen["unanswered"] == 0
    assert seen["opened"] >= seen["requests"] / 3


def test_load_counts_what_is_no_success_or_never_answered() -> None:
    with server(answering(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")) as port:
        seen = load(port)
    assert seen["errors"] == seen["requests"] > 0
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    seen = load(port)
    assert seen["errors"] == seen["requests"] > 0
    with server(answering(ANSWERS["empty"], hold_s=60)) as port:
        seen = load(port, connections=4, drain=0.3)
    assert seen["unanswered"] == seen["requests"] > 0
    assert seen["throughput"] == 0
    assert seen["classes"]["all"]["max"] >= 500


def test_load_counts_a_pause_of_the_server_for_every_request_that_was_due_meanwhile() -> None:
    """A closed loop would count it once for each connection: here a single one."""
    first = True

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal first
        while True:
            await reader.readuntil(b"\r\n\r\n")
            if first:
                first = False
                await asyncio.sleep(0.5)
            writer.write(ANSWERS["empty"])

    with server(handle) as port:
        seen = load(port, connections=1, warm_up=0, seconds=1)
    every = seen["classes"]["all"]
    assert seen["queued"] > 50
    assert every["max"] >= 450
    assert every["mean"] >= 50, "half the requests waited for 250 ms on average"


def test_load_of_several_classes_keeps_to_their_rates() -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)

    classes = [LOAD["Requests"](name, rate, 1.0, name) for name, rate in (("few", 50.0), ("many", 450.0))]
    with server(echo) as port:
        seen = LOAD["openloop"](port, classes, seconds=2.0, warm_up=0.0, protocol="line", open_first=8)
    assert seen["unanswered"] == 0
    assert 50 <= seen["classes"]["few"]["requests"] <= 160
    assert 800 <= seen["classes"]["many"]["requests"] <= 1000


def test_load_of_the_same_seed_is_the_same() -> None:
    with server(answering(ANSWERS["empty"])) as port:
        counts = {load(port, seed=7, warm_up=0)["requests"] for _ in range(2)}
    assert len(counts) == 1

"""Programs that serve, and a client that asks them without anything of ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from typing import Any

from waiting import until

SERVE = """
import ctypes, json, os, sys, threading, time
import fairlead.gil as gil

server = gil.serve("127.0.0.1:0", **json.loads(sys.argv[1]))
print(server.port, server.token, flush=True)

def keep():
    '''Keeps the GIL, asleep in C, until the test says something.'''
    ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)

def hear():
    '''Waits without the GIL until the test says something.'''
    os.read(0, 1)

"""


class Program:
    """A process with an endpoint."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, token: str) -> None:
        self.process = process
        self.port = port
        self.token = token

    def say(self) -> None:
        """Let it go on from where it waits for us."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"x")
        self.process.stdin.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().decode().strip()

    def ask(self, path: str, **headers: str) -> tuple[int, str]:
        return ask(self.port, path, Authorization=f"Bearer {self.token}", **headers)

    def json(self, path: str) -> Any:
        """The answer, once there is one: a tenth of a second has a limited number."""
        status, body = self.ask(path)
        while status == 429:
            status, body = self.ask(path)
        assert status in (200, 503), body
        return json.loads(body)

    def names(self) -> set[str]:
        """Those of all threads."""
        return {thread["name"] for thread in self.json("/threads")["threads"]}

    def becomes(self, status: str) -> dict[str, Any]:
        """What /healthz says once it says this."""
        said: dict[str, Any] = {}

        def is_so() -> bool:
            said.update(self.json("/healthz"))
            return bool(said["status"] == status)

        until(is_so)
        return said


def ask(port: int, path: str, **headers: str) -> tuple[int, str]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def metrics(port: int, token: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """The samples of /metrics by name and labels, as Prometheus's own parser reads them."""
    from prometheus_client.parser import text_string_to_metric_families

    found = {}
    status, text = 429, ""
    while status == 429:
        status, text = ask(port, "/metrics", Authorization=f"Bearer {token}")
    assert status == 200
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in found
            found[key] = sample.value
    return found


@contextmanager
def program(
    text: str,
    *options: str,
    head: str = SERVE,
    ends: int | None = 0,
    stalled_after: float = 0.3,
    busy_after: float | None = None,
) -> Iterator[Program]:
    """Runs it, and sees that it ends as it should; None: it is killed, as it would not end."""
    limits = json.dumps({"stalled_after": stalled_after, "busy_after": busy_after})
    command = [sys.executable, *options, "-c", head + text, limits]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("FAIRLEAD")}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        try:
            assert process.stdout is not None
            port, token = process.stdout.readline().split()
            yield Program(process, int(port), token.decode())
            if ends is not None:
                assert process.stdin is not None
                process.stdin.close()
                process.stdin = None
                assert process.wait(timeout=40) == ends
        finally:
            process.kill()

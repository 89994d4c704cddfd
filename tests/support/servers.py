"""The programs of docs/how-to/recipes.md, started as a page says, and what they answer."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest
from companions import environment, variables
from waiting import until

ENVIRONMENT = environment()
BIN = Path(sys.executable).parent
WSGI = """
import os
import fairlead.gil

def app(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    policy = fairlead.gil.scheduler().policy
    return [f"{os.getpid()} {os.getppid()} {policy}".encode()]

application = app
"""
MANAGE = """
import os, sys
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.management.commands.runserver import Command
from django.http import HttpResponse
from django.urls import path
import fairlead.gil

def look(_):
    return HttpResponse(f"{os.getpid()} {os.getppid()} {fairlead.gil.scheduler().policy}")

settings.configure(ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x", DEBUG=True)
urlpatterns = [path("", look)]
Command.default_port = os.environ["PORT"]
execute_from_command_line(sys.argv)
"""
ASGI = """
import os
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse
import fairlead.gil

app = FastAPI()

@app.get("/", response_class=PlainTextResponse)
def look():
    return f"{os.getpid()} {os.getppid()} {fairlead.gil.scheduler().policy}"
"""
TASKS = """
import os
from celery import Celery
import fairlead.gil

app = Celery("tasks", broker="filesystem://", backend="file://" + os.path.abspath("results"))
folders = ("data_folder_in", "data_folder_out", "control_folder")
app.conf.broker_transport_options = {name: "queue" for name in folders} | {"polling_interval": 0.1}

@app.task
def policy():
    return fairlead.gil.scheduler().policy
"""


class Said(NamedTuple):
    """What a process that answers says of itself."""

    pid: int
    parent: int
    policy: str


class Server:
    def __init__(self, process: subprocess.Popen[str], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    def ask(self) -> Said | None:
        """What the process that answers says; None while none does."""
        with suppress(OSError, urllib.error.URLError):
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=30) as answer:
                pid, parent, policy = answer.read().decode().split()
            return Said(int(pid), int(parent), policy)
        return None

    def first(self, without: Container[int] = (), not_of: int = 0) -> Said:
        """The first answer of a process that is not one of `without`, nor a child of `not_of`."""
        found: list[Said] = []

        def there() -> bool:
            assert self.process.poll() is None, self.log.read_text()
            said = self.ask()
            if said and said.pid not in without and said.parent != not_of:
                found.append(said)
            return bool(found)

        until(there)
        return found[0]

    def several(self, count: int) -> dict[int, str]:
        """The policies of so many processes that answer."""
        seen: dict[int, str] = {}
        while len(seen) < count:
            said = self.first(without=seen)
            seen[said.pid] = said.policy
        return seen


def needs(*packages: str) -> None:
    for package in packages:  # each is installed by itself
        if not ENVIRONMENT.has([package]):
            pytest.skip(f"{package} is not installed: make companions")


def surroundings(more: Mapping[str, str]) -> dict[str, str]:
    own = {k: v for k, v in os.environ.items() if not k.startswith(("FAIRLEAD", "PYTHON", "COV"))}
    path = os.pathsep.join([str(BIN), str(ENVIRONMENT.python.parent), os.environ["PATH"]])
    # "python" is the environment's, "fairlead" is ours
    return {**own, **variables(), "PATH": path, **more}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        return int(one.getsockname()[1])


@contextmanager
def started(command: str, directory: Path, port: int = 0, **more: str) -> Iterator[Server]:
    """The command in a session of its own, which ends with all that it started."""
    for name, text in {"app.py": WSGI, "main.py": ASGI, "manage.py": MANAGE, "tasks.py": TASKS}.items():
        (directory / name).write_text(text)
    log = directory / "log"
    with (
        log.open("w") as out,
        subprocess.Popen(
            ["/bin/sh", "-c", f"exec {command}"],
            cwd=directory,
            env=surroundings({"GUNICORN_CMD_ARGS": f"--bind 127.0.0.1:{port}", "PORT": str(port), **more}),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            yield Server(process, port, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def served(command: str, directory: Path, **more: str) -> Iterator[Server]:
    with started(command, directory, free_port(), **more) as server:
        yield server

"""Pools of processes in servers that fork their workers, after the server itself has used one.

`make companions` installs gunicorn, uWSGI and celery; elsewhere this is left out.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from companions import environment, variables
from programs import living
from waiting import PATIENCE_S, until

pytestmark = pytest.mark.once

ENVIRONMENT = environment()
APPLICATION = """
import os
from fairlead.pools import ProcessPool, shared_pool

assert shared_pool("processes", 1).submit(abs, -3).result() == 3  # by the server, before it forks
server = os.getpid()

def answer(n):
    with ProcessPool(1) as pool:
        shared = shared_pool("processes", 1).submit(abs, -n).result()
        return [os.getpid() != server, pool.submit(abs, -n).result(), shared]
"""
WSGI = """
import json

def application(environ, start):
    start("200 OK", [("Content-Type", "text/plain")])
    return [json.dumps(answer(4)).encode()]
"""
EMBEDS = """
import multiprocessing, sys

multiprocessing.set_executable(f"{sys.prefix}/bin/python")  # sys.executable is the server
"""
COMMANDS = {
    "gunicorn": "--preload --workers 2 --timeout 40 --bind unix:{socket} program:application",
    "uwsgi": "--home {home} --master --processes 2 --enable-threads --py-call-osafterfork --die-on-term"
    " --http-socket {socket} --wsgi-file program.py",
}
CELERY = """
from celery import Celery

app = Celery("program", broker="filesystem://", backend=f"file://{os.getcwd()}/results")
app.conf.broker_transport_options = {
    "data_folder_in": "queue", "data_folder_out": "queue", "control_folder": "control",
}
for name in ("queue", "results"):
    os.makedirs(name, exist_ok=True)

@app.task(name="answer")
def task(n):
    return answer(n)
"""
ASK = "import json, program; print(json.dumps([program.task.delay(n).get(timeout=40) for n in (4, 5)]))"


@contextmanager
def server(package: str, program: str, command: str, place: Path) -> Iterator[None]:
    """Runs while the block does, and leaves no process behind."""
    if not ENVIRONMENT.has((package,)):
        pytest.skip(f"{package} not installed: make companions")
    (place / "program.py").write_text(program)
    with (
        (place / "log").open("w") as log,
        subprocess.Popen(
            [ENVIRONMENT.path / "bin" / package, *command.split()], cwd=place, stdout=log, stderr=log,
            env={**os.environ, **variables(), "SERVER_TEST": str(place)},
        ) as process,
    ):  # fmt: skip
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
    until(lambda: not living(f"SERVER_TEST={place}"))
    assert "Traceback" not in (place / "log").read_text()


@pytest.mark.long
@pytest.mark.parametrize("package", COMMANDS)
def test_workers_of_a_server_that_has_loaded_the_program_have_pools_of_processes(
    package: str, tmp_path: Path
) -> None:
    address = tmp_path / "socket"
    program = (EMBEDS if package == "uwsgi" else "") + APPLICATION + WSGI
    command = COMMANDS[package].format(socket=address, home=ENVIRONMENT.path)
    with server(package, program, command, tmp_path), socket.socket(socket.AF_UNIX) as asking:
        until(address.exists)
        asking.settimeout(PATIENCE_S)
        asking.connect(str(address))
        asking.sendall(b"GET / HTTP/1.0\r\n\r\n")
        answered = b"".join(iter(lambda: asking.recv(4096), b""))
    assert json.loads(answered.rpartition(b"\r\n")[2]) == [True, 4, 4]


@pytest.mark.long
def test_workers_of_celery_which_are_daemonic_have_pools_of_processes(tmp_path: Path) -> None:
    command = "-A program worker --concurrency 2 --pool prefork"
    with server("celery", APPLICATION + CELERY, command, tmp_path):
        done = subprocess.run(
            [ENVIRONMENT.python, "-c", ASK], cwd=tmp_path, env={**os.environ, **variables()},
            capture_output=True, text=True, check=False, timeout=100,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[True, 4, 4], [True, 5, 5]]

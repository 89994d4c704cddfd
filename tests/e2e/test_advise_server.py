"""``fairlead advise --server``: a server whose latency is its own word, so that the right answer is known."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import exit_status, python

pytestmark = pytest.mark.once

PROGRAM = (
    "from fairlead.advice import servers; servers.MOST_ROUNDS = 1\nfrom fairlead.cli import main; main()"
)
"""Ends after one round, long before its budget: what is found does not depend on the load."""
SERVER = """
import socket, sys
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    connection, _ = listener.accept()
    connection.sendall(sys.argv[2].encode())
    connection.close()
"""
LOAD = """
import json, socket, sys
threads = int(socket.create_connection(("127.0.0.1", int(sys.argv[1]))).makefile().read())
print(json.dumps({"p99_ms": 40 / threads, "requests_per_s": 100, "errors": int(threads == 8)}))
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "load.py").write_text(LOAD)
    return tmp_path


def advise(place: Path, server: str, load: str, *more: str) -> subprocess.CompletedProcess[str]:
    return python("-c", PROGRAM, "advise", "--server", server, "--load", load, *more, cwd=place)


PYTHON = shlex.quote(sys.executable)


def test_the_better_setup_is_chosen_and_the_cheaper_of_two_that_are_as_good(place: Path) -> None:
    done = advise(
        place, f"{PYTHON} server.py {{port}} {{threads}}", f"{PYTHON} load.py {{port}}",
        "--threads", "1,4,8", "--budget", "300s", "--format", "json", "-o", "kept.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert json.loads((place / "kept.json").read_text()) == found
    one, _, four, scheduled, eight, _ = found["candidates"]
    assert found["candidates"][found["choice"]] == four, "scheduled is as good, and stock is less"
    assert (one["p99_s"], four["p99_s"], four["gain"]) == pytest.approx((0.04, 0.01, 4.0))
    assert scheduled["setup"] == {"scheduled": True, "threads": 4, "workers": None}
    assert scheduled["p99_s"] == pytest.approx(0.01)
    assert (eight["status"], eight["reason"]) == ("failed", "1 request failed")
    assert found["command"] == f"{PYTHON} server.py '{{port}}' 4"
    assert found["goal"] == "p99"
    assert four["memory_kib"] > 1000


@pytest.mark.long
def test_text_has_the_answer_first_and_the_command_last(place: Path) -> None:
    done = advise(
        place, f"{PYTHON} server.py {{port}} {{workers}}", f"{PYTHON} load.py {{port}}",
        "--workers", "1,2", "--goal", "rate", "--budget", "300s",
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert lines[0] == "Leave it as it is: stock, 1 worker"
    assert any(line.startswith("  stock, 1 worker *") for line in lines)
    assert lines[-1] == f"  {PYTHON} server.py '{{port}}' 1"


@pytest.mark.parametrize(
    ("server", "load", "said"),
    [
        ("{python} -c 'import nothing_here' {port}", "{python} load.py {port}", "No module named"),
        ("{python} server.py {port} 1", "{python} -c 'raise SystemExit(3)'", "its load ended with status 3"),
        ("{python} server.py {port} 1", "no-such-load", "the load 'no-such-load' cannot be started"),
    ],
)
def test_server_or_load_that_fails_is_named(place: Path, server: str, load: str, said: str) -> None:
    done = advise(place, server.replace("{python}", PYTHON), load.replace("{python}", PYTHON))
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert len(done.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    "words",
    [
        "--server 'x {port}'",
        "--load x",
        "--server x --load x",
        "--server 'x {port}' --load x --threads 1,2",
        "--server 'x {port} {workers}' --load x",
        "--server 'x {port}' --load x --items [1]",
        "--server 'x {port}' --load x --format html",
        "shop:price --items [1] --threads 2",
        "",
    ],
)
def test_words_that_do_not_fit_together_are_one_line_and_status_2(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    assert exit_status("advise", *shlex.split(words)) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1

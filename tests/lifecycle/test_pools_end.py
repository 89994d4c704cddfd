"""Programs with pools end, however they end, and leave no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from programs import living
from waiting import main_thread_sleeps, until

SUPPORT = Path(__file__).parents[1] / "support"

START = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {support!r})
from pooltasks import announce_and_spin, square
from fairlead.pools import ProcessPool, ThreadPool
from waiting import until

def begin(pool):
    futures = [pool.submit(announce_and_spin, "begun"), *(pool.submit(square, n) for n in range(3))]
    until(Path("begun").exists)
    return futures

if __name__ == "__main__":
    print("up", flush=True)
"""

KINDS = pytest.mark.parametrize("kind", ["ThreadPool", "ProcessPool"])


def program(tmp_path: Path, body: str) -> list[str]:
    text = START.format(support=str(SUPPORT)) + "".join(f"    {line}\n" for line in body.strip().splitlines())
    path = tmp_path / "program.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def mark(tmp_path: Path) -> dict[str, str]:
    """An environment by which every process of the program can be found."""
    return {**os.environ, "POOLS_TEST": str(tmp_path)}


def run(command: list[str], tmp_path: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command, cwd=tmp_path, env=mark(tmp_path), capture_output=True, text=True, timeout=100, check=False
    )
    until(lambda: not living(f"POOLS_TEST={tmp_path}"))
    return done


@KINDS
def test_endless_loop_in_a_worker_keeps_no_program_alive(kind: str, tmp_path: Path) -> None:
    done = run(program(tmp_path, f"futures = begin({kind}(1))"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the program ended before 4 of its pools' tasks" in done.stderr
    assert "Traceback" not in done.stderr


@KINDS
def test_program_that_leaves_its_pool_by_with_ends_silently(kind: str, tmp_path: Path) -> None:
    body = f"""
with {kind}(2) as pool:
    print(list(pool.map(square, range(5))), flush=True)
"""
    done = run(program(tmp_path, body), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "up\n[0, 1, 4, 9, 16]\n", "")


@KINDS
def test_ctrl_c_ends_the_program_and_its_workers(kind: str, tmp_path: Path) -> None:
    body = f"""
with {kind}(1) as pool:
    future = begin(pool)[0]
    Path("waits").touch()
    future.result()
"""
    with subprocess.Popen(
        program(tmp_path, body), cwd=tmp_path, env=mark(tmp_path), stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        until((tmp_path / "waits").exists)
        until(lambda: main_thread_sleeps(process.pid))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the workers too
        _, said = process.communicate(timeout=100)
    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1, said
    until(lambda: not living(f"POOLS_TEST={tmp_path}"))


@pytest.mark.parametrize("method", ["forkserver", "spawn", "fork"])
def test_workers_end_with_a_program_that_is_killed(method: str, tmp_path: Path) -> None:
    command = program(tmp_path, f"begin(ProcessPool(1, mp_context={method!r}))[0].result()")
    with subprocess.Popen(
        command, cwd=tmp_path, env=mark(tmp_path), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            until((tmp_path / "begun").exists)
        finally:
            process.kill()
    until(lambda: not living(f"POOLS_TEST={tmp_path}"))


def test_functions_of_a_program_given_on_the_command_line_are_sent_by_value(tmp_path: Path) -> None:
    text = """
from fairlead.pools import ProcessPool
class Own(Exception): pass
def add(a, b): return a + b
def fail(): raise Own("own")
with ProcessPool(1) as pool:
    print(pool.submit(add, 1, 2).result(), list(pool.map(add, [1, 2], [3, 4])))
    try:
        pool.submit(fail).result()
    except Own as error:
        print(repr(error))
"""
    done = run([sys.executable, "-c", text], tmp_path)
    assert (done.stdout, done.stderr) == ("3 [4, 6]\nOwn('own')\n", "")


def test_pools_within_workers_of_pools_work(tmp_path: Path) -> None:
    body = """
def outer(n):
    with ProcessPool(1) as pool, ThreadPool(1) as threads:
        return pool.submit(square, n).result() + threads.submit(square, n).result()
with ProcessPool(1) as pool:
    print(pool.submit(outer, 3).result())
"""
    done = run(program(tmp_path, body), tmp_path)
    assert (done.stdout, done.stderr) == ("up\n18\n", "")


UNGUARDED = """
from fairlead.pools import ProcessPool
with ProcessPool(2{method}) as pool:
    print(list(pool.map(abs, range(-3, 0))))
"""


@pytest.mark.parametrize("method", ["", ", 'spawn'"], ids=["forkserver", "spawn"])
def test_program_without_the_guard_ends_with_one_line_that_says_so(method: str, tmp_path: Path) -> None:
    (tmp_path / "unguarded.py").write_text(UNGUARDED.format(method=method))
    done = run([sys.executable, "unguarded.py"], tmp_path)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert 'if __name__ == "__main__":' in line


def test_pool_of_a_module_that_workers_import_may_be_made_without_the_guard(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "from fairlead.pools import ProcessPool\n"
        "pool = ProcessPool(1)\n"
        "if __name__ == '__main__':\n"
        "    with pool:\n"
        "        print(pool.submit(abs, -3).result())\n"
    )
    done = run([sys.executable, "program.py"], tmp_path)
    assert (done.stdout, done.stderr) == ("3\n", "")

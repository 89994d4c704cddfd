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

LEFT_ALONE = ["sequential", "threads", "async", "processes", "auto", "auto, of coroutines"]
if sys.version_info >= (3, 13):
    LEFT_ALONE.append("interpreters")
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


OUTER = """
def outer(n):
    with ProcessPool(1) as pool, ThreadPool(1) as threads:
        return pool.submit(square, n).result() + threads.submit(square, n).result()
with ProcessPool(1) as pool:
    print(pool.submit(outer, 3).result())
"""
LIST = "with {kind}(2) as pool:\n    print(list(pool.map(square, range(5))), flush=True)"


@pytest.mark.parametrize(
    ("body", "stdout"),
    [
        *((LIST.format(kind=kind), "up\n[0, 1, 4, 9, 16]\n") for kind in ("ThreadPool", "ProcessPool")),
        (OUTER, "up\n18\n"),
    ],
    ids=["threads", "processes", "pools within workers"],
)
def test_program_with_pools_ends_and_leaves_no_process(body: str, stdout: str, tmp_path: Path) -> None:
    done = run(program(tmp_path, body), tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, stdout, "")


LEFT_OPEN = """
import asyncio, sys, threading
from pathlib import Path
from fairlead.pools import pool as make

def save(n):
    Path(f"saved-{n}").touch()

if sys.argv[1].endswith("coroutines"):
    async def save(n):
        Path(f"saved-{n}").touch()

async def save_all(pool):
    await asyncio.gather(*(pool.run(save, n) for n in range(4)))

if __name__ == "__main__":
    pool = make(sys.argv[1].partition(",")[0], 1)
    asyncio.run(save_all(pool))
    futures = [pool.submit(save, n) for n in range(4, 10)]
    results = pool.map(save, range(10, 1000))
    stream = pool.stream(save, iter(range(1000, 10**9)))
    sys.exit(3)
"""


@pytest.mark.parametrize("kind", LEFT_ALONE)
def test_program_that_ends_has_done_all_that_it_has_submitted(kind: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(LEFT_OPEN)
    done = run([sys.executable, "program.py", kind], tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert {path.name for path in tmp_path.glob("saved-*")} == {f"saved-{n}" for n in range(1000)}


def interrupted(tmp_path: Path, body: str, ready: str) -> tuple[int, str]:
    """Ctrl-C for a program that has made the file and whose main thread waits: how it ended, and what it
    said."""
    with subprocess.Popen(
        program(tmp_path, body), cwd=tmp_path, env=mark(tmp_path), stderr=subprocess.PIPE, text=True,
        stdout=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        until((tmp_path / ready).exists)
        until(lambda: main_thread_sleeps(process.pid))
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to the workers too
        _, said = process.communicate(timeout=100)
    return process.returncode, said


@pytest.mark.parametrize("kind", ["ThreadPool", "ProcessPool"])
def test_ctrl_c_ends_the_wait_for_an_endless_task_at_the_end_of_the_program(
    kind: str, tmp_path: Path
) -> None:
    body = f"""
import threading
from fairlead.pools.engine import shutdown

def tell():  # an interrupt before the pools have begun to end would be threading's
    until(lambda: shutdown.over)
    Path("ends").touch()

futures = begin({kind}(1))
threading.Thread(target=tell, daemon=True).start()
"""
    status, said = interrupted(tmp_path, body, "ends")
    assert said == "fairlead: the program was ended before 4 of its pools' tasks\n"
    assert status == 0
    until(lambda: not living(f"POOLS_TEST={tmp_path}"))


@KINDS
def test_ctrl_c_ends_the_program_and_its_workers(kind: str, tmp_path: Path) -> None:
    body = f"""
with {kind}(1) as pool:
    future = begin(pool)[0]
    Path("waits").touch()
    future.result()
"""
    status, said = interrupted(tmp_path, body, "waits")
    assert status == -signal.SIGINT
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


OF_A_MODULE = """
from fairlead.pools import ProcessPool
pool = ProcessPool(1)
if __name__ == '__main__':
    with pool:
        print(pool.submit(abs, -3).result())
"""
GIVEN = """
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


def test_guard_is_not_needed_for_a_pool_alone_nor_on_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(OF_A_MODULE)
    done = run([sys.executable, "program.py"], tmp_path)
    assert (done.stdout, done.stderr) == ("3\n", "")
    done = run([sys.executable, "-c", GIVEN], tmp_path)
    assert (done.stdout, done.stderr) == ("3 [4, 6]\nOwn('own')\n", "")


def test_directory_for_temporary_files_may_have_a_long_name(tmp_path: Path) -> None:
    """Longer than an address of a socket can be."""
    long = tmp_path / ("d" * 110)
    long.mkdir()
    command = program(tmp_path, LIST.format(kind="ProcessPool"))
    done = subprocess.run(
        command, cwd=tmp_path, env={**mark(tmp_path), "TMPDIR": str(long)}, capture_output=True, text=True,
        timeout=100, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("up\n[0, 1, 4, 9, 16]\n", "")
    until(lambda: not living(f"POOLS_TEST={tmp_path}"))

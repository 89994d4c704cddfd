"""The endpoint in real processes: it answers while nothing else does, and harms nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from commands import FAIRLEAD, fairlead
from scheduled import GIL
from served import SERVE, ask, metrics, program
from waiting import until

from fairlead.gil.observe.access import why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def answers(port: int) -> bool:
    try:
        return ask(port, "/healthz")[0] == 200
    except ConnectionError:
        return False


def test_c_call_that_keeps_the_gil_is_reported_with_its_thread_and_its_stack() -> None:
    text = """
def inner():
    keep()

def outer():
    hear()
    inner()

hog = threading.Thread(target=outer, name='the "hog" é')
hog.start()
hog.join()
hear()
"""
    lines = [line.strip() for line in (SERVE + text).splitlines()]
    with program(text) as asked:
        until(lambda: 'the "hog" é' in asked.names())
        asked.say()
        told = asked.becomes("stalled")
        assert asked.ask("/healthz")[0] == 503
        assert told["holder"]["name"] == 'the "hog" é'
        assert told["still_seconds"] >= 0.3
        [gil] = asked.json("/holder")["gils"]
        holder = gil["holder"]
        assert holder["native_id"] == told["holder"]["native_id"]
        assert holder["held_seconds"] >= told["still_seconds"]
        assert holder["stack_exact"] is True
        stack = [(frame["function"], frame["line"]) for frame in holder["stack"]]
        assert [(function, lines[line - 1]) for function, line in stack[:3]] == [
            ("keep", "ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)"),
            ("inner", "keep()"),
            ("outer", "inner()"),
        ]
        assert [function for function, _ in stack[3:]] == [
            "Thread.run", "Thread._bootstrap_inner", "Thread._bootstrap"
        ]  # fmt: skip
        states = {thread["name"]: thread["state"] for thread in asked.json("/threads")["threads"]}
        assert states['the "hog" é'] == "holds"
        assert metrics(asked.port, asked.token)["fairlead_gil_healthy", ()] == 0
        asked.say()
        asked.becomes("ok")
        assert asked.ask("/healthz")[0] == 200


def test_answers_without_the_token_have_no_names() -> None:
    """Every user of this machine may connect."""
    text = """
def hear_and_keep():
    hear()
    keep()
thread = threading.Thread(target=hear_and_keep, name="secret")
thread.start()
thread.join()
hear()
"""
    with program(text) as asked:
        until(lambda: "secret" in asked.names())
        asked.say()
        assert asked.becomes("stalled")["holder"]["name"] == "secret"
        for path in "/holder", "/threads":
            status, said = ask(asked.port, path)
            assert (status, "Authorization: Bearer TOKEN" in said) == (401, True)
            assert ask(asked.port, path, Authorization="Bearer " + "0" * 32)[0] == 401
        status, said = ask(asked.port, "/healthz")
        assert (status, json.loads(said)["holder"]["name"]) == (503, "thread 2")
        _, said = ask(asked.port, "/metrics")
        assert set(re.findall(r"(\w+)=", said)) == {"le", "policy"}
        assert "secret" not in said
        asked.say()


def test_thread_that_loses_its_core_with_the_gils_mutex_keeps_no_answer_waiting() -> None:
    """What stands still then is told as it was, until it has stood still for too long."""
    text = """
mutex = gil_address() + MUTEX
hear()
process = ctypes.PyDLL(None)
process.pthread_mutex_lock(ctypes.c_void_p(mutex))
process.write(1, b"locked\\n", 7)
process.read(0, ctypes.create_string_buffer(1), 1)
process.pthread_mutex_unlock(ctypes.c_void_p(mutex))
"""
    with program(text, head=SERVE + GIL) as asked:
        before = metrics(asked.port, asked.token)
        asked.say()
        assert asked.line() == "locked"
        now = metrics(asked.port, asked.token)
        assert now["fairlead_gil_acquisitions_total", ()] >= before["fairlead_gil_acquisitions_total", ()]
        assert "MainThread" in asked.names()
        assert asked.json("/holder")["gils"][0]["gil"] == 0
        assert asked.becomes("stalled")["still_seconds"] >= 0.3
        asked.say()


@pytest.mark.parametrize(("busy_after", "status", "answer"), [(None, "computing", 200), (0.4, "busy", 503)])
def test_thread_that_computes_in_c_is_alive_unless_that_is_called_busy(
    busy_after: float | None, status: str, answer: int
) -> None:
    """re does not let go of the GIL, and this takes it longer than anybody waits."""
    text = 'import re\nre.match("(a+)+$", "a" * 60 + "b")'
    with program(text, ends=None, stalled_after=0.2, busy_after=busy_after) as asked:
        told = asked.becomes(status)
        assert told["holder"]["name"] == "MainThread"
        assert told["still_seconds"] >= (busy_after or 0.2)
        assert asked.ask("/healthz")[0] == answer


SPINS = """
def spin():
    while True: sum(range(100))
for i in range(3): threading.Thread(target=spin, name=f"spinner-{i}", daemon=True).start()
print("spins", flush=True)
hear()
"""


@pytest.mark.parametrize("stalled_after", [60, pytest.param(0.3, marks=pytest.mark.timing)])
def test_gil_that_moves_is_healthy(stalled_after: float) -> None:
    with program(SPINS, stalled_after=stalled_after) as asked:
        for _ in range(20):
            assert asked.json("/healthz")["status"] in ("ok", "computing")
        until(lambda: asked.names() >= {f"spinner-{i}" for i in range(3)})
        frames = asked.json("/holder")["gils"][0]["holder"]
        assert frames is None or frames["stack"] is None or frames["stack"][-1]["function"]


@pytest.mark.timing
def test_gil_that_could_not_move_without_a_core_is_healthy_when_the_process_has_one_again() -> None:
    with program(SPINS, stalled_after=0.1) as asked:
        assert asked.line() == "spins"
        for _ in range(2):
            asked.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, asked.process.pid, os.WSTOPPED)
            with socket.create_connection(("127.0.0.1", asked.port), timeout=30) as connection:
                connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
                time.sleep(0.12)
                asked.process.send_signal(signal.SIGCONT)  # now the endpoint looks, and then the threads run
                assert connection.recv(12) == b"HTTP/1.1 200"


def test_sums_over_names_and_over_classes_are_those_of_the_process() -> None:
    """And no counter falls while threads come and go, nor does the number of series grow with them."""
    text = """
def brief(): sum(range(1000))
threading.Thread(target=hear, name="end").start()
while threading.active_count() > 1:
    batch = [threading.Thread(target=brief) for _ in range(20)]
    for thread in batch: thread.start()
    for thread in batch: thread.join()
"""
    with program(text) as asked:
        before = metrics(asked.port, asked.token)
        for _ in range(15):
            now = metrics(asked.port, asked.token)
            for key, value in before.items():
                if "_total" in key[0] or "_bucket" in key[0]:
                    assert now[key] >= value, key
            before = now
        until(lambda: metrics(asked.port, asked.token)["fairlead_gil_acquisitions_total", ()] > 3_000)
        now = metrics(asked.port, asked.token)
        for kind, most in (("thread", 65), ("class", 33)):
            for name in ("held_seconds", "waited_seconds", "acquisitions", "contended_acquisitions"):
                parts = [
                    value
                    for (metric, _), value in now.items()
                    if metric == f"fairlead_gil_{kind}_{name}_total"
                ]
                assert 3 <= len(parts) <= most
                assert sum(parts) == pytest.approx(now[f"fairlead_gil_{name}_total", ()], abs=1e-6)
        classes = {
            labels[0][1] for (metric, labels) in now if metric == "fairlead_gil_class_held_seconds_total"
        }
        assert "Thread-# (brief)" in classes
        # a thread that ended before it was named has the name that it has in the system: cut, from 3.14 on
        assert {name for name in classes if not name.startswith("Thread-# (b")} <= {
            "MainThread", "end", "(unnamed)", "(others)"
        }  # fmt: skip
        asked.say()


def test_metrics_are_those_of_counters_and_more() -> None:
    text = """
hear()
print(json.dumps(gil.counters()), flush=True)
hear()
"""
    with program(text) as asked:
        asked.say()
        counters = json.loads(asked.line())
        now = metrics(asked.port, asked.token)
        for name, value in counters.items():
            assert now[name, ()] >= value or "off_cpu" in name
        assert now["fairlead_gil_policy", (("policy", "stock"),)] == 1
        for name in ("wait", "hold"):
            edges = {
                float(labels[0][1]): value
                for (metric, labels), value in now.items()
                if metric == f"fairlead_gil_{name}_seconds_bucket"
            }
            counts = [edges[edge] for edge in sorted(edges)]
            assert counts == sorted(counts)
            assert counts[-1] == now[f"fairlead_gil_{name}_seconds_count", ()]


def test_child_of_a_fork_keeps_no_copy_of_the_port_can_serve_and_python_does_not_warn_of_a_thread() -> None:
    text = """
pid = os.fork()
if not pid:
    print("child", flush=True)
    hear()
    gil.serve("127.0.0.1:0").stop()  # an endpoint of its own
    os._exit(0)
server.stop()
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
    with program(text, "-Werror") as asked:
        assert asked.line() == "child"
        until(lambda: not answers(asked.port))  # the parent has closed it
        asked.say()
        assert asked.line() == "0"


def test_fork_says_nothing_that_it_does_not_say_without_the_endpoint_which_answers_afterwards() -> None:
    """CPython 3.12 and 3.13 count the threads after the handlers of a fork, of which this one has some."""
    text = """
os.dup2(os.memfd_create("said"), 2)
os.register_at_fork(after_in_parent=lambda: [str(number) for number in range(99)])
for _ in range(3):
    if os.fork() == 0: os._exit(0)
    os.wait()
print(os.pread(2, 999, 0), flush=True)
keep()
"""
    with program(text, "-Wdefault") as asked:
        assert asked.line() == "b''"
        assert asked.ask("/healthz")[0] in (200, 503)
        asked.say()


def test_program_that_closes_what_it_has_not_opened_has_its_own_files_to_itself() -> None:
    """As daemons do at their start, after which they fork. The endpoint says that it has ended."""
    text = """
os.dup2(os.memfd_create("said"), 2)
os.closerange(3, 1024)
files = [os.memfd_create("own") for number in range(600)]  # with all numbers that were the endpoint's
for file in files: os.write(file, b"own")
if os.fork() == 0:
    for file in files: os.fstat(file)
    os._exit(3)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
while not (told := os.pread(2, 999, 0)): pass
print(told.decode(), end="", flush=True)
if os.fork() == 0:
    os._exit(4)
print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
server.stop()
print({os.pread(file, 99, 0) for file in files}, flush=True)
"""
    with program(text, "-Werror") as asked:
        assert asked.line() == "3"
        said = f"fairlead: process {asked.process.pid}: it serves no longer: the program has closed the"
        assert asked.line() == f"{said} endpoint's socket"
        assert asked.line() == "4"
        assert asked.line() == "{b'own'}"


def test_endpoint_goes_on_where_a_program_closes_the_numbers_that_it_may_have_inherited() -> None:
    with program("os.closerange(3, 256)\nprint('closed', flush=True)\nhear()") as asked:
        assert asked.line() == "closed"
        assert asked.ask("/healthz")[0] == 200


def test_program_that_becomes_another_frees_the_port() -> None:
    text = """
hear()
again = "import os, fairlead.gil as g; g.serve('127.0.0.1:%d'); print('again', flush=True); os.read(0, 1)"
os.execv(sys.executable, [sys.executable, "-c", again % server.port])
"""
    with program(text) as asked:
        assert asked.ask("/healthz")[0] == 200
        asked.say()
        assert asked.line() == "again"
        assert asked.ask("/healthz")[0] == 200


def test_interpreter_that_hangs_in_its_finalisation_is_reported() -> None:
    text = """
import atexit
atexit.register(keep)
def spin():
    while True: sum(range(100))
for _ in range(2): threading.Thread(target=spin, daemon=True).start()
"""
    with program(text) as asked:
        assert asked.becomes("stalled")["holder"]["name"] == "MainThread"
        asked.say()


def test_thousand_threads_are_served() -> None:
    text = """
go = threading.Event()
threads = [threading.Thread(target=go.wait, name=f"thread-{i}") for i in range(1000)]
for thread in threads: thread.start()
print("started", flush=True)
hear()
go.set()
print("going", flush=True)
for thread in threads: thread.join()
print("gone", flush=True)
hear()
"""
    with program(text) as asked:
        assert asked.line() == "started"
        told = asked.json("/threads")
        assert Counter(thread["name"].rstrip("0123456789") for thread in told["threads"])["thread-"] == 1000
        assert told["left_out"] == 0
        asked.say()
        assert asked.line() == "going"
        assert len(metrics(asked.port, asked.token)) < 2000
        assert asked.line() == "gone"
        until(lambda: len(asked.json("/threads")["threads"]) < 1000)
        assert len(metrics(asked.port, asked.token)) < 2000
        asked.say()


def test_clients_that_are_silent_cost_the_program_nothing_but_a_place() -> None:
    with program("hear()") as asked:
        silent = [socket.create_connection(("127.0.0.1", asked.port), timeout=30) for _ in range(200)]
        assert asked.ask("/healthz")[0] == 200
        assert silent[0].recv(1) == b""
        for one in silent:
            one.close()


def test_server_ends_and_begins_again() -> None:
    text = """
with gil.serve("127.0.0.1:0") if server.stop() is None else server as second:
    print(second.port, flush=True)
    hear()
server.stop()
print(threading.Thread.start.__module__, flush=True)
hear()
"""
    with program(text) as asked:
        first, asked.port = asked.port, int(asked.line())
        assert asked.ask("/")[1].splitlines() == ["/healthz", "/holder", "/threads", "/metrics"]
        assert asked.ask("/nothing")[0] == 404
        assert first != asked.port
        asked.say()
        assert asked.line() == "threading"
        with pytest.raises(ConnectionError):
            asked.ask("/healthz")


@pytest.mark.skipif(sys.version_info < (3, 13), reason="3.13 is the first to have interpreters to import")
def test_other_interpreters_gils_are_watched_and_cannot_serve() -> None:
    text = """
import _interpreters
def interpreter():
    one = _interpreters.create("isolated")
    _interpreters.exec(one, "import ctypes; ctypes.PyDLL(None).read(0, ctypes.create_string_buffer(1), 1)")
    _interpreters.destroy(one)
thread = threading.Thread(target=interpreter, name="other")
thread.start()
thread.join()
one = _interpreters.create("isolated")
print(_interpreters.exec(one, "import fairlead.gil; fairlead.gil.serve('0')").msg, flush=True)
"""
    with program(text) as asked:
        told = asked.becomes("stalled")
        assert told["gil"] != 0
        assert told["holder"]["name"] == "other"
        gils = {gil["gil"]: gil for gil in asked.json("/holder")["gils"]}
        assert gils[told["gil"]]["holder"]["stack"][0]["function"] == "<module>"
        asked.say()
        assert asked.line().startswith("the main interpreter alone can serve")


def test_program_that_is_run_with_serve_answers_and_its_children_do_not_ask_for_the_port(
    tmp_path: Path,
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef\n")
    app = tmp_path / "app.py"
    app.write_text(
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, '-c', 'pass'], check=True)\n"
        "from fairlead.gil.endpoint.server import current\n"
        "print(current().port, 'FAIRLEAD_START' in os.environ, flush=True)\n"
        "sys.stdin.read()\n"
    )
    options = ["--serve", "0", "--token-file", str(token), "--stalled-after", "1m", "--children"]
    command = [*FAIRLEAD, "run", "--policy", "interactive", *options, "--", sys.executable, str(app)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        number, is_set = process.stdout.readline().split()
        port = int(number)
        assert is_set == "True"
        assert ask(port, "/healthz")[0] == 401
        status, text = ask(port, "/metrics", Authorization="Bearer 0123456789abcdef")
        assert status == 200
        assert 'fairlead_gil_policy{policy="interactive"} 1\n' in text
        process.communicate("", timeout=30)
    assert process.returncode == 0


def test_run_says_how_to_ask_for_names() -> None:
    code = "import sys; print('ready', flush=True); sys.stdin.read()"
    command = [*FAIRLEAD, "run", "--policy", "stock", "--serve", "0", "--", sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert process.stderr is not None
        said = process.stderr.readline()
        told = re.fullmatch(
            r"fairlead: serving http://127.0.0.1:(\d+)/healthz and /metrics; /holder and /threads need a"
            r" token: curl -H 'Authorization: (Bearer \w+)' http://127.0.0.1:\1/holder\n",
            said,
        )
        assert told
        assert ask(int(told[1]), "/healthz")[0] == 200
        assert ask(int(told[1]), "/threads", Authorization=told[2])[0] == 200
        assert process.communicate("", timeout=40) == ("", "")


def test_program_whose_port_is_taken_is_not_started_unless_that_is_allowed(tmp_path: Path) -> None:
    app = ["--", sys.executable, "-c", "print('ran')"]
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = str(one.getsockname()[1])
        done = fairlead("run", "--serve", port, *app, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"fairlead: 127.0.0.1:{port} cannot be served at (Address already in use):"
            " choose another address\n"
        )
        done = fairlead("run", "--serve", port, "--if-possible", *app, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, "ran\n")
        assert "going on without" in done.stderr


def test_dashboard_asks_for_metrics_that_are_served_and_keeps_to_grafanas_model() -> None:
    """The model of Grafana's documentation ("JSON model"): what a dashboard and a panel must have."""
    file = Path(__file__).parents[2] / "docs/how-to/files/grafana-gil.json"
    dashboard = json.loads(file.read_text(encoding="utf-8"))
    head = ("title", "uid", "schemaVersion", "panels", "templating", "time", "annotations")
    assert dashboard.keys() >= set(head)
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    with program("hear()") as asked:
        served = {name for name, _ in metrics(asked.port, asked.token)}
    places = set()
    for number, panel in enumerate(dashboard["panels"], 1):
        assert panel["id"] == number
        assert panel["type"] in ("timeseries", "stat")
        assert panel["gridPos"].keys() == {"h", "w", "x", "y"}
        places.add((panel["gridPos"]["x"], panel["gridPos"]["y"]))
        assert panel["title"]
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
        for target in panel["targets"]:
            asks = set(re.findall(r"fairlead_\w+", target["expr"]))
            assert asks
            assert asks <= served
            own = {"__rate_interval", "__range"}
            assert set(re.findall(r"\$(\w+)", target["expr"])) - own <= variables
            assert target["expr"].count("(") == target["expr"].count(")")
    assert len(places) == len(dashboard["panels"])

"""``fairlead record`` and ``fairlead top`` around real programs: nothing of the program changes."""

from __future__ import annotations

import errno
import json
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not
from fairlead.gil.observe.analysis import analyse
from fairlead.record.recording import Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FAIRLEAD = [sys.executable, "-c", "from fairlead.cli import main; main()"]
CONVOY = """
import threading, time, sys
stop = threading.Event()
def compute():
    while not stop.is_set():
        sum(range(500))
def answer():
    for _ in range(60):
        time.sleep(0.0005)
    stop.set()
threads = [threading.Thread(target=compute, name="cpu"), threading.Thread(target=answer, name="io")]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done", *sys.argv[1:])
"""
TELL = """
import json, os, sys
print(json.dumps([sys.argv, sys.path, __name__, __file__, dict(os.environ), sys.flags.optimize]))
"""


def fairlead(
    *args: str | Path, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [*FAIRLEAD, *map(str, args)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=100, check=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(CONVOY)
    return path


@pytest.mark.usefixtures("program")
def test_recorded_program_gives_a_recording_of_its_threads(tmp_path: Path) -> None:
    command = (sys.executable, "app.py", "--fast", "x")
    ran = fairlead("record", "-o", "out.flrec", "--", *command, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "done --fast x\n"), ran.stderr
    assert "fairlead report" in ran.stderr
    summary = analyse(Recording(tmp_path / "out.flrec"))
    assert summary.problems == ()
    assert {"cpu", "io", "MainThread"} <= {thread.name for thread in summary.threads}
    io = next(thread for thread in summary.threads if thread.name == "io")
    assert io.contended > 0
    assert io.waited_seconds > 0
    names = {thread.serial: thread.name for thread in summary.threads}
    behind_cpu = sum(
        c.seconds for c in summary.blame if names[c.waiter] == "io" and names.get(c.holder) == "cpu"
    )
    assert behind_cpu > io.waited_seconds / 2


def test_recorded_program_sees_the_world_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    command = [sys.executable, "-O", "tell.py", "-o", "--", "a b"]
    environment = {**os.environ, "PYTHONPATH": "some/where"}
    plain = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    recorded = fairlead("record", "-o", "out.flrec", "--", *command, cwd=tmp_path, env=environment)
    assert json.loads(recorded.stdout) == json.loads(plain.stdout), recorded.stderr


def test_recorded_module_runs_as_main(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text("import sys\nprint(__name__, sys.argv[1:])")
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "-m", "mod", "x", cwd=tmp_path)
    assert ran.stdout == "__main__ ['x']\n", ran.stderr
    ran = fairlead("record", "-o", "out.flrec", "-m", "mod", "x", cwd=tmp_path)
    assert ran.stdout == "__main__ ['x']\n", ran.stderr


def test_sitecustomize_of_the_user_still_runs(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.seen = __file__")
    (tmp_path / "app.py").write_text("print(seen)")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "own")}
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path, env=environment)
    assert ran.stdout.strip() == str(tmp_path / "own" / "sitecustomize.py"), ran.stderr


@pytest.mark.parametrize(
    ("code", "status"),
    [("import sys; sys.exit(7)", 7), ("raise ValueError", 1), ("import os; os.kill(os.getpid(), 9)", 137)],
)
def test_exit_status_is_passed_on(code: str, status: int, tmp_path: Path) -> None:
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "-c", code, cwd=tmp_path)
    assert ran.returncode == status, ran.stderr
    assert Recording(tmp_path / "out.flrec").meta.pid > 0


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1])
def test_signal_to_us_reaches_the_program(signum: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import select, signal, sys\n"
        f"signal.signal({int(signum)}, lambda *_: sys.exit(33))\n"
        "print('ready', flush=True)\n"
        # not pause(): it would sleep for good after a signal that came just before it
        "while True: select.select([], [], [], 0.05)\n"
    )
    command = [*FAIRLEAD, "record", "-o", "out.flrec", "--", sys.executable, "app.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as ours:
        try:
            assert ours.stdout is not None
            assert ours.stdout.readline() == "ready\n"
            ours.send_signal(signum)
            assert ours.wait(30) == 33
        finally:
            with suppress(ProcessLookupError):
                os.killpg(ours.pid, signal.SIGKILL)
    recording = Recording(tmp_path / "out.flrec")
    assert [block.type for block in recording.blocks()][-1] == 7
    assert recording.problems == ()


def test_sub_process_of_the_program_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text("import os; print([name for name in os.environ if 'FAIRLEAD' in name])")
    (tmp_path / "app.py").write_text(
        "import subprocess, sys; subprocess.run([sys.executable, 'tell.py'], check=True)"
    )
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.stdout == f"{[name for name in os.environ if 'FAIRLEAD' in name]}\n", ran.stderr
    assert "starts another Python" in ran.stderr
    assert "is not recorded: with fairlead record --children it is\n" in ran.stderr
    assert [path.name for path in tmp_path.glob("out.flrec*")] == ["out.flrec"]


@pytest.mark.parametrize(
    ("words", "stem"),
    [(["app.py"], "app"), (["-c", "print(1)"], "program"), (["-c", "pass;" * 99], "program")],
)
def test_recording_has_a_name_that_a_shell_takes(words: list[str], stem: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    ran = fairlead("record", "--", sys.executable, *words, cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    [recording] = tmp_path.glob("*.flrec")
    assert re.fullmatch(rf"{stem}-\d{{8}}-\d{{6}}.flrec", recording.name)


def test_forked_child_has_a_recording_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os, sys, threading, time\n"
        "child = os.fork()\n"
        "thread = threading.Thread(target=time.sleep, args=(0.001,), name='child' if not child else"
        " 'parent')\n"
        "thread.start(); thread.join()\n"
        "if not child:\n"
        "    end = time.monotonic() + 0.5\n"
        "    while time.monotonic() < end: pass\n"
        "    sys.exit(0)\n"
        "os.waitpid(child, 0)\n"
    )
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (child,) = tmp_path.glob("out.flrec.*")
    both = f"of 2 processes; to see them: fairlead report {tmp_path / 'out.flrec'} {child}\n"
    assert ran.stderr.endswith(both)
    recorded = {"parent": Recording(tmp_path / "out.flrec"), "child": Recording(child)}
    assert recorded["parent"].meta.parent_pid is None
    assert recorded["child"].meta.parent_pid == recorded["parent"].meta.pid
    for name, recording in recorded.items():
        summary = analyse(recording)
        assert summary.problems == ()
        assert name in {thread.name for thread in summary.threads}


@pytest.mark.parametrize(
    ("args", "says", "status"),
    [
        (["-o", "no/where.flrec", "--", sys.executable, "app.py"], "cannot be written", 1),
        (["-o", "app.py", "--", sys.executable, "app.py"], "exists and is not a recording", 1),
        (["--", "no-such-program"], "cannot be started", 2),
        (["--"], "name the program after --", 2),
        (["--", sys.executable, "-I", "app.py"], "ignores PYTHONPATH", 1),
        (["--", sys.executable, "-W", "error", "-uE", "app.py"], "ignores PYTHONPATH", 1),
        (["--", "true"], "true is no Python, nor a script of one", 1),
        (["--pid", "1", "--", sys.executable, "app.py"], "leave out the command", 2),
        (["--duration", "1s", "--", sys.executable, "app.py"], "goes with --pid", 2),
        (["--pid", "4194304"], "there is no process", 2),
        (["--threshold", "soon", "--", sys.executable, "app.py"], "is no time", 2),
    ],
)
def test_what_cannot_be_recorded_is_refused_before_the_program_starts(
    args: list[str], says: str, status: int, program: Path, tmp_path: Path
) -> None:
    ran = fairlead("record", *args, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (status, "")
    assert says in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert program.read_text() == CONVOY
    assert list(tmp_path.iterdir()) == [program]


def test_interpreter_without_fairlead_says_so_and_does_not_run_the_program(tmp_path: Path) -> None:
    bare = [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")]
    subprocess.run(bare, check=True, capture_output=True, timeout=100)
    (tmp_path / "app.py").write_text("print('ran')")
    ran = fairlead("record", "--", tmp_path / "bare/bin/python", "app.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "has no fairlead (" in ran.stderr
    assert list(tmp_path.glob("*.flrec")) == []


def test_command_that_is_no_python_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    ran = fairlead("record", "--children", "--", "true", cwd=tmp_path)
    assert ran.returncode == 1
    assert "was not recorded" in ran.stderr
    assert list(tmp_path.iterdir()) == []


LAUNCHER = """
import os, sys
before = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.abspath("agent"), before]))
os.execl(sys.executable, sys.executable, *sys.argv[1:])
"""
"""As ddtrace-run and opentelemetry-instrument: another sitecustomize first, then the program by exec."""


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("options", [[], ["--children"]])
def test_program_behind_a_launcher_has_the_file_that_was_asked_for(
    options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "launch.py").write_text(LAUNCHER)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "sitecustomize.py").write_text("print('agent')")
    command = (sys.executable, "launch.py", "app.py", "x")
    ran = fairlead("record", *options, "-o", "out.flrec", "--", *command, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "agent\ndone x\n"), ran.stderr
    assert ran.stderr.count("\n") == 1
    recording = Recording(tmp_path / "out.flrec")
    assert recording.problems == ()
    assert recording.meta.argv[1:] == ("app.py", "x")
    assert "io" in {thread.name for thread in analyse(recording).threads}
    before = Recording(tmp_path / "out.flrec.before-exec-1")
    assert before.meta.argv[1:3] == ("launch.py", "app.py")
    assert before.meta.pid == recording.meta.pid


def test_recording_goes_on_where_an_exec_fails(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("""
import os, threading
(open("no-python", "w")).write("#!/no/such/python\\n")
os.chmod("no-python", 0o755)
try:
    os.execv("no-python", ["no-python"])
except OSError:
    thread = threading.Thread(target=sum, args=(range(100),), name="after")
    thread.start()
    thread.join()
""")
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert [path.name for path in tmp_path.glob("out.flrec*")] == ["out.flrec"]
    summary = analyse(Recording(tmp_path / "out.flrec"))
    assert summary.problems == ()
    assert "after" in {thread.name for thread in summary.threads}


@pytest.mark.usefixtures("program")
def test_every_python_of_a_command_is_recorded_with_children(tmp_path: Path) -> None:
    script = f"{sys.executable} app.py 1; {sys.executable} app.py 2"
    ran = fairlead("record", "--children", "-o", "out.flrec", "--", "sh", "-c", script, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "done 1\ndone 2\n"), ran.stderr
    files = [tmp_path / "out.flrec", *tmp_path.glob("out.flrec.*")]
    assert [Recording(file).meta.argv[-1] for file in files] == ["1", "2"]


@pytest.mark.usefixtures("program")
def test_recording_into_a_pipe_is_refused_and_the_pipe_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    ran = fairlead("record", "-o", "pipe", "--", sys.executable, "app.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "pipe is a device or a pipe" in ran.stderr
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("columns", "last"), [(60, ("held", "waited", "longest wait")), (120, ("turns/s", "waits/s", "forced/s"))]
)
def test_top_in_a_terminal_shows_the_columns_that_fit(
    program: Path, tmp_path: Path, columns: int, last: tuple[str, ...]
) -> None:
    program.write_text(CONVOY)
    terminal, inner = pty.openpty()
    termios.tcsetwinsize(inner, (30, columns))
    command = [*FAIRLEAD, "top", "--every", "100ms", "--", sys.executable, "app.py"]
    environment = {**os.environ, "TERM": "xterm"}
    for name in ("COLUMNS", "NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        environment.pop(name, None)
    process = subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdin=inner, stdout=inner, stderr=inner
    )
    os.close(inner)
    shown = b""
    while chunk := read_terminal(terminal):
        shown += chunk
    os.close(terminal)
    assert process.wait(timeout=100) == 0, shown
    assert all(heading.encode() in shown for heading in last)
    assert (b"forced/s" in shown) == ("forced/s" in last)
    assert "…".encode() not in shown


def read_terminal(terminal: int) -> bytes:
    """What comes next; nothing when everyone has hung up."""
    try:
        return os.read(terminal, 65536)
    except OSError as error:
        if error.errno == errno.EIO:
            return b""
        raise


def test_top_without_a_terminal_prints_snapshots_and_passes_the_status_on(
    program: Path, tmp_path: Path
) -> None:
    program.write_text(CONVOY + "\nsys.exit(5)")
    ran = fairlead("top", "--every", "100ms", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 5, ran.stderr
    assert "GIL held" in ran.stdout
    assert "cpu" in ran.stdout
    assert "done" in ran.stdout
    assert list(tmp_path.iterdir()) == [program]


FORKS = """
import os, sys, threading, time
ends = os.pipe()
child = os.fork()
name = "parent" if child else "child"
stop = threading.Event()
threading.Thread(target=stop.wait, name=f"{name}-thread").start()
if not child:
    os.read(ends[0], 1)
    stop.set()
    sys.exit()
os.close(ends[0])
print("forked", os.getpid(), child, flush=True)
sys.stdin.readline()
os.write(ends[1], b"x")
os.waitpid(child, 0)
stop.set()
"""


def test_top_has_a_section_for_each_process_of_a_program_that_forks(program: Path, tmp_path: Path) -> None:
    program.write_text(FORKS)
    command = [*FAIRLEAD, "top", "--every", "50ms", "--", sys.executable, "app.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        parent, child = next(line for line in lines if line.startswith("forked")).split()[1:]
        assert any(line.startswith(f"pid {child}: ") for line in lines)
        assert any("child-thread" in line or "MainThread" in line for line in lines)
        assert any(line.startswith(f"pid {parent}: ") for line in lines)
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.read()
    assert process.returncode == 0


IDLE = """
import threading, time
stop = time.monotonic() + 40
def compute():
    while time.monotonic() < stop:
        sum(range(500))
threading.Thread(target=compute, name="cpu", daemon=True).start()
print("ready", flush=True)
while time.monotonic() < stop:
    time.sleep(0.001)
"""


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "idle.py").write_text(IDLE)
    command = [sys.executable, "idle.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_running_process_is_recorded_for_a_while_and_goes_on(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    ran = fairlead("record", "--pid", str(running.pid), "--duration", "1s", "-o", "out.flrec", cwd=tmp_path)
    if "cannot be attached to" in ran.stderr:
        pytest.skip(ran.stderr)
    assert ran.returncode == 0, ran.stderr
    assert running.poll() is None
    recording = Recording(tmp_path / "out.flrec")
    summary = analyse(recording)
    assert recording.problems == ()
    assert summary.wall_seconds > 0.9
    assert "cpu" in {thread.name for thread in summary.threads}


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_top_watches_a_running_process_until_ctrl_c_and_that_goes_on(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    command = [*FAIRLEAD, "top", "--every", "100ms", "--pid", str(running.pid)]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        for line in watching.stdout:
            if "GIL held" in line:
                break
        else:
            why = watching.stderr.read()
            if "cannot be attached to" in why:
                pytest.skip(why)
            pytest.fail(f"it ended: {why}")
        watching.send_signal(signal.SIGINT)
        watching.stdout.read()
        assert watching.wait() == 0
    assert running.poll() is None


WORKERS = """
import os, sys, threading, time
for number in range(2):
    child = os.fork()
    if not child:
        threading.Thread(target=threading.Event().wait, name=f"worker-{number}", daemon=True).start()
        break
    print(child, flush=True)
parent = os.getppid()
while child or os.getppid() == parent:
    time.sleep(0.001)
os._exit(0)
"""


@pytest.mark.skipif(sys.version_info < (3, 14), reason="attaching takes sys.remote_exec of Python 3.14")
def test_top_of_a_process_watches_the_workers_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(WORKERS)
    command = [sys.executable, "server.py"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        workers = {server.stdout.readline().strip() for _ in range(2)}
        command = [*FAIRLEAD, "top", "--every", "50ms", "--pid", str(server.pid)]
        with subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as watching:
            assert watching.stdout is not None
            assert watching.stderr is not None
            awaited = {f"pid {pid}: " for pid in (*workers, server.pid)}
            for line in watching.stdout:
                awaited -= {start for start in awaited if line.startswith(start)}
                if not awaited:
                    watching.send_signal(signal.SIGINT)
                    break
            watching.stdout.read()
            why = watching.stderr.read()
        ended = server.poll()
        server.kill()
    if "cannot be attached to" in why:
        pytest.skip(why)
    assert (watching.returncode, why, awaited, ended) == (0, "", set(), None)


def test_top_of_a_process_takes_no_command(tmp_path: Path) -> None:
    ran = fairlead("top", "--pid", "1", "--", "app.py", cwd=tmp_path)
    assert ran.returncode == 2
    assert "leave out the command" in ran.stderr


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python can be attached to")
def test_running_process_of_an_older_python_says_what_to_do_instead(
    running: subprocess.Popen[str], tmp_path: Path
) -> None:
    for command in ("record", "top"):
        ran = fairlead(command, "--pid", str(running.pid), cwd=tmp_path)
        assert ran.returncode == 1
        assert "3.14 and later can" in ran.stderr
        assert "fairlead record -- COMMAND" in ran.stderr
    assert list(tmp_path.glob("*.flrec")) == []

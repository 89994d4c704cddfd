"""``fairlead record`` around real programs: nothing of the program changes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from commands import CONVOY, FAIRLEAD, fairlead

from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.record.recording import Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
TELL = """
import json, os, sys
print(json.dumps([sys.argv, sys.path, __name__, __file__, dict(os.environ), sys.flags.optimize]))
"""


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
        (["--threshold", "soon", "--", sys.executable, "app.py"], "is not a time", 2),
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

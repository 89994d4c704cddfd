"""``fairlead record`` around real programs: what is in which file. What it shares with ``fairlead run`` is in
test_run_program.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import CONVOY, FAIRLEAD, environment, fairlead

from fairlead.errors import FairleadError
from fairlead.gil.analysis.analyse import analyse
from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))


def test_recorded_program_gives_a_recording_of_its_threads(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(CONVOY)
    ran = fairlead("record", "--", sys.executable, "app.py", "--fast", "x", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "done --fast x\n"), ran.stderr
    [path] = tmp_path.glob("app-*.flrec")
    assert ran.stderr.endswith(f"to see it: fairlead report {path}\n")
    summary = analyse(Recording(path))
    assert summary.problems == ()
    assert {"cpu", "io", "MainThread"} <= {thread.name for thread in summary.threads}
    io = next(thread for thread in summary.threads if thread.name == "io")
    assert io.contended > 0
    names = {thread.serial: thread.name for thread in summary.threads}
    behind = {(names[cell.waiter], names.get(cell.holder)): cell.seconds for cell in summary.blame}
    assert behind["io", "cpu"] > 0
    assert sum(s for (waiter, _), s in behind.items() if waiter == "io") == pytest.approx(io.waited_seconds)


def test_recording_of_a_started_program_ends_after_its_duration_and_the_program_goes_on(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.py").write_text("""
import pathlib, time
while not pathlib.Path("state").read_text():
    time.sleep(.001)
print("done")
""")
    (tmp_path / "state").write_text("")
    command = [*FAIRLEAD, "record", "--duration", "200ms", "-o", "out.flrec", "--", sys.executable, "app.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as ran:
        while not ended(tmp_path / "out.flrec"):
            assert ran.poll() is None
        (tmp_path / "state").write_text("over")
        printed, error = ran.communicate(timeout=30)
    assert (ran.returncode, printed) == (0, "done\n"), error
    assert analyse(Recording(tmp_path / "out.flrec")).wall_seconds >= 0.2


def ended(path: Path) -> bool:
    """Whether its last block is there."""
    try:
        return any(block.type == BlockType.END for block in Recording(path).blocks())
    except (OSError, FairleadError):  # it is not there yet
        return False


def test_sub_process_of_the_program_is_not_recorded_and_a_program_that_is_killed_is(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text("import os; print([name for name in os.environ if 'FAIRLEAD' in name])")
    (tmp_path / "app.py").write_text(
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, 'tell.py'], check=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (
        -signal.SIGKILL,
        f"{[name for name in os.environ if name.startswith(('FAIRLEAD_TESTS', 'FAIRLEAD_UNTESTED'))]}\n",
    ), ran.stderr
    assert "starts another Python" in ran.stderr
    assert "is not recorded: with fairlead record --children it is\n" in ran.stderr
    assert [path.name for path in tmp_path.glob("out.flrec*")] == ["out.flrec"]
    assert Recording(tmp_path / "out.flrec").meta.pid > 0


@pytest.mark.parametrize("verb", ["record", "top"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL])
def test_death_of_the_program_by_a_signal_is_handed_on_and_the_recording_is_complete_before(
    verb: str, number: int, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(f"import os; os.kill(os.getpid(), {number:d}); os.read(0, 1)\n")
    options = ["-o", "out.flrec"] if verb == "record" else []
    ran = fairlead(verb, *options, "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == -number, ran.stderr
    if verb == "record":
        assert ran.stderr.endswith(f"; to see it: fairlead report {tmp_path / 'out.flrec'}\n")
        blocks = [block.type for block in Recording(tmp_path / "out.flrec").blocks()]
        assert (blocks[-1] == BlockType.END) == (number == signal.SIGINT)  # which Python ends in order


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_program_that_a_signal_to_us_ends_is_seen_to_have_died_by_it(number: int, tmp_path: Path) -> None:
    code = "import os; os.write(1, b'ready\\n'); os.read(0, 1)"
    command = [*FAIRLEAD, "record", "-o", "out.flrec", "--", sys.executable, "-c", code]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=tmp_path, env=environment(), **pipes) as ours:
        assert ours.stdout is not None
        assert ours.stdout.readline() == b"ready\n"
        ours.send_signal(number)
        assert ours.wait(40) == -number
        assert ours.stderr is not None
        assert ours.stderr.read().endswith(b"out.flrec\n")


def test_forked_child_has_a_recording_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text("""
import os, threading
child = os.fork()
thread = threading.Thread(target=int, name="parent" if child else "child")
thread.start()
thread.join()
if child:
    os.waitpid(child, 0)
""")
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (child,) = tmp_path.glob("out.flrec.*")
    both = f"of 2 processes; to see it: fairlead report {tmp_path / 'out.flrec'}\n"
    assert ran.stderr.endswith(both)
    recorded = {"parent": Recording(tmp_path / "out.flrec"), "child": Recording(child)}
    assert recorded["parent"].meta.parent_pid is None
    assert recorded["child"].meta.parent_pid == recorded["parent"].meta.pid
    for name, recording in recorded.items():
        summary = analyse(recording)
        assert summary.problems == ()
        assert name in {thread.name for thread in summary.threads}


@pytest.mark.parametrize(("numbers", "complete"), [(256, True), (1024, False)])
def test_program_that_closes_what_it_has_not_opened_has_its_own_files_to_itself(
    tmp_path: Path, numbers: int, complete: bool
) -> None:
    """As daemons do at their start. With the lower numbers the recording goes on; with all, it says that it
    ended."""
    (tmp_path / "app.py").write_text(f"""
import os, resource, threading
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2048), hard))
os.closerange(3, {numbers})
files = [os.open(str(number), os.O_RDWR | os.O_CREAT) for number in range(600)]
for file in files: os.write(file, b"own")
for _ in range(3):
    thread = threading.Thread(target=sum, args=(range(1000),))
    thread.start()
    thread.join()
if os.fork() == 0:
    for file in files: os.fstat(file)
    os._exit(0)
assert os.wait()[1] == 0
""")
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert {(tmp_path / str(number)).read_bytes() for number in range(600)} == {b"own"}
    lost = f"fairlead: {tmp_path / 'out.flrec'} is not complete: the program has closed it;"
    assert ran.stderr.count(lost) == (not complete)
    if complete:
        assert analyse(Recording(tmp_path / "out.flrec")).problems == ()


@pytest.mark.parametrize("limit", [0, 100])
def test_limit_of_the_size_of_files_ends_the_recording_and_not_the_program(
    tmp_path: Path, limit: int
) -> None:
    """The kernel raises SIGXFSZ for what is beyond it, in the program and in its children."""
    (tmp_path / "app.py").write_text(f"""
import os, resource, signal, threading
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
def work():
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
work()
if os.fork() == 0:
    work()
    os._exit(3)
raise SystemExit(os.waitstatus_to_exitcode(os.wait()[1]) + 1)
""")
    ran = fairlead("record", "-o", "out.flrec", "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.returncode == 4, ran.stderr
    assert "out.flrec is not complete: File too large; what was written can be read" in ran.stderr


def test_command_that_is_no_python_says_that_nothing_was_recorded(tmp_path: Path) -> None:
    ran = fairlead("record", "--children", "--", "true", cwd=tmp_path)
    assert ran.returncode == 1
    assert "was not recorded" in ran.stderr
    assert list(tmp_path.iterdir()) == []


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

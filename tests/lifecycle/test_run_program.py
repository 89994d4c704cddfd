"""``fairlead run`` and ``record`` around real programs: nothing of them changes but what was asked for."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from commands import FAIRLEAD, LOOK, agent, environment, fairlead, launcher

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import BlockType, Recording

FREE_THREADED = "t" in sys.abiflags
scheduled = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
VERBS = {"run": ["run"], "record": ["record", "-o", "out.flrec", "--policy", "interactive"]}
TELL = """
import builtins, json, os, signal, sys
blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
custom = getattr(sys.modules.get("sitecustomize"), "__file__", None), getattr(builtins, "seen", None)
print(json.dumps([sys.argv, sys.path, __name__, __file__, dict(os.environ), sys.flags.optimize, blocked,
                  custom, sys.stdin.read(), os.listdir("/proc/self/fd")]))
sys.exit(7)
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(LOOK + "print(fairlead.gil.scheduler().cpu_share)\n")
    return path


@scheduled
@pytest.mark.parametrize(
    ("options", "variables", "says"),
    [
        (["run", "--policy", "stock"], {"FAIRLEAD_GIL": "interactive"}, "stock\n0.05\n"),
        (["run"], {"FAIRLEAD_GIL_CPU_SHARE": "0.7"}, "interactive\n0.7\n"),
        ([*VERBS["record"], "--cpu-share", ".4"], {}, "interactive\n0.4\n"),
    ],
)
def test_program_is_scheduled_as_the_options_and_the_environment_say(
    options: list[str], variables: dict[str, str], says: str, program: Path
) -> None:
    ran = fairlead(*options, "--", sys.executable, program, cwd=program.parent, **variables)
    assert (ran.returncode, ran.stdout) == (0, says)
    assert ran.stderr.count("\n") == ("record" in options)


@pytest.mark.parametrize("policy", ["stock", *["interactive"] * (not FREE_THREADED)])
def test_timer_slack_is_set_before_the_first_line_with_any_policy_and_stock_without_a_gil(
    policy: str, program: Path
) -> None:
    program.write_text("import fairlead.machine; print(fairlead.machine.timer_slack_ns())")
    options = ["--policy", policy, "--timer-slack", "2us"]
    ran = fairlead("run", *options, "--", sys.executable, program, cwd=program.parent)
    assert (ran.returncode, ran.stdout) == (0, "2000\n")


@scheduled
@pytest.mark.parametrize(
    ("verb", "variables", "launched"),
    [("run", {"PYTHONPATH": "own"}, False), ("run", {}, True), ("record", {"PYTHONPATH": ""}, False)],
)
def test_program_sees_the_world_as_it_is_and_its_end_is_ours(
    verb: str, variables: dict[str, str], launched: bool, tmp_path: Path
) -> None:
    """Also the user's sitecustomize, and the environment that a launcher has made."""
    (tmp_path / "tell.py").write_text(TELL)
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.seen = __file__")
    before = launcher(tmp_path)[:3] if launched else [sys.executable, "-O", "-W", "default"]
    command = [*before, "tell.py", "--policy", "-o", "--", "a b"]
    plain = subprocess.run(
        command, cwd=tmp_path, env=environment(**variables), input="words", capture_output=True, text=True
    )
    ran = fairlead(*VERBS[verb], "--", *command, cwd=tmp_path, text="words", **variables)
    assert ran.returncode == plain.returncode == 7
    (*head, told), (*expected_head, expected) = (one.stdout.splitlines() for one in (ran, plain))
    assert head == expected_head == ["agent"] * launched
    seen, wanted = json.loads(told), json.loads(expected)
    if verb == "record":  # whose file is open
        assert len(seen.pop()) == len(wanted.pop()) + 1
    assert seen == wanted


@scheduled
@pytest.mark.parametrize(
    ("verb", "command"),
    [
        ("run", ["app.py", "x"]),
        ("record", ["-m", "app", "x"]),
        ("run", ["serve", "x"]),
        ("record", ["env", "-i", sys.executable, "app.py", "x"]),
    ],
)
def test_program_is_scheduled_however_it_is_named(verb: str, command: list[str], program: Path) -> None:
    """Without its interpreter, as a script of one that is on the path, and behind env."""
    script = program.with_name("serve")
    script.write_text(f"#!/usr/bin/env -S {sys.executable} -u\n{program.read_text()}")
    script.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    ran = fairlead(*VERBS[verb], "--", *command, cwd=program.parent, PATH=path)
    assert (ran.returncode, ran.stdout) == (0, "interactive x\n0.05\n"), ran.stderr


SIGNALLED = """
import os, select, signal, sys
for number in (signal.SIGINT, signal.SIGUSR1):
    signal.signal(number, lambda number, _: os.write(1, b"%d\\n" % number))
signal.signal(signal.SIGTERM, lambda *_: sys.exit(33))
print(os.getpid(), os.getppid(), flush=True)
# not pause(): it would sleep for good after a signal that came just before it
while True: select.select([], [], [], 0.05)
"""


@scheduled
@pytest.mark.parametrize("verb", VERBS)
def test_signals_are_the_programs_and_run_leaves_no_process_in_between(verb: str, tmp_path: Path) -> None:
    command = [*FAIRLEAD, *VERBS[verb], "--", sys.executable, "-c", SIGNALLED]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as ours:
        try:
            assert ours.stdout is not None
            pid, parent = map(int, ours.stdout.readline().split())
            assert (pid, parent)[verb == "record"] == ours.pid
            assert verb == "record" or parent == os.getpid()
            for number in (signal.SIGINT, signal.SIGUSR1):
                ours.send_signal(number)
                assert ours.stdout.readline() == f"{number:d}\n"
            ours.send_signal(signal.SIGTERM)
            assert ours.wait(30) == 33
        finally:
            with suppress(ProcessLookupError):
                os.killpg(ours.pid, signal.SIGKILL)
    if verb == "record":
        recording = Recording(tmp_path / "out.flrec")
        assert [block.type for block in recording.blocks()][-1] == BlockType.END
        assert recording.problems == ()


FAMILY = """
import multiprocessing, os, subprocess, sys
import fairlead.gil

def policy(queue):
    queue.put(fairlead.gil.scheduler().policy)

if __name__ == "__main__":
    look = "import fairlead.gil; print(fairlead.gil.scheduler().policy)"
    print("sub-process", subprocess.check_output([sys.executable, "-c", look], text=True).strip())
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        queue = context.SimpleQueue()
        child = context.Process(target=policy, args=(queue,))
        child.start()
        print(method, queue.get())
        child.join()
"""


@scheduled
@pytest.mark.parametrize(("options", "others"), [([], "stock"), (["--children"], "interactive")])
def test_forked_children_stay_scheduled_and_other_processes_are_when_asked_for(
    options: list[str], others: str, tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(FAMILY)
    ran = fairlead("run", *options, "--", sys.executable, "app.py", cwd=tmp_path)
    assert ran.stdout.splitlines() == [
        f"sub-process {others}",
        "fork interactive",
        f"spawn {others}",
        f"forkserver {others}",
    ], ran.stderr


GREENLETS = """
import sys, threading
import fairlead.gil, greenlet

def count(home, turns):
    counted = 0
    for _ in range(turns):
        counted += home.switch(counted)
    return counted

totals = []

def body():
    for _ in range(50):
        here = greenlet.getcurrent()
        others = [greenlet.greenlet(count) for _ in range(4)]
        for other in others:
            other.switch(here, 20)
        for _ in range(19):
            for other in others:
                assert not other.dead
                other.switch(1)
        totals.append(sum(other.switch(1) for other in others))

threads = [threading.Thread(target=body) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
now = fairlead.gil.scheduler()
print(now.policy, now.watchdog_trips, now.waiting, totals == [80] * 200)
"""


@scheduled
def test_greenlets_that_switch_in_several_threads_are_scheduled(tmp_path: Path) -> None:
    pytest.importorskip("greenlet", reason="greenlet is not installed (pip install --group guests)")
    ran = fairlead("run", "--", sys.executable, "-c", GREENLETS, cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interactive 0 0 True\n", "")


@scheduled
def test_further_interpreters_of_a_process_import_nothing_of_ours(tmp_path: Path) -> None:
    """``--children`` reaches them too, as they run sitecustomize."""
    (tmp_path / "app.py").write_text("""
try:
    import _interpreters as interpreters
    made = interpreters.create("legacy")
except ImportError:
    import _xxsubinterpreters as interpreters
    made = interpreters.create(isolated=False)
interpreters.run_string(made, "import sys; print('fairlead' in sys.modules)")
interpreters.destroy(made)
""")
    ran = fairlead("run", "--children", "--", sys.executable, "app.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "False\n", "")


@scheduled
@pytest.mark.parametrize(
    ("verb", "options"), [("run", []), ("run", ["--children"]), ("record", ["--children"])]
)
def test_launchers_that_become_each_other_leave_the_program_scheduled_and_recorded(
    verb: str, options: list[str], tmp_path: Path
) -> None:
    (tmp_path / "app.py").write_text(LOOK)
    command = [*launcher(tmp_path), "app.py", "x"]
    ran = fairlead(*VERBS[verb], *options, "--", *command, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "agent\n" * 3 + "interactive x\n"), ran.stderr
    assert ran.stderr.count("\n") == (verb == "record")
    if verb == "record":
        recording = Recording(tmp_path / "out.flrec")
        assert recording.problems == ()
        assert recording.meta.argv[1:] == ("app.py", "x")
        for number in range(1, 5):
            before = Recording(tmp_path / f"out.flrec.before-exec-{number}").meta
            assert before.argv[1:] == tuple(command[2 * number - 1 :])
            assert before.pid == recording.meta.pid


UNSCHEDULED = """
import os, subprocess, sys
words = [sys.executable, "app.py"]
subprocess.run(["echo", "echo"])
os.spawnv(os.P_WAIT, words[0], words)  # a fork, and then an exec: the same process, as it was
os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)
subprocess.run(words)
os.spawnv(os.P_WAIT, words[0], [words[0], "-I", "app.py"])
os.spawnvp(os.P_WAIT, "echo", ["echo", "echo"])
os.execvp("echo", ["echo", "echo"])
"""


@scheduled
def test_python_that_is_started_unscheduled_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOOK)
    ran = fairlead("run", "--", sys.executable, "-c", UNSCHEDULED, cwd=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.split() == ["echo", "interactive", *["stock"] * 3, "echo", "echo"], ran.stderr
    other, isolated, echo = ran.stderr.splitlines()
    not_scheduled = f"starts another Python ({sys.executable}), which is not scheduled"
    assert other.endswith(f"{not_scheduled}: with fairlead run --children it is")
    assert "is not scheduled from here on: " in isolated
    assert "-I ignores PYTHONPATH" in isolated
    assert echo.endswith(f"is not scheduled from here on: {shutil.which('echo')} is no Python")


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has no fairlead."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return place / "bin" / "python"


@pytest.mark.parametrize("verb", ["run", pytest.param("record", marks=scheduled)])
def test_interpreter_without_fairlead_is_named_and_the_program_does_not_run(
    verb: str, bare: Path, tmp_path: Path
) -> None:
    ran = fairlead(verb, "--", bare, "-c", "print('ran')", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"{bare} has no fairlead (" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_program_that_cannot_be_scheduled_goes_on_if_that_is_enough(bare: Path, tmp_path: Path) -> None:
    for words, why in ([str(bare)], "has no fairlead"), ([sys.executable, "-E"], "-E ignores PYTHONPATH"):
        code = "import os, sys; print('ran', 'FAIRLEAD_START' in os.environ); sys.exit(3)"
        ran = fairlead("run", "--if-possible", "--", *words, "-c", code, cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (3, "ran False\n")
        assert why in ran.stderr
        assert ran.stderr.endswith("; going on without\n")
        assert ran.stderr.count("\n") == 1


@pytest.mark.skipif(not FREE_THREADED, reason="this build has a GIL")
@pytest.mark.parametrize(
    ("option", "ends"), [([], (1, "", "")), (["--if-possible"], (0, "ran\n", "; going on without"))]
)
def test_free_threaded_program_is_refused_in_one_line_that_says_what_to_do(
    option: list[str], ends: tuple[int, str, str], tmp_path: Path
) -> None:
    ran = fairlead("run", *option, "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    status, says, goes_on = ends
    assert (ran.returncode, ran.stdout) == (status, says)
    assert ran.stderr == (
        f"fairlead: {sys.executable} is a free-threaded build and has no GIL to schedule: run the program"
        f" without fairlead, or with fairlead run --if-possible{goes_on}\n"
    )


@scheduled
def test_recording_of_a_run_says_how_to_have_both(program: Path) -> None:
    inner = [*FAIRLEAD, "run", "--", sys.executable, "app.py"]
    ran = fairlead("record", "-o", "out.flrec", "--", *inner, cwd=program.parent)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "fairlead record --policy interactive -- COMMAND" in ran.stderr


OTHERS = """
import os, subprocess, sys
python = [sys.executable, "app.py", "x"]
other = {"PYTHONPATH": os.path.abspath("agent")}
other_name = os.path.join(os.path.dirname(sys.executable), "no-such-program")
def spawn(words, given, file=None):
    os.waitpid(os.posix_spawnp(file or words[0], words, given), 0)
"""
STARTS = {
    "subprocess.run(python, env={})": "interactive",
    "spawn(python, {})": "interactive",
    "subprocess.run(python, env=other)": "agent interactive",
    "spawn(python, other)": "agent interactive",
    "subprocess.run(['./set', 'x'])": "agent interactive",
    "subprocess.run(['./clear', 'x'])": "interactive",
    "subprocess.run(['env', 'PYTHONPATH=agent', *python])": "agent interactive",
    "spawn(['env', 'PYTHONPATH=agent', *python], os.environ)": "agent interactive",
    "subprocess.run(['env', '-i', *python])": "interactive",
    "spawn(['env', '-i', *python], os.environ)": "interactive",
    "subprocess.run(['nice', *python])": "interactive",
    "subprocess.run(['sh', '-c', 'exec $0 \"$@\"', *python])": "interactive",
    "subprocess.run([python[0], '-I', *python[1:]])": "stock",
    "subprocess.run(['./there', 'x'], cwd='elsewhere', env={})": "interactive",
    "subprocess.run(['there', 'x'], cwd='elsewhere', env={'PATH': '/no-such:.'})": "interactive",
    "subprocess.run([other_name, *python[1:]], executable=python[0], env={})": "interactive",
    "subprocess.run(['/no-such', 'y', 'x'], executable='./there', cwd=b'elsewhere', env={})": "interactive y",
    "spawn([other_name, *python[1:]], {}, python[0])": "interactive",
}
"""With an environment of their own, by a script's first line, behind env, behind programs that are no Python,
in another directory, by a file that the first word does not name; and what is said by the sitecustomize of
another library and by the program that is started."""


@scheduled
@pytest.mark.parametrize("verb", VERBS)
def test_children_are_scheduled_and_recorded_whatever_starts_them(verb: str, tmp_path: Path) -> None:
    agent(tmp_path)
    (tmp_path / "app.py").write_text(LOOK)
    for name, words in {"set": "PYTHONPATH=agent", "clear": "-i"}.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env -S {words} {sys.executable} -u\n{LOOK}")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "elsewhere").mkdir()
    there = tmp_path / "elsewhere" / "there"
    there.write_text(f"#!{sys.executable}\n{LOOK}")
    there.chmod(0o755)
    starts = STARTS if verb == "run" else dict(list(STARTS.items())[::2])
    code = OTHERS + "\n".join(starts)
    ran = fairlead(*VERBS[verb], "--children", "--", sys.executable, "-c", code, cwd=tmp_path)
    says = [
        word for line in starts.values() for word in f"{line} x".replace("agent ", "agent\n").splitlines()
    ]
    assert (ran.returncode, ran.stdout.splitlines()) == (0, says), ran.stderr
    assert ran.stderr.count("\n") == (verb == "record")
    if verb == "record":
        recorded = [Recording(path) for path in tmp_path.glob("out.flrec*")]
        assert len(recorded) == 1 + sum("interactive" in line for line in says)
        assert {one.problems for one in recorded} == {()}


@scheduled
@pytest.mark.parametrize("verb", VERBS)
def test_every_python_of_another_program_is_scheduled_and_recorded(verb: str, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(LOOK)
    script = f"{sys.executable} app.py 1; exec {sys.executable} app.py 2"
    ran = fairlead(*VERBS[verb], "--children", "--", "sh", "-c", script, cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "interactive 1\ninteractive 2\n"), ran.stderr
    if verb == "record":
        files = [tmp_path / "out.flrec", *tmp_path.glob("out.flrec.*")]
        assert [Recording(file).meta.argv[-1] for file in files] == ["1", "2"]

"""``fairlead run`` around real programs: they are scheduled, and nothing else of them changes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.gil.observe.access import why_not
from fairlead.record.recording import Recording

FREE_THREADED = "t" in sys.abiflags
scheduled = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
FAIRLEAD = [sys.executable, "-c", "from fairlead.cli import main; main()"]
LOOK = "import fairlead.gil, os; print(fairlead.gil.scheduler().policy, fairlead.gil.scheduler().cpu_share)\n"
TELL = """
import json, os, signal, sys
blocked = sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ()))
print(json.dumps([sys.argv, sys.path, __name__, __file__, dict(os.environ), sys.flags.optimize, blocked,
                  "sitecustomize" in sys.modules, sys.stdin.read(), os.listdir("/proc/self/fd")]))
"""


def environment(**variables: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k == "FAIRLEAD_UNTESTED" or not k.startswith("FAIRLEAD")}
    return kept | variables


def fairlead(
    *args: str | Path, cwd: Path, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [*FAIRLEAD, *map(str, args)]
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**variables),
        input=text,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(LOOK)
    return path


@scheduled
@pytest.mark.parametrize(
    ("options", "variables", "says"),
    [
        (["--policy", "stock"], {"FAIRLEAD_GIL": "interactive"}, "stock 0.05\n"),
        (["--policy", "stock"], {}, "stock 0.05\n"),
        ([], {"FAIRLEAD_GIL_CPU_SHARE": "0.7"}, "interactive 0.7\n"),
    ],
)
def test_program_is_scheduled_as_the_options_and_the_environment_say(
    options: list[str], variables: dict[str, str], says: str, program: Path
) -> None:
    ran = fairlead("run", *options, "--", sys.executable, program, cwd=program.parent, **variables)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, says, "")


@pytest.mark.parametrize("policy", ["stock", "interactive"])
def test_timer_slack_is_set_before_the_first_line_with_any_policy_and_without_a_gil(
    policy: str, program: Path
) -> None:
    program.write_text("import fairlead.machine; print(fairlead.machine.timer_slack_ns())")
    options = ["--policy", policy, "--timer-slack", "2us"]
    ran = fairlead("run", *options, "--", sys.executable, program, cwd=program.parent)
    assert (ran.returncode, ran.stdout) == (0, "2000\n")


@scheduled
@pytest.mark.parametrize("command", [["app.py", "x"], ["-m", "app", "x"]])
def test_program_without_an_interpreter_is_run_by_ours(command: list[str], program: Path) -> None:
    program.write_text(LOOK + "import sys; print(sys.argv[1:])")
    ran = fairlead("run", "--", *command, cwd=program.parent)
    assert ran.stdout == "interactive 0.05\n['x']\n", ran.stderr


@scheduled
@pytest.mark.parametrize("variables", [{"PYTHONPATH": "some/where"}, {"PYTHONPATH": ""}, {}])
def test_scheduled_program_sees_the_world_as_it_is(variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    command = [sys.executable, "-O", "-W", "default", "tell.py", "--policy", "--", "a b"]
    plain = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(**variables),
        input="words",
        capture_output=True,
        text=True,
        check=True,
    )
    ran = fairlead("run", "--", *command, cwd=tmp_path, text="words", **variables)
    assert json.loads(ran.stdout) == json.loads(plain.stdout), ran.stderr


@scheduled
def test_sitecustomize_of_the_user_runs_and_stays(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("import builtins; builtins.seen = __file__")
    code = "import sitecustomize; print(seen == sitecustomize.__file__, seen)"
    ran = fairlead("run", "--", sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "own"))
    assert ran.stdout == f"True {tmp_path / 'own' / 'sitecustomize.py'}\n", ran.stderr


@scheduled
@pytest.mark.parametrize(
    ("code", "status"),
    [("import sys; sys.exit(7)", 7), ("raise ValueError", 1), ("import os; os.kill(os.getpid(), 9)", -9)],
)
def test_end_of_the_program_is_ours(code: str, status: int, tmp_path: Path) -> None:
    assert fairlead("run", "--", sys.executable, "-c", code, cwd=tmp_path).returncode == status


@scheduled
@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_process_is_the_programs_own_and_has_its_signals(signum: signal.Signals, tmp_path: Path) -> None:
    (tmp_path / "app.py").write_text(
        "import os, select, signal, sys\n"
        f"before = signal.signal({int(signum)}, lambda *_: sys.exit(33))\n"
        "print(os.getpid(), os.getppid(), flush=True)\n"
        "while True: select.select([], [], [], 0.05)\n"
    )
    command = [*FAIRLEAD, "run", "--", sys.executable, "app.py"]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == f"{process.pid} {os.getpid()}\n"
            process.send_signal(signum)
            assert process.wait(30) == 33
        finally:
            process.kill()


@scheduled
def test_console_script_is_scheduled(tmp_path: Path) -> None:
    script = tmp_path / "serve"
    script.write_text(f"#!/usr/bin/env -S {sys.executable} -u\n{LOOK}")
    script.chmod(0o755)
    ran = fairlead("run", "--", "serve", cwd=tmp_path, PATH=f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert (ran.returncode, ran.stdout) == (0, "interactive 0.05\n"), ran.stderr


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
def test_children_of_a_command_that_is_no_python_are_scheduled_when_asked_for(program: Path) -> None:
    command = [
        "sh",
        "-c",
        f"{sys.executable} app.py; {sys.executable} -I app.py; exec {sys.executable} app.py",
    ]
    ran = fairlead("run", "--children", "--", *command, cwd=program.parent)
    assert ran.stdout == "interactive 0.05\nstock 0.05\ninteractive 0.05\n", ran.stderr


LAUNCHER = """
import os, sys
before = os.environ.get("PYTHONPATH")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.abspath("agent"), before]))
{0}(sys.executable, [sys.executable, *sys.argv[1:]]{1})
"""


@scheduled
@pytest.mark.parametrize("options", [[], ["--children"]])
@pytest.mark.parametrize(
    "how", [("os.execv", ""), ("os.execve", ", os.environ"), ("os.execvp", ""), ("os.execve", ", {}")]
)
def test_launcher_that_becomes_the_program_leaves_it_scheduled(
    how: tuple[str, str], options: list[str], program: Path
) -> None:
    (program.parent / "launch.py").write_text(LAUNCHER.format(*how))
    (program.parent / "agent").mkdir()
    (program.parent / "agent" / "sitecustomize.py").write_text("print('agent')")
    ran = fairlead("run", *options, "--", sys.executable, "launch.py", "app.py", cwd=program.parent)
    agent = "" if "{}" in how[1] else "agent\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{agent}interactive 0.05\n", "")


@scheduled
def test_environment_behind_a_launcher_is_what_the_launcher_made_of_it(tmp_path: Path) -> None:
    (tmp_path / "launch.py").write_text(LAUNCHER.format("os.execv", ""))
    (tmp_path / "tell.py").write_text(TELL)
    command = [sys.executable, "launch.py", "tell.py", "x"]
    plain = subprocess.run(
        command, cwd=tmp_path, env=environment(), input="words", capture_output=True, text=True, check=True
    )
    ran = fairlead("run", "--", *command, cwd=tmp_path, text="words")
    assert json.loads(ran.stdout) == json.loads(plain.stdout), ran.stderr


@scheduled
@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("subprocess.run(words)", "is not scheduled: with fairlead run --children it is"),
        ("os.spawnv(os.P_WAIT, words[0], words)", None),
        ("os.waitpid(os.posix_spawn(words[0], words, os.environ), 0)", "is not scheduled: with fairlead run"),
        (
            "os.execvp('echo', ['echo', 'stock 0.05'])",
            f"is not scheduled from here on: {shutil.which('echo')} is no Python",
        ),
        ("os.execv(words[0], [words[0], '-I', 'app.py'])", "is not scheduled from here on: "),
        ("subprocess.run(['echo', 'stock 0.05'])", None),
    ],
)
def test_python_that_is_started_unscheduled_is_reported_in_one_line(
    start: str, says: str | None, program: Path
) -> None:
    code = f"import os, subprocess, sys\nwords = [sys.executable, 'app.py']\n{start}"
    ran = fairlead("run", "--", sys.executable, "-c", code, cwd=program.parent)
    forked = "spawnv" in start  # and then an exec: the same process, as it was
    assert (ran.returncode, ran.stdout) == (0, "interactive 0.05\n" if forked else "stock 0.05\n"), ran.stderr
    assert ran.stderr.count("\n") == (says is not None)
    assert (says or "") in ran.stderr


@scheduled
@pytest.mark.parametrize(
    "start", ["subprocess.run(words, env={0})", "os.waitpid(os.posix_spawn(words[0], words, {0}), 0)"]
)
@pytest.mark.parametrize("given", ["{}", "{'PYTHONPATH': os.path.abspath('agent')}"])
def test_children_are_scheduled_whatever_environment_they_are_given(
    start: str, given: str, program: Path
) -> None:
    (program.parent / "agent").mkdir()
    (program.parent / "agent" / "sitecustomize.py").write_text("print('agent')")
    code = f"import os, subprocess, sys\nwords = [sys.executable, 'app.py']\n{start.format(given)}"
    ran = fairlead("run", "--children", "--", sys.executable, "-c", code, cwd=program.parent)
    agent = "agent\n" if "agent" in given else ""
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"{agent}interactive 0.05\n", "")


@scheduled
@pytest.mark.parametrize("words", [["env", "X=1"], ["env", "-i"], ["env", "PYTHONPATH=agent"]])
def test_env_before_the_python_is_no_obstacle(words: list[str], program: Path) -> None:
    for verb in (["run"], ["record", "--policy", "interactive", "-o", "out.flrec"]):
        ran = fairlead(*verb, "--", *words, sys.executable, program, cwd=program.parent)
        assert (ran.returncode, ran.stdout) == (0, "interactive 0.05\n"), ran.stderr


@scheduled
def test_fairlead_is_a_module_to_run(program: Path) -> None:
    command = [sys.executable, "-m", "fairlead", "run", "--", sys.executable, "app.py"]
    ran = subprocess.run(
        command, cwd=program.parent, env=environment(), capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "interactive 0.05\n", "")
    wrong = [sys.executable, "-m", "fairlead", "walk"]
    ran = subprocess.run(wrong, env=environment(), capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stderr == "fairlead: there is no command 'walk' (see: fairlead --help)\n"


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An interpreter that has no fairlead."""
    place = tmp_path_factory.mktemp("bare") / "venv"
    command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return place / "bin" / "python"


def test_interpreter_without_fairlead_is_named_and_the_program_does_not_run(
    bare: Path, tmp_path: Path
) -> None:
    ran = fairlead("run", "--", bare, "-c", "print('ran')", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert f"{bare} has no fairlead (" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_program_that_cannot_be_scheduled_goes_on_if_that_is_enough(bare: Path, tmp_path: Path) -> None:
    for words, why in ([str(bare)], "has no fairlead"), ([sys.executable, "-E"], "-E ignores PYTHONPATH"):
        code = "import os, sys; print('ran', 'FAIRLEAD_START' in os.environ); sys.exit(3)"
        ran = fairlead("run", "--if-possible", "--", *words, "-c", code, cwd=tmp_path)
        assert (ran.returncode, ran.stdout) == (3, "ran False\n")
        assert why in ran.stderr
        assert ran.stderr.endswith("; going on without\n")
        assert ran.stderr.count("\n") == 1


@pytest.mark.skipif(not FREE_THREADED, reason="this build has a GIL")
def test_free_threaded_program_runs_unscheduled_with_one_line_that_says_so(tmp_path: Path) -> None:
    ran = fairlead("run", "--", sys.executable, "-c", "print('ran')", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "ran\n")
    assert "free-threaded build: there is no GIL to schedule; it runs as it is" in ran.stderr
    assert ran.stderr.count("\n") == 1


@scheduled
def test_recorded_program_is_scheduled_too_when_asked_for(program: Path) -> None:
    command = ["record", "-o", "out.flrec", "--policy", "interactive", "--cpu-share", ".4", "--"]
    ran = fairlead(*command, sys.executable, "app.py", cwd=program.parent)
    assert (ran.returncode, ran.stdout) == (0, "interactive 0.4\n"), ran.stderr
    assert Recording(program.parent / "out.flrec").problems == ()


@scheduled
def test_recording_of_a_run_says_how_to_have_both(program: Path) -> None:
    inner = [*FAIRLEAD, "run", "--", sys.executable, "app.py"]
    ran = fairlead("record", "-o", "out.flrec", "--", *inner, cwd=program.parent)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "fairlead record --policy interactive -- COMMAND" in ran.stderr

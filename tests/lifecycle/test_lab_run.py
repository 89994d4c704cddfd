"""``fairlead lab run`` with interpreters that fail in every way, and with ends of every kind."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from commands import python
from programs import RESULT, interpreter, living
from waiting import until

from fairlead.record.results import read_results
from fairlead.record.sample import Sample

pytestmark = pytest.mark.once

ROUNDS = 8
# as the command, but satisfied with fewer rounds, and with samples that others have disturbed
PROGRAM = (
    f"from fairlead.lab.run import runner, sampling\nsampling.ENOUGH = sampling.AT_MOST = {ROUNDS}\n"
    f"runner.ATTEMPTS = 1\nfrom fairlead.cli import main; main()"
)
COMMAND = [sys.executable, "-c", PROGRAM, "lab", "run"]
PLAN = ["square.mutex", "--quick", "--sizes", "2,3", "--budget", "60s"]
ALL = 2 * ROUNDS
NO_YIELD_PROBE = "case $1 in *probe_yield.py) exit 1;; esac"
# the fifth sample tells the test that it has begun, and goes on for ever, with a child in another session
FIFTH_HANGS = """
{no_yield_probe}
echo x >> {home}/count
if [ $(wc -l < {home}/count) -eq 5 ]; then setsid sleep 1000 & echo > {home}/begun; sleep 1000; fi
echo '{result}'
"""


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """A directory named by every process of the test, none of which may outlive it."""
    yield tmp_path
    assert living(str(tmp_path)) == []


def lab(*args: object, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    return python("-c", program, "lab", "run", *args)


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """The last line on standard error, after checking that there is no traceback, and one complaint."""
    assert "Traceback" not in done.stderr
    complaints = [line for line in done.stderr.splitlines() if line.startswith("fairlead: ")]
    assert len(complaints) == 1, done.stderr
    return complaints[0]


def samples(out: Path) -> tuple[Sample, ...]:
    return read_results(out).samples


def begun(home: Path, out: Path, before: Sequence[str] = ()) -> subprocess.Popen[str]:
    """A run that is in the middle of its fifth sample; its command stands behind these words."""
    os.mkfifo(home / "begun")
    python = interpreter(
        home / "python", FIFTH_HANGS.format(home=home, result=RESULT, no_yield_probe=NO_YIELD_PROBE)
    )
    command = [*before, *COMMAND, *PLAN, "--interpreter", str(python), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    (home / "begun").read_bytes()
    return process


FAILING = {
    "3.90": ("kill -SEGV $$", "crashed", "SIGSEGV"),
    "3.91": ("echo went wrong >&2; exit 3", "crashed", "status 3: went wrong"),
    "3.92": ("echo some words", "garbage", "printed no result"),
    "3.93": ("head -c 3000000 /dev/urandom", "garbage", "printed no result"),
    "3.94": ("echo '{}'", "garbage", "printed a result that is none"),
    "3.95": ('echo \'{"wall_s": "fast"}\'', "garbage", "printed a result that is none"),
    "3.96": ("echo '{\"wall_s\": NaN}'", "garbage", "printed no result"),
    "3.97": ('echo \'{"failed": "lost a thread"}\'', "failed", "lost a thread"),
    "3.99": ("kill -ALRM $$", "timeout", "not done after"),
}


def test_run_with_failing_interpreters_records_it_and_goes_on_with_the_others(home: Path) -> None:
    programs = [interpreter(home / "good", version="3.98.0")]
    programs += [interpreter(home / name, FAILING[name][0], version=f"{name}.0") for name in FAILING]
    chosen = [word for program in programs for word in ("--interpreter", program)]
    done = lab(*PLAN, *chosen, "--out", home / "out")
    assert done.returncode == 1
    assert "9 of 25 samples were not measured: 1 crashed on 3.90, 1 crashed on 3.91" in one_line(done)
    reasons = {s.interpreter["name"]: s.reason or "" for s in samples(home / "out") if s.status != "skipped"}
    for name, (_, _, word) in FAILING.items():
        assert word in reasons[name]
    counts = Counter((s.interpreter["name"], s.status) for s in samples(home / "out"))
    failed = {(name, status): 1 for name, (_, status, _) in FAILING.items()}
    assert counts == {("3.98", "ok"): ALL, **failed, **{(name, "skipped"): 1 for name in FAILING}}
    sizes = Counter(s.params["n"] for s in samples(home / "out") if s.status == "ok")
    assert sizes == {2: ROUNDS, 3: ROUNDS}


def test_run_with_an_interpreter_that_vanishes_records_it(home: Path) -> None:
    python = interpreter(home / "python", f"{NO_YIELD_PROBE}; rm -f $0; echo '{RESULT}'")
    done = lab(*PLAN, "--interpreter", python, "--out", home / "out")
    assert done.returncode == 1
    assert "cannot be started (No such file or directory); see `fairlead doctor`" in one_line(done)
    assert samples(home / "out")[0].status == "ok"


@pytest.mark.long
def test_run_with_an_interpreter_that_hangs_and_forks_is_killed_and_recorded(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    good = interpreter(home / "good", version="3.98.0")
    hang = "trap '' TERM INT ALRM; setsid sleep 1000 & sh -c 'while :; do :; done' & while :; do :; done"
    bad = interpreter(home / "bad", hang)
    short = tmp_path_factory.mktemp("short")
    # a time-out of the experiment that a test can wait for, and that a good sample keeps to on a busy machine
    program = (
        "from fairlead.lab.catalogue import registry\n"
        "from fairlead.lab.run import measure; measure.GRACE_S = 0.5\n"
        "for e in registry.catalogue().values(): object.__setattr__(e, 'timeout_s', 5.0)\n" + PROGRAM
    )
    names = ["--interpreter", bad, "--interpreter", good, "--out", short / "out"]
    done = lab(*PLAN, *names, program=program)
    assert done.returncode == 1
    assert "1 timeout on 3.99" in one_line(done)
    assert Counter(s.status for s in samples(short / "out"))["ok"] == ALL


@pytest.mark.parametrize(
    ("before", "numbers", "status"),
    [
        ("", [signal.SIGINT], 130),
        pytest.param("", [signal.SIGTERM], 143, marks=pytest.mark.long),
        pytest.param("", [signal.SIGHUP], 129, marks=pytest.mark.long),
        # as in the background of a shell without job control: Ctrl-C does nothing
        pytest.param("trap '' INT", [signal.SIGINT, signal.SIGTERM], 143, marks=pytest.mark.long),
    ],
)
def test_run_stopped_by_a_signal_says_what_is_kept_and_can_be_continued(
    home: Path, before: str, numbers: list[signal.Signals], status: int
) -> None:
    out = home / "out"
    process = begun(home, out, ["sh", "-c", f'{before}\nexec "$@"', "sh"])
    for number in numbers:
        process.send_signal(number)
    stdout, stderr = process.communicate()
    done = subprocess.CompletedProcess([], process.returncode, stdout, stderr)
    assert process.returncode == status
    assert "stopped: 4 samples kept" in one_line(done)
    assert living(f"{home}/python") == []
    kept = samples(out)
    _, _, command = one_line(done).partition("continue with: fairlead ")
    again = lab(*shlex.split(command)[2:])
    assert again.returncode == 0, again.stderr
    assert_continued(kept, samples(out))


@pytest.mark.long
def test_run_killed_outright_can_be_continued_and_what_it_left_behind_is_ended(home: Path) -> None:
    out = home / "out"
    process = begun(home, out)
    process.kill()
    process.communicate()
    before = samples(out)
    assert living(f"{home}/python"), "a killed run cannot clean up: its sample goes on"
    done = lab("--resume", "--out", out)
    assert done.returncode == 0, done.stderr
    assert living(f"{home}/python") == []
    assert_continued(before, samples(out))


def assert_continued(before: tuple[Sample, ...], after: tuple[Sample, ...]) -> None:
    assert len(before) == 4
    assert_whole(before, after)
    assert {s.status for s in after} == {"ok"}


def assert_whole(before: tuple[Sample, ...], after: tuple[Sample, ...]) -> None:
    assert after[: len(before)] == before
    assert sorted((s.params["n"], s.round) for s in after) == [(n, r) for n in (2, 3) for r in range(ROUNDS)]


@pytest.mark.long
def test_run_of_which_a_part_is_left_can_be_continued(home: Path) -> None:
    """As one that was killed in the middle of a line, or before its first samples."""
    out = home / "out"
    lab(*PLAN, "--interpreter", interpreter(home / "python"), "--out", out)
    file = out / "samples.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    for whole, torn in (10, 100), (3, 0), (1, 0), (0, 0):
        file.write_bytes(b"".join(lines[:whole]) + lines[whole][:torn])
        if not whole:
            file.unlink()
        assert lab("--resume", "--out", out).returncode == 0
        assert file.read_bytes().splitlines(keepends=True)[:whole] == lines[:whole]
        assert len(samples(out)) == ALL


@pytest.mark.long
@pytest.mark.parametrize(
    ("room", "step"),
    [
        ("cli.lab.run", "choose_interpreters"),
        ("lab.run.pilots", "make_plan"),
        ("lab.run.pilots", "with_yield_probes"),
    ],
)
def test_run_stopped_while_it_is_planned_can_be_continued(home: Path, room: str, step: str) -> None:
    """Ctrl-C before there is a plan: the request is kept, and the advice of the last line works."""
    out = home / "out"
    program = (
        "import importlib, os, signal\n"
        f"run = importlib.import_module('fairlead.{room}')\n"
        f"real = run.{step}\n"
        "def stopped(*words):\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    made = real(*words)\n"
        "    words[-1].check('stopped') if hasattr(words[-1], 'check') else None\n"
        "    return made\n"
        f"run.{step} = stopped\n"
        "from fairlead.cli import main; main()"
    )
    words = [*PLAN, "--interpreter", interpreter(home / "python"), "--out", str(out)]
    done = lab(*words, program=program)
    assert done.returncode == 130, done.stderr
    assert {path.name for path in out.iterdir()} == {"request.json"}
    refused = lab(*words)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr
    _, _, command = one_line(done).partition("begin again with: fairlead ")
    again = lab(*shlex.split(command)[2:])
    assert again.returncode == 0, again.stderr
    assert len(samples(out)) == ALL
    assert not (out / "request.json").exists()


@pytest.mark.long
def test_run_killed_again_and_again_at_any_moment_loses_nothing_and_measures_nothing_twice(
    home: Path,
) -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    rng = random.Random(seed)
    out, file = home / "out", home / "out" / "samples.jsonl"
    python = interpreter(home / "python")
    command = [*PLAN, "--interpreter", str(python)]
    safe: tuple[Sample, ...] = ()
    for _ in range(3):
        process = subprocess.Popen(
            [*COMMAND, *command, "--out", str(out)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        # some samples, or a part of one, more than before: wherever the run is by then
        size = rng.randrange(6000) + (file.stat().st_size if file.exists() else 0)
        until(lambda: process.poll() is not None or (file.exists() and file.stat().st_size > size))  # noqa: B023
        process.kill()
        process.wait()
        now = read_results(out, empty_ok=True).samples
        assert now[: len(safe)] == safe
        safe, command = now, ["--resume"]
    done = lab("--resume", "--out", out)
    assert done.returncode == 0, done.stderr
    after = samples(out)
    assert_whole(safe, after)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk takes root")
def test_run_on_a_full_disk_keeps_what_is_finished(home: Path) -> None:
    disk = home / "disk"
    disk.mkdir()
    command = shlex.join(
        [*COMMAND, *PLAN, "--interpreter", str(interpreter(home / "python")), "--out", f"{disk}/out"]
    )
    script = f"""
        mount -t tmpfs -o size=16k tmpfs {disk} || exit 99
        {command}; echo "status $?" >&2
        cp {disk}/out/samples.jsonl {home}/kept.jsonl
        mount -o remount,size=10m {disk}
        {command.replace(shlex.join(PLAN), "--resume")} || true
        {shlex.join(COMMAND)} --resume --out {disk}/out && wc -l < {disk}/out/samples.jsonl
    """
    done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, check=False)
    if done.returncode == 99:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    kept = len(read_results(home / "kept.jsonl").samples)
    assert "status 1" in done.stderr
    assert f"No space left on device; {kept} samples are safe" in done.stderr
    assert 0 < kept < ALL
    assert done.stdout.splitlines()[-1] == str(ALL)


@pytest.mark.long
def test_run_finds_all_it_started_with_in_the_plan(home: Path) -> None:
    out = home / "out"
    lab(*PLAN, "--interpreter", interpreter(home / "python"), "--out", out, "--cpus", "0", "--work", "spin")
    plan = json.loads((out / "plan.json").read_text())
    assert plan["budget_s"] == 60
    (series,) = plan["series"]
    assert (series["cpus"], series["params"]["work"], series["sizes"]) == ([0], "spin", [2, 3])
    assert {tuple(s.environment["affinity"]) for s in samples(out)} == {(0,)}

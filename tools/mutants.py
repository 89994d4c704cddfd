"""Plant a fault at a time in a copy of the tree, and see whether the tests find it.

    tools/mutants.py [--all] [NAME...]

A mutant is a table of tools/mutants.toml:

    [name]
    file = "src/fairlead/sync/_channels.py"
    old = "self.close()"                    # occurs exactly once in the file
    new = "pass"
    why = "a oneshot's sender stays open after it has sent"
    tests = ["tests/unit/sync/test_sync_channels.py"]   # pytest's arguments: files, directories, node ids

The copy is build/mutants, with an environment of its own over that of the tree. The tests that are named must
pass there before anything is planted; then each mutant is planted, built, and its tests are run. The model's
faults (native/tests/model/faults.toml) are planted by the meson tests, and counted here. A mutant that its
tests do not kill is, with --all, given to all that `make test` runs.

Prints a line for each. Exit status: 0 all were killed, 1 one survived or could not be planted, 2 wrong usage.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

CLONE = Path(__file__).parents[1]
LIST = CLONE / "tools" / "mutants.toml"
COPY = CLONE / "build" / "mutants"
PRINTED = COPY / "build" / "printed"
TEST_S, SILENCE_S, RUN_S, GATE_S = 30, 120, 300, 7200
"""A test, a time in which none begins or ends, the tests of a mutant, and all tests: longer than what is not
stuck takes."""

sys.path.append(str(CLONE / "tests" / "support"))
from programs import living  # noqa: E402


@dataclass(frozen=True)
class Mutant:
    """What the list says, which the head of this file explains."""

    name: str
    file: str
    old: str
    new: str
    why: str
    tests: Sequence[str]


def mutants() -> dict[str, Mutant]:
    return {name: Mutant(name, **table) for name, table in tomllib.loads(LIST.read_text()).items()}


def run(*command: str, limit_s: float = RUN_S) -> int | None:
    """The exit status of this command in the copy; None: it did not end by itself. What it prints is in
    PRINTED, and nothing that it started is left."""
    mark = f"{os.getpid()}-{time.monotonic_ns()}"
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "MAKE"))},
        "PATH": f"{COPY / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTEST_ADDOPTS": f"-x -v -p no:cacheprovider --timeout={TEST_S}",
        "FAIRLEAD_TESTS_SILENCE_S": str(SILENCE_S),
        "FAIRLEAD_MUTANT": mark,
    }
    with PRINTED.open("wb") as printed:
        process = subprocess.Popen(
            command, cwd=COPY, env=environment, stdin=subprocess.DEVNULL, stdout=printed,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for left in living(f"FAIRLEAD_MUTANT={mark}\0"):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)


def run_tests(tests: Iterable[str], limit_s: float = RUN_S) -> int | None:
    return run(".venv/bin/python", "-m", "pytest", *tests, limit_s=limit_s)


def copy_tree() -> None:
    """The files that git knows, as they are. One that is the same keeps its date, and is not built again."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=CLONE, check=True, capture_output=True, text=True)
    wanted = {name for name in listed.stdout.split("\0") if (CLONE / name).is_file()}
    known = COPY / "build" / "copied"
    known.parent.mkdir(parents=True, exist_ok=True)
    for name in set(known.read_text().split("\n") if known.exists() else ()) - wanted:
        (COPY / name).unlink(missing_ok=True)
    for name in wanted:
        source, target = CLONE / name, COPY / name
        if not target.exists() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    known.write_text("\n".join(sorted(wanted)))


def make_environment() -> None:
    """One that finds the packages of this one, and fairlead in the copy. `make` takes it as complete."""
    here, there = Path(sys.prefix), COPY / ".venv"
    if (there / ".test").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", there], check=True)
    packages = next(there.glob("lib/python*/site-packages"))
    (packages / "base.pth").write_text(f"{here / packages.relative_to(there)}\n")
    for program in (here / "bin").iterdir():
        if not (there / "bin" / program.name).exists():
            shutil.copy(program, there / "bin")
            text = program.read_bytes().replace(os.fsencode(here), os.fsencode(there))
            (there / "bin" / program.name).write_bytes(text)
    pip = (sys.executable, "-m", "pip", "--python", ".venv", "install", "--ignore-installed", "--no-deps")
    if run(*pip, "--no-build-isolation", "--editable", "."):
        sys.exit(f"tools/mutants.py: {PRINTED.read_text()}")
    for stamp in (".tools", ".installed", ".test"):
        (there / stamp).touch()


def write(file: Path, text: str) -> None:
    file.write_text(text)
    Path(cache_from_source(file)).unlink(missing_ok=True)  # whose date may be of the same second


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    file = COPY / mutant.file
    whole = file.read_text()
    try:
        write(file, whole.replace(mutant.old, mutant.new))
        yield
    finally:
        write(file, whole)


def killer(status: int | None) -> str:
    """The test that failed, as pytest has printed it, or in which the run came to its end."""
    text = PRINTED.read_text(errors="replace")
    hung = " (hung)" if status is None or "Failed: Timeout (>" in text else ""
    if failed := re.search(r"^(?:FAILED|ERROR) (\S+::.*?|\S+)(?: - .*)?$", text, re.MULTILINE):
        return failed[1] + hung
    if stuck := re.search(r"^    (tests/.*), \d+ s ago$", text, re.MULTILINE):
        return f"{stuck[1]} (hung)"
    begun = re.findall(r"^(tests/\S+::.*?)(?: PASSED| SKIPPED|$)", text, re.MULTILINE)
    return f"{begun[-1].strip() if begun else 'the run'}{hung or f' (exit status {status})'}"


def outcome(mutant: Mutant, everything: bool) -> tuple[bool, str]:
    """Whether it was killed, and what to say."""
    begun = time.monotonic()
    with planted(mutant):
        build = run(".venv/bin/python", "-c", "import fairlead._native, fairlead._probe")
        if build != 0 and mutant.file.startswith("native/"):
            return False, f"does not build:\n{PRINTED.read_text(errors='replace')}"
        status = run_tests(mutant.tests)
        if status == 0 and everything:
            status = run("make", "test", limit_s=GATE_S)
    took = f"in {time.monotonic() - begun:.0f} s"
    return status != 0, f"SURVIVED {took}" if status == 0 else f"killed by {killer(status)} {took}"


def model_finds_its_faults() -> bool:
    build = CLONE / "build" / "native"
    log = build / "meson-logs" / "faults.json"
    log.unlink(missing_ok=True)
    meson = (Path(sys.prefix) / "bin" / "meson", "test", "-C", build, "--num-processes", "2", "--quiet")
    done = subprocess.run([*meson, "--logbase", "faults", "*-finds-fault-*"], capture_output=True, text=True)
    if not log.exists():
        sys.exit(f"tools/mutants.py: {done.stdout}{done.stderr}")
    results = [json.loads(line) for line in log.read_text().splitlines()]
    missed = [each["name"] for each in results if each["result"] != "OK"]
    print(f"the model finds {len(results) - len(missed)} of {len(results)} faults", *missed, flush=True)
    return bool(results) and not missed


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    known = mutants()
    parser.add_argument("names", nargs="*", metavar="NAME", help="of a mutant; none: all, and the model's")
    parser.add_argument("--all", action="store_true", help="give survivors to all that make test runs")
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - set(known):
        parser.error(f"there is no mutant {', '.join(unknown)}")
    chosen = [known[name] for name in options.names or known]
    copy_tree()
    make_environment()
    tests = dict.fromkeys(test for mutant in chosen for test in mutant.tests)
    status = run("make", "test", limit_s=GATE_S) if options.all else run_tests(tests, limit_s=GATE_S)
    if status != 0:
        sys.exit(f"tools/mutants.py: without a mutant {killer(status)} fails; see {PRINTED}")
    good = options.names != [] or model_finds_its_faults()
    for mutant in chosen:
        killed, said = outcome(mutant, options.all)
        print(f"{mutant.name}: {said}", flush=True)
        good = good and killed
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

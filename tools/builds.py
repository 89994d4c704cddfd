"""Build CPython in the ways that people have it, and run the GIL's tests on each.

    python tools/builds.py [NAME...] [-- PYTEST ARGUMENTS...]

The source is CPYTHON, a source tree, or what upstream/variants.py fetches. Each build is put into
FAIRLEAD_BUILDS (build/builds), with an environment of its own; what is there is left alone, but for fairlead.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

CLONE = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CLONE / "upstream"))

import variants  # noqa: E402
from test_all import IN_THE_GATE  # noqa: E402

BUILDS = Path(os.environ.get("FAIRLEAD_BUILDS", CLONE / "build" / "builds"))
TESTS = (
    "tests/platform",
    "tests/lifecycle/test_gil_scheduled.py",
    "tests/lifecycle/test_gil_survives.py",
    "tests/lifecycle/test_gil_survives_faults.py",
    "tests/lifecycle/test_run_program.py",
    "tests/unit/gil/test_gil_observe.py",
    "tests/unit/gil/test_gil_schedule.py",
)
"""Those that depend on how the interpreter was built."""
OPTIMISED = ("OPT=-DNDEBUG -g1 -O2 -Wall",)


@dataclass(frozen=True)
class Build:
    flags: tuple[str, ...]
    compiler: str = "gcc"
    needs: tuple[str, ...] = field(default=())


KINDS = {
    "debug": Build(("--with-pydebug",)),
    "clang-lto": Build(("--with-lto", *OPTIMISED), "clang", ("llvm-ar",)),
    "shared-now": Build(
        (
            "--enable-shared",
            *OPTIMISED,
            "CFLAGS=-fPIE -fno-plt -fno-semantic-interposition",
            "LDFLAGS=-Wl,-z,now -Wl,-z,relro",
            "LINKFORSHARED=-pie -Xlinker -export-dynamic",
        )
    ),
}
"""With assertions and its own memory layout; with clang, optimised when linked; as Fedora's."""


def call(*command: str | Path, cwd: Path, log: Path, **variables: str) -> None:
    with log.open("ab") as output:
        done = subprocess.run(
            command, cwd=cwd, env={**os.environ, **variables}, stdout=output, stderr=subprocess.STDOUT
        )
    if done.returncode:
        raise SystemExit(f"{command[0]} failed: see {log}")


def installed(name: str, source: Path) -> Path:
    """The installed interpreter of that kind."""
    kind, place = KINDS[name], BUILDS / name
    prefix = place / "installed"
    found = sorted((prefix / "bin").glob("python3.*[0-9]"))
    if found:
        return found[0]
    work, log = place / "work", place / "build.log"
    work.mkdir(parents=True, exist_ok=True)
    print(f"build: {name}", flush=True)
    compiler = f"ccache {kind.compiler}" if shutil.which("ccache") else kind.compiler
    rpath = f"{prefix}/lib"
    configure = [f"--prefix={prefix}", f"CC={compiler}", "-q", *kind.flags]
    call(source / "configure", *configure, cwd=work, log=log, LD_RUN_PATH=rpath)
    call("make", f"-j{os.cpu_count()}", cwd=work, log=log, LD_RUN_PATH=rpath)
    call("make", "install", cwd=work, log=log, LD_RUN_PATH=rpath)
    return next((prefix / "bin").glob("python3.*[0-9]"))


def environment(name: str, interpreter: Path) -> Path:
    """Its environment with today's fairlead and what the tests need."""
    place, log = BUILDS / name / "environment", BUILDS / name / "install.log"
    python = place / "bin" / "python"
    if not python.exists():
        call(interpreter, "-m", "venv", place, cwd=CLONE, log=log)
        call(python, "-m", "pip", "-q", "install", "--group", "test", cwd=CLONE, log=log)
    call(python, "-m", "pip", "-q", "install", "--force-reinstall", "--no-deps", CLONE, cwd=CLONE, log=log)
    call(python, "-m", "pip", "-q", "install", CLONE, cwd=CLONE, log=log)
    accept(python)
    return python


def accept(python: Path) -> None:
    """Accept the release that was built, else each program warns of it, with an empty environment too."""
    say = "import sys, sysconfig; print(*sys.version_info[:3], sep='.'); print(sysconfig.get_path('purelib'))"
    release, packages = subprocess.run(
        [python, "-c", say], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    line = f"import os; os.environ.setdefault('FAIRLEAD_UNTESTED', {release!r})\n"
    (Path(packages) / "fairlead-accepted.pth").write_text(line)


def main(arguments: list[str]) -> int:
    split = arguments.index("--") if "--" in arguments else len(arguments)
    names, pytest_arguments = (
        arguments[:split] or list(KINDS),
        arguments[split + 1 :] or ["-m", IN_THE_GATE, *TESTS],
    )
    if unknown := set(names) - set(KINDS):
        raise SystemExit(f"no such build: {', '.join(unknown)}; there are {', '.join(KINDS)}")
    BUILDS.mkdir(parents=True, exist_ok=True)
    source = variants.source_of("stock")
    if named := os.environ.get("CPYTHON"):
        source = Path(named)
    else:
        variants.prepare("stock")
    wrong = []
    for name in names:
        missing = [tool for tool in (KINDS[name].compiler, *KINDS[name].needs) if not shutil.which(tool)]
        if missing:
            print(f"{name}: left out, {' and '.join(missing)} missing", flush=True)
            continue
        python = environment(name, installed(name, source))
        version = subprocess.run([python, "-VV"], capture_output=True, text=True, check=True).stdout
        print(f"\n== {name}: {version.strip()}", flush=True)
        command = [python, "-m", "pytest", "-q", *pytest_arguments]
        if subprocess.run(command, cwd=CLONE).returncode:
            wrong.append(name)
    if wrong:
        print(f"failed on: {', '.join(wrong)}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Compile and link the core, which knows no Python, for other systems with zig's compiler; run its C tests.

    pip install ziglang
    python tools/cross_compile.py [--run COMMAND] [--python INCLUDE --into FOLDER] [TARGET...]

For each target the files of fairlead_core and of its platform in native/meson.build are compiled, and every
C test of the core that the system can have is linked. With --run each of these is run by the command: wine64
runs those of x86_64-windows-gnu, qemu-aarch64-static those of aarch64-linux-musl, "" those of this system.
With --python the two extensions are built, too, against the headers of a CPython of that system, and put into
a copy of the package in FOLDER, which that CPython can have as its PYTHONPATH. The status is 1 if anything
fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

NATIVE = Path(__file__).parents[1] / "native"
TARGETS = (
    "x86_64-macos",
    "aarch64-macos",
    "x86_64-windows-gnu",
    "aarch64-windows-gnu",
    "x86_64-linux-musl",
    "aarch64-linux-musl",
    "aarch64-linux-gnu",
)
SUFFIX = {"windows": "pyd", "macos": "so", "linux": "so"}
LIBRARIES = {"windows": ["-lws2_32", "-lapi-ms-win-core-synch-l1-2-0"], "macos": [], "linux": []}
SECONDS = 600
"""that one command may take: the first link for a target waits until zig has built that system's C library"""
FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-I.", "-fvisibility=hidden"]

GENERATED = {"docs.h": ["module/docs.py", "../src/fairlead/_native.pyi"]}
"""Headers that the build makes for the extensions, each with the command that writes it."""


def listed(build: str, begin: str, end: str) -> list[str]:
    """The names in quotes between two texts of a file of the build."""
    found = re.search(f"{begin}(.*?){end}", (NATIVE / build).read_text(), re.S)
    assert found is not None, f"native/{build} has no {begin}"
    return re.findall(r"'(.+?)'", found[1])


def sources(system: str) -> list[str]:
    """The files of the core, the simulator and the platform, as the build names them."""
    core = listed("meson.build", "'fairlead_core',", "dependencies:")
    simulator = listed("meson.build", "'fairlead_sim',", "link_with:")
    trace = [] if system == "windows" else listed("meson.build", r"trace = files\(", r"\)")
    platform = listed("meson.build", f"'{system}': ", r"\],")
    return [*core, *simulator, *trace, *(f"machine/os/{name}.c" for name in platform)]


def tests(system: str) -> list[str]:
    """The C tests of the core that this system can have."""
    names = listed("tests/meson.build", r"\bnames = ", r"\]")
    names += listed("tests/meson.build", r"What has no platform underneath.*?foreach name : ", r"\]")
    if system != "windows":
        names += listed("tests/meson.build", "unix_names = ", r"\]")
    return [f"tests/test_{name}.c" for name in names]


def extensions() -> dict[str, list[str]]:
    """The files of each extension beside the core. The hooks of the GIL are for Linux with glibc alone."""
    return {
        "_native": listed("meson.build", r"native_sources = files\(", r"\n\)"),
        "_probe": listed("meson.build", r"probe_sources = files\(", r"\)"),
    }


def interpreter_libraries(system: str, include: Path) -> list[str]:
    """What an extension links against: on Windows the interpreter's import library, elsewhere nothing."""
    if system == "windows":
        return [str(max((include.parent / "libs").glob("python3?*.lib"), key=lambda path: len(path.name)))]
    return ["-Wl,-undefined,dynamic_lookup"] if system == "macos" else []


def failure(words: list[str]) -> str:
    """What a command says first of what went wrong; empty if nothing did."""
    try:
        done = subprocess.run(words, cwd=NATIVE, capture_output=True, text=True, check=False, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"not over after {SECONDS} s"
    if done.returncode == 0:
        return ""
    errors = re.findall(r"^.*error: .*$", done.stderr, re.M)
    return errors[0] if errors else (done.stderr.strip() or f"status {done.returncode}")


def each(target: str, what: str, commands: dict[str, list[str]], workers: int | None) -> bool:
    """Carry out the command of each file; say for how many it succeeded, and a line for each other."""
    with ThreadPoolExecutor(workers) as pool:
        said = dict(zip(commands, pool.map(failure, commands.values()), strict=True))
    failed = [f"    {file}: {text}" for file, text in said.items() if text]
    print(f"{target}: {len(said) - len(failed)} of {len(said)} {what}", *failed, sep="\n", flush=True)
    return not failed


def check_extensions(target: str, compiler: list[str], include: Path, into: Path) -> bool:
    """Build both extensions for one target into a copy of the package."""
    system = target.split("-")[1]
    compiler = [*compiler, "-isystem", str(include), *(["-fPIC", "-dynamic"] if system == "linux" else [])]
    package = into / "fairlead"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(NATIVE.parent / "src" / "fairlead", package, ignore=shutil.ignore_patterns("__pycache__"))
    with tempfile.TemporaryDirectory() as folder:
        generating = {
            name: [sys.executable, *command, str(Path(folder, name))] for name, command in GENERATED.items()
        }
        if not each(target, "headers generated", generating, 1):
            return False
        compiler += ["-I", folder]
        named = {"core": sources(system), **extensions()}
        objects = {
            file: str(Path(folder, file.replace("/", "_") + ".o"))
            for files in named.values()
            for file in files
        }
        core = [objects[file] for file in named.pop("core")]
        compiling = {file: [*compiler, "-c", file, "-o", made] for file, made in objects.items()}
        ends = [*core, *interpreter_libraries(system, include), *LIBRARIES[system], "-lpthread", "-lm", "-o"]
        linker = [*compiler, "-shared"]
        linking = {
            name: [*linker, *(objects[file] for file in files), *ends, f"{package / name}.{SUFFIX[system]}"]
            for name, files in named.items()
        }
        fine = each(target, "files of the extensions compile", compiling, os.cpu_count())
        return fine and each(target, "extensions link", linking, os.cpu_count())


def check(target: str, run: str | None, include: Path | None, into: Path) -> bool:
    """Compile, link and perhaps run for one target, as far as nothing fails."""
    system = target.split("-")[1]
    compiler = [sys.executable, "-m", "ziglang", "cc", "-target", target, *FLAGS]
    compiler.append(f"-DFL_TEST_PLATFORM_{system.upper()}=1")
    with tempfile.TemporaryDirectory() as folder:
        objects = {file: str(Path(folder, file.replace("/", "_") + ".o")) for file in sources(system)}
        programs = {file: str(Path(folder, Path(file).stem + ".exe")) for file in tests(system)}
        ends = [*objects.values(), *LIBRARIES[system], "-lpthread", "-lm", "-o"]
        compiling = {file: [*compiler, "-c", file, "-o", made] for file, made in objects.items()}
        linking = {file: [*compiler, file, *ends, made] for file, made in programs.items()}
        fine = each(target, "files compile", compiling, os.cpu_count())
        fine = fine and each(target, "C tests link", linking, os.cpu_count())
        if fine and run is not None:
            running = {file: [*run.split(), made] for file, made in programs.items()}
            fine = each(target, f"C tests pass{run and ' under ' + run}", running, 1)
    return fine and (include is None or check_extensions(target, compiler, include, into))


def main() -> int:
    """Check each target."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--run", metavar="COMMAND", help="run each linked C test by this command")
    parser.add_argument(
        "--python", metavar="INCLUDE", type=Path, help="the folder with the target's Python.h"
    )
    parser.add_argument(
        "--into", metavar="FOLDER", type=Path, help="where the package with the extensions goes"
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of zig; default: {' '.join(TARGETS)}")
    given = parser.parse_args()
    if (given.python is None) != (given.into is None) or (given.python and len(given.targets) != 1):
        parser.error("--python and --into go together, with one target")
    include, into = given.python and given.python.resolve(), given.into and given.into.resolve()
    fine = [check(target, given.run, include, into) for target in given.targets or TARGETS]
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())

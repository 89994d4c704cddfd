"""Interpreters and embedding programs that differ in how they were built, made from the running one."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import shutil
import struct
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

NATIVE = Path(__file__).parents[2] / "native"

SCHEDULED = """
import json, os, sys, threading, time
import fairlead.gil as gil

gil.schedule()
before = gil.scheduler().waits, gil.counters()
with gil.observe() as watch:
    stop = threading.Event()
    def spin():
        while not stop.is_set():
            sum(range(100))
    threads = [threading.Thread(target=spin) for _ in range(2)]
    for thread in threads:
        thread.start()
    ends = os.pipe()
    for _ in range(20):
        os.write(ends[1], b"x")
        os.read(ends[0], 1)
    stop.set()
    for thread in threads:
        thread.join()
after = gil.scheduler().waits, gil.counters()
contended = "fairlead_gil_contended_acquisitions_total"
assert after[0] > before[0], (before, after)
assert after[1][contended] > before[1][contended], (before, after)
print(json.dumps(gil.scheduler().policy))
"""
"""Prints "interactive" if a thread of I/O beside two that compute is scheduled and observed."""


def runtime() -> Path:
    """The file that holds the running interpreter: its executable or libpython."""
    function = ctypes.pythonapi.PyType_GenericAlloc
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, *_, path = line.split(maxsplit=5)
        start, end = (int(bound, 16) for bound in span.split("-"))
        if start <= address < end:
            return Path(path)
    raise LookupError("the interpreter's functions lie in no file")


def writable_dynamic_cleared(source: Path, target: Path) -> Path:
    """A copy of an ELF file whose dynamic section is marked read-only, as ``ld -z rodynamic`` makes it."""
    image = bytearray(source.read_bytes())
    (offset,) = struct.unpack_from("<Q", image, 32)
    size, count = struct.unpack_from("<HH", image, 54)
    for at in range(offset, offset + size * count, size):
        kind, flags = struct.unpack_from("<II", image, at)
        if kind == 2:  # PT_DYNAMIC
            struct.pack_into("<I", image, at + 4, flags & ~2)
    target.write_bytes(image)
    target.chmod(0o755)
    return target


def compiled(target: Path, text: str, *flags: str, compiler: Sequence[str] = ("cc",)) -> Path:
    """A C program or library; skips the test where there is no compiler."""
    if shutil.which(compiler[0]) is None:
        pytest.skip("there is no C compiler")
    source = target.with_suffix(".c")
    source.write_text(text)
    done = subprocess.run(
        [*compiler, "-O1", "-g", f"-I{NATIVE}", "-o", target, source, *flags], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


EMBEDDER = """
#include <Python.h>

void (*restore)(PyThreadState *);

int main(int argc, char **argv)
{
    int failed = 0;
    restore = PyEval_RestoreThread; /* without -fPIE this is an entry in the program's own table */
    for (int i = 2; i < argc && !failed; i++) {
        PyConfig config;
        PyConfig_InitPythonConfig(&config);
        PyConfig_SetBytesString(&config, &config.program_name, argv[1]);
        Py_InitializeFromConfig(&config);
        PyConfig_Clear(&config);
        failed = PyRun_SimpleString(argv[i]);
        failed |= Py_FinalizeEx();
    }
    return failed;
}
"""


def include() -> Path:
    """Where Python.h is; skips the test where it is not."""
    base = {"base": sys.base_prefix, "installed_base": sys.base_prefix}
    directory = Path(sysconfig.get_path("include", vars=base))
    if not (directory / "Python.h").exists():
        pytest.skip("this Python came without Python.h")
    return directory


def embedder(directory: Path, *flags: str, static: bool = False) -> Path:
    """A C program that runs its arguments after the first, an interpreter's name, each in an interpreter.

    Where libpython is an archive (``static``, or Python was built without --enable-shared), the program holds
    the interpreter and exports its symbols to extension modules.
    """
    place, name = ("LIBPL", "LIBRARY") if static else ("LIBDIR", "LDLIBRARY")
    library = Path(sysconfig.get_config_var(place)) / str(sysconfig.get_config_var(name))
    if not library.exists():
        pytest.skip(f"this Python came without {library.name}, which programs that embed it are built with")
    found = [f"-I{include()}", str(library), f"-Wl,-rpath,{library.parent}", "-lm"]
    compiler = ["cc"]
    if library.suffix == ".a":
        found += [word for key in ("LIBS", "SYSLIBS") for word in str(sysconfig.get_config_var(key)).split()]
        found.append("-rdynamic")
        built_with = shlex.split(str(sysconfig.get_config_var("CC")))
        if any(Path(word).name.startswith("clang") for word in built_with):  # its archives may hold bitcode
            compiler = built_with
            core = shlex.split(str(sysconfig.get_config_var("PY_CORE_LDFLAGS")))
            if bitcode := [word for word in core if word.startswith("-flto")]:
                found += [*bitcode, "-Wl,-plugin-opt=O0"]  # to optimise all of libpython takes minutes
    return compiled(directory / "embedder", EMBEDDER, *flags, *found, compiler=compiler)


def ran(
    command: Sequence[str | Path],
    environment: Mapping[str, str | Path] | None = None,
    executable: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command],
        env={**os.environ, **{name: str(value) for name, value in (environment or {}).items()}},
        executable=executable,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )


def answer(done: subprocess.CompletedProcess[str]) -> Any:
    """What a program printed last, read as JSON; it must have ended well."""
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[-1])
